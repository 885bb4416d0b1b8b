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
	"go.temporal.io/sdk/converter"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows"
)

// types are the workflows that the packages of this folder make.
var types = map[string]string{
	"auditrecord": api.AuditRecordType, "doctor": api.DoctorType, "health": api.HealthCheckType,
	"lockstep": api.LockstepType, "maintenance": api.NodeMaintenanceType, "notification": api.NotificationType, "plan": api.MaintenancePlanType,
	"permissions": api.PermissionsType, "planrun": api.PlanRunType, "preflight": api.PreflightType, "profilereport": api.ProfileReportType, "profile": api.ProfilesType,
	"profiletransition": api.ProfileTransitionType, "remediation": api.NodeRemediationType, "scheduler": api.SchedulerType, "windows": api.WindowsType,
}

// callable collects the names of activities, and the types of their inputs.
type callable struct {
	names  []string
	inputs map[string]reflect.Type
}

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
			if method.Type.NumIn() == 3 {
				r.inputs[method.Name] = method.Type.In(2)
			}
		}
	}
}

func (r *callable) RegisterActivityWithOptions(any, activity.RegisterOptions)    { panic("not used") }
func (r *callable) RegisterDynamicActivity(any, activity.DynamicRegisterOptions) { panic("not used") }

func callables() callable {
	all := callable{inputs: map[string]reflect.Type{}}
	workflows.RegisterActivities(&all, workflows.Activities{})
	return all
}

// clusterwide are the activities whose input names nodes, checks or workflows that its caller is not about, and why that is right.
var clusterwide = map[string]string{
	"BeginShared":       "the lockstep holds nodes of its whole cluster, by maintenances whose IDs the activity makes itself",
	"EndShared":         "as BeginShared",
	"SteerShared":       "as BeginShared",
	"ReadEvents":        "a notification reads what a maintenance says of itself, if that tells the notification's channel",
	"SendProfileNotice": "Profiles looks after every node of its cluster",
	"Same":              "it looks whether another workflow does what the caller would begin",
	"Collect":           "activities/caller/signals.go says whose events it collects",
	"Look":              "a doctor looks at all of its cluster",
	"ReportProfiles":    "it only reads",
	"KeepRecord":        "it reads what a maintenance, plan or remediation says of itself",
}

// names reports whether a type of an input names a node, a holder or the like, beside lists of them.
func names(of reflect.Type) bool {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return false
	}
	for i := range of.NumField() {
		field := of.Field(i)
		switch name, _, _ := strings.Cut(field.Tag.Get("json"), ","); {
		case field.Anonymous && names(field.Type):
			return true
		case slices.Contains([]string{"node", "nodes", "targets", "workflowId", "requestId", "check", "profile", "requestor", "lockstep", "scheduler"}, name):
			return true
		case (name == "subject" || name == "maintenance") && names(field.Type):
			return true
		}
	}
	return false
}

// TestEveryInputThatNamesANodeIsComparedWithItsCaller: who adds an activity says what its input claims of its caller.
func TestEveryInputThatNamesANodeIsComparedWithItsCaller(t *testing.T) {
	all, compared := callables(), 0
	for name, input := range all.inputs {
		has := caller.HasSubject(reflect.New(input).Elem().Interface())
		if has {
			compared++
		}
		switch why := clusterwide[name]; {
		case names(input) && !has && why == "":
			t.Errorf("activity %s: %s names what it acts on, and has no method About (activities/caller)", name, input)
		case why != "" && (has || !names(input)):
			t.Errorf("activity %s: it is compared, or names nothing, and needs no exception", name)
		}
	}
	for name := range clusterwide {
		if _, ok := all.inputs[name]; !ok {
			t.Errorf("there is no activity %s", name)
		}
	}
	if compared < 30 {
		t.Errorf("only %d inputs are compared", compared)
	}
}

// TestRecordedInputsAreTheirCallers: what workflows of earlier releases hand to activities is not refused.
func TestRecordedInputsAreTheirCallers(t *testing.T) {
	all, compared, signalled := callables(), map[string]int{}, 0
	for name, history := range recorded(t) {
		began := history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
		who := caller.Identity{
			Type: began.GetWorkflowType().GetName(), WorkflowID: began.GetWorkflowId(), FirstRunID: began.GetFirstExecutionRunId(),
			Cluster: api.ClusterOf(began.GetTaskQueue().GetName()), Parent: began.GetParentWorkflowExecution().GetWorkflowId(),
		}
		for _, event := range history.GetEvents() {
			scheduled := event.GetActivityTaskScheduledEventAttributes()
			activity := scheduled.GetActivityType().GetName()
			kind, ok := all.inputs[activity]
			if !ok {
				continue
			}
			input := reflect.New(kind)
			if err := converter.GetDefaultDataConverter().FromPayloads(scheduled.GetInput(), input.Interface()); err != nil {
				t.Errorf("%s: input of %s: %v", name, activity, err)
				continue
			}
			if err := who.Check(input.Elem().Interface()); err != nil {
				t.Errorf("%s: %s: %v", name, activity, err)
			}
			compared[activity]++
			if released, ok := input.Elem().Interface().(node.ReleaseInput); ok && released.Then != nil {
				signalled++
				if err := who.MaySignal(activity, released.Then.WorkflowID, released.Then.Name); err != nil {
					t.Errorf("%s: %s: %v", name, activity, err)
				}
			}
		}
	}
	if len(compared) < 10 || compared["HoldNode"] == 0 || compared["Drain"] == 0 || signalled == 0 {
		t.Errorf("histories have only %v, and %d signals", compared, signalled)
	}
}

// readSources reads the packages of this folder, tests apart, by the folder that they are in.
func readSources(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		all[strings.Split(path, string(filepath.Separator))[0]] += string(source)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sharing are the workflows that use a package: they call what it calls.
func sharing(sources map[string]string, used string) (kinds []string) {
	for folder, source := range sources {
		if strings.Contains(source, `"drydock.dev/drydock/workflows/`+used+`"`) {
			kinds = append(kinds, types[folder])
		}
	}
	return kinds
}

// TestEveryActivitySaysWhoMayCallIt: the table of callers is what the source and the histories of the workflows call.
func TestEveryActivitySaysWhoMayCallIt(t *testing.T) {
	calls := map[string][]string{}
	naming := regexp.MustCompile(`\bcall\.(?:Nodes|Drains|Cluster|Executions|Settings|Preflights|Doctors|Checks|Deliveries|Policies|Plans|Windows|Lockstep|Health|Profiles)\.([A-Z]\w+)`)
	sources := readSources(t)
	for folder, source := range sources {
		kinds := []string{types[folder]}
		if folder == "controller" || folder == "announce" {
			kinds = sharing(sources, folder)
		}
		for _, found := range naming.FindAllStringSubmatch(source, -1) {
			for _, kind := range kinds {
				if kind != "" && !slices.Contains(calls[found[1]], kind) {
					calls[found[1]] = append(calls[found[1]], kind)
				}
			}
		}
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
	all := callables()
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
