package caller

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/mocks"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
)

func task(kind, id, queue string) activitytest.Task {
	return activitytest.Task{Type: kind, WorkflowID: id, Queue: queue}
}

// as runs code as an activity of a name that a workflow called.
func as(t *testing.T, who activitytest.Task, name string, do func(ctx context.Context) error, callers ...interceptor.WorkerInterceptor) error {
	t.Helper()
	env := activitytest.Environment()
	activitytest.CalledBy(env, who, callers...)
	return activitytest.ExecuteAs(t, env, name, do)
}

func TestTheWorkerSignalsOnlyWhatItsCallerMay(t *testing.T) {
	const queue = "east/drydock"
	maintenance := task(api.NodeMaintenanceType, "east/node-maintenance/w-01/kernel", queue)
	shared := task(api.NodeMaintenanceType, "east/node-maintenance/w-01/plans", queue+"-drains")
	scheduler := task(api.SchedulerType, "east/drydock-scheduler", queue)
	repair := task(api.NodeRemediationType, "east/node-remediation/workers/w-01", queue)
	transition := task(api.ProfileTransitionType, "east/profile-transition/kernel/w-01", queue)
	profiles := task(api.ProfilesType, "east/drydock-profiles", queue)
	notification := task(api.NotificationType, "east/notification/oncall/w-01/kernel/r-1", queue)
	for name, c := range map[string]struct {
		who                  activitytest.Task
		activity, signal, to string
		allowed              bool
	}{
		"a slot given back":                         {maintenance, "ReleaseNode", api.SignalSlotRelease, "east/drydock-scheduler", true},
		"an approval by a release":                  {maintenance, "ReleaseNode", api.MsgApprove, "east/node-maintenance/w-02/kernel", false},
		"an approval of itself":                     {maintenance, "ReleaseNode", api.MsgApprove, maintenance.WorkflowID, false},
		"a foreign workflow":                        {maintenance, "ReleaseNode", api.SignalSlotRelease, "payroll", false},
		"the scheduler of another cluster":          {maintenance, "ReleaseNode", api.SignalSlotRelease, "drydock-scheduler", false},
		"the plan":                                  {maintenance, "ReleaseNode", api.SignalNodeNews, "east/maintenance-plan/q3", true},
		"a plan of another cluster":                 {maintenance, "ReleaseNode", api.SignalNodeNews, "west/maintenance-plan/q3", false},
		"what blocks a drain":                       {maintenance, "Drain", api.SignalDrainBlocked, maintenance.WorkflowID, true},
		"what blocks a drain, under another name":   {maintenance, "Drain", api.MsgApprove, maintenance.WorkflowID, false},
		"what blocks a drain, to another":           {maintenance, "Drain", api.SignalDrainBlocked, "east/node-maintenance/w-02/kernel", false},
		"an empty node, for plans":                  {shared, "Drain", api.SignalNodeProgress, "east/drydock-plans", true},
		"an empty node, for no plans":               {maintenance, "Drain", api.SignalNodeProgress, "east/drydock-plans", false},
		"an event for its channel":                  {notification, "Collect", api.SignalCollect, "east/notification/oncall", true},
		"an event for another channel":              {notification, "Collect", api.SignalCollect, "east/notification/audit", false},
		"an event for a channel of another cluster": {notification, "Collect", api.SignalCollect, "notification/oncall", false},
		"an approval by a collection":               {notification, "Collect", api.MsgApprove, "east/node-maintenance/w-02/kernel", false},
		"a plan's intent":                           {task(api.MaintenancePlanType, "east/maintenance-plan/q3", queue), "SendIntent", api.SignalPlanIntent, "east/drydock-plans", true},
		"a plan's intent to a maintenance":          {task(api.MaintenancePlanType, "east/maintenance-plan/q3", queue), "SendIntent", api.SignalPlanIntent, "east/node-maintenance/w-02/kernel", false},
		"the repair of its node":                    {repair, "EndRepair", api.MsgDone, "east/node-maintenance/w-01/health-workers", true},
		"the repair of another node":                {repair, "EndRepair", api.MsgDone, "east/node-maintenance/w-02/health-workers", false},
		"a maintenance that is no repair":           {repair, "EndRepair", api.MsgCancel, "east/node-maintenance/w-01/kernel", false},
		"the maintenance of a profile":              {transition, "EndProfileMaintenance", api.MsgDone, "east/node-maintenance/w-01/profile-kernel", true},
		"the maintenance of another profile":        {transition, "EndProfileMaintenance", api.MsgDone, "east/node-maintenance/w-01/profile-bios", false},
		"a maintenance of any profile":              {profiles, "EndProfileMaintenance", api.MsgDone, "east/node-maintenance/w-01/profile-bios", true},
		"a maintenance of no profile":               {profiles, "EndProfileMaintenance", api.MsgDone, "east/node-maintenance/w-01/kernel", false},
		"a shared maintenance":                      {task(api.LockstepType, "east/drydock-plans", queue), "SteerShared", api.SignalTarget, "east/node-maintenance/w-01/plans", true},
		"a maintenance that is not shared":          {task(api.LockstepType, "east/drydock-plans", queue), "EndShared", api.MsgDone, maintenance.WorkflowID, false},
		"a grant":                                   {scheduler, "SendGrants", api.SignalSlotGranted, maintenance.WorkflowID, true},
		"a grant in another cluster":                {scheduler, "SendGrants", api.SignalSlotGranted, "node-maintenance/w-01/kernel", false},
		"a changed node":                            {scheduler, "WatchCluster", api.SignalNodeChanged, maintenance.WorkflowID, true},
		"a changed node, to a plan":                 {scheduler, "WatchCluster", api.SignalNodeChanged, "east/maintenance-plan/q3", false},
		"an activity that signals nobody":           {maintenance, "HoldNode", api.SignalSlotRelease, "east/drydock-scheduler", false},
	} {
		t.Run(name, func(t *testing.T) {
			server := &mocks.Client{}
			server.On("SignalWorkflow", mock.Anything, c.to, "", c.signal, "payload").Return(nil)
			err := as(t, c.who, c.activity, func(ctx context.Context) error { return Signal(ctx, server, c.to, "", c.signal, "payload") })
			if sent := len(server.Calls); isForeign(err) == c.allowed || c.allowed && err != nil || (sent == 1) != c.allowed {
				t.Errorf("got %v and %d signals, want allowed: %v", err, sent, c.allowed)
			}
		})
	}
}

func TestASignalThatStartsAWorkflowStartsThatOfItsTypeOnly(t *testing.T) {
	server := &mocks.Client{}
	server.On("SignalWithStartWorkflow", mock.Anything, "drydock-plans", api.SignalPlanIntent, mock.Anything, mock.Anything, api.LockstepType).Return(nil, nil)
	plan := task(api.MaintenancePlanType, "maintenance-plan/q3", "drydock")
	for signal, refused := range map[string]bool{api.SignalPlanIntent: false, api.MsgApprove: true} {
		err := as(t, plan, "SendIntent", func(ctx context.Context) error { return SignalWithStart(ctx, server, "drydock-plans", signal, nil) })
		if isForeign(err) != refused || !refused && err != nil {
			t.Errorf("%s: got %v, want refused: %v", signal, err, refused)
		}
	}
	if len(server.Calls) != 1 {
		t.Errorf("%d signals were sent", len(server.Calls))
	}
}

// TestARefusalIsNotTriedAgain: an activity says in its own error what it was about, and that must not hide the refusal.
func TestARefusalIsNotTriedAgain(t *testing.T) {
	who := task(api.NodeMaintenanceType, "node-maintenance/w-01/kernel", "drydock")
	wrapped := func(ctx context.Context) error {
		return errors.Join(errors.New("telling the plan"), MaySignal(ctx, "payroll", api.SignalNodeNews))
	}
	callers := New(&server{kind: api.NodeMaintenanceType, queue: "drydock"}, "drydock")
	if err := as(t, who, "ReleaseNode", wrapped, callers); !isForeign(err) {
		t.Errorf("got %v, want a %s that is not retried", err, api.ErrorForeignCaller)
	}
	if err := as(t, who, "ReleaseNode", func(context.Context) error { return errors.New("unavailable") }, callers); isForeign(err) || err == nil {
		t.Errorf("got %v, want the activity's own error", err)
	}
}

// TestActivitiesSignalThroughTheTable: no activity reaches a workflow but by what this package sends.
func TestActivitiesSignalThroughTheTable(t *testing.T) {
	forbidden := []string{
		"SignalWorkflow", "SignalWithStartWorkflow", "UpdateWorkflow", "UpdateWithStartWorkflow", "CancelWorkflow", "TerminateWorkflow",
		"ResetWorkflowExecution", "SignalWorkflowExecution", "CompleteActivity", "CompleteActivityByID",
	}
	files := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || path == filepath.Join("..", "caller", "signals.go") {
			return err
		}
		files++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if selected, ok := n.(*ast.SelectorExpr); ok && slices.Contains(forbidden, selected.Sel.Name) {
				t.Errorf("%s: %s is for activities/caller, which says who may", set.Position(selected.Pos()), selected.Sel.Name)
			}
			return true
		})
		return nil
	})
	if err != nil || files < 50 {
		t.Fatalf("%d files: %v", files, err)
	}
}

// TestEveryRowIsOfAnActivity: rows that no activity needs would be rights that nobody looks at.
func TestEveryRowIsOfAnActivity(t *testing.T) {
	for name, row := range table {
		if len(row.from) == 0 {
			t.Errorf("no workflow may call activity %s", name)
		}
		for signal := range row.sends {
			if slices.Contains(api.MessagesTo(api.NodeMaintenanceType), signal) && signal != api.MsgCancel && signal != api.MsgDone {
				t.Errorf("activity %s sends %s, which is a person's to send", name, signal)
			}
		}
	}
	sources, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if !strings.Contains(all.String(), ") "+name+"(ctx context.Context") && !strings.Contains(all.String(), ") "+name+"(_ context.Context") {
			t.Errorf("there is no activity %s", name)
		}
	}
}
