package workflows_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/activity"

	"drydock/activities/caller"
	"drydock/api"
	"drydock/workflows"
)

// types are the workflows that the packages of this folder make.
var types = map[string]string{
	"auditrecord": api.AuditRecordType, "doctor": api.DoctorType, "health": api.HealthCheckType, "healthwatch": api.HealthWatchType,
	"lockstep": api.LockstepType, "maintenance": api.NodeMaintenanceType, "notification": api.NotificationType, "plan": api.MaintenancePlanType,
	"permissions": api.PermissionsType, "planrun": api.PlanRunType, "preflight": api.PreflightType, "profilereport": api.ProfileReportType, "profiles": api.ProfilesType,
	"profiletransition": api.ProfileTransitionType, "remediation": api.NodeRemediationType, "scheduler": api.SchedulerType, "windows": api.WindowsType,
}

// callable collects the names of activities.
type callable struct{ names []string }

func (r *callable) RegisterActivity(a any) {
	if value := reflect.ValueOf(a); value.Kind() == reflect.Func {
		name := runtime.FuncForPC(value.Pointer()).Name()
		r.names = append(r.names, strings.TrimSuffix(name[strings.LastIndex(name, ".")+1:], "-fm"))
		return
	}
	kind, failure := reflect.TypeOf(a), reflect.TypeFor[error]()
	for i := range kind.NumMethod() {
		method := kind.Method(i)
		if outs := method.Type.NumOut(); outs > 0 && outs < 3 && method.Type.Out(outs-1) == failure {
			r.names = append(r.names, method.Name)
		}
	}
}

func (r *callable) RegisterActivityWithOptions(any, activity.RegisterOptions)    { panic("not used") }
func (r *callable) RegisterDynamicActivity(any, activity.DynamicRegisterOptions) { panic("not used") }

// TestEveryActivitySaysWhoMayCallIt: the table of callers is what the source and the histories of the workflows call.
func TestEveryActivitySaysWhoMayCallIt(t *testing.T) {
	calls := map[string][]string{}
	naming := regexp.MustCompile(`\bcall\.(?:Nodes|Drains|Cluster|Executions|Settings|Preflights|Doctors|Checks|Deliveries|Policies|Plans|Windows|Lockstep|Health|Profiles)\.([A-Z]\w+)`)
	err := filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		kind := types[strings.Split(path, string(filepath.Separator))[0]]
		if err != nil || kind == "" || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, found := range naming.FindAllSubmatch(source, -1) {
			if name := string(found[1]); !slices.Contains(calls[name], kind) {
				calls[name] = append(calls[name], kind)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, history := range recorded(t) {
		kind := history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()
		for _, event := range history.GetEvents() {
			name := event.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
			if name != "" && !slices.Contains(calls[name], kind) {
				calls[name] = append(calls[name], kind)
			}
		}
	}
	var all callable
	workflows.RegisterActivities(&all, workflows.Activities{})
	for _, name := range all.names {
		want, got := slices.Sorted(slices.Values(calls[name])), slices.Sorted(slices.Values(caller.Allowed(name)))
		if len(got) == 0 || !slices.Equal(got, want) {
			t.Errorf("activity %s: workflows %v call it, the table has %v (activities/caller/table.go)", name, want, got)
		}
	}
	if len(all.names) < 50 {
		t.Errorf("only %d activities are registered", len(all.names))
	}
}
