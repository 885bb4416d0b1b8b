package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/mocks"

	"drydock/activities/activitytest"
	"drydock/api"
)

// listing has visibility list workflows, which run or not.
func listing(runs map[string]enums.WorkflowExecutionStatus, listed ...string) *mocks.Client {
	temporal := activitytest.Statuses(runs)
	page := &workflowservice.ListWorkflowExecutionsResponse{}
	for _, id := range listed {
		page.Executions = append(page.Executions, &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "any"}})
	}
	temporal.On("ListWorkflow", mock.Anything, mock.Anything).Return(page, nil)
	return temporal
}

const (
	runs  = enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	ended = enums.WORKFLOW_EXECUTION_STATUS_TERMINATED
)

func TestTheChecksThatRunAreFound(t *testing.T) {
	s := newSite(t)
	s.acts.Temporal = listing(map[string]enums.WorkflowExecutionStatus{
		"health-check/a/run-a": runs, "health-check/b/run-b": runs, "health-check/c/run-c": ended, "north/health-check/d/run-d": runs,
	}, "health-check/b", "health-check/a", "health-check/c", "north/health-check/d", "health-check/b", "node-maintenance/a")
	for _, c := range []struct {
		names []string
		want  string
	}{{nil, "[{a run-a} {b run-b}]"}, {[]string{"b", "c", "e", "b"}, "[{b run-b}]"}} {
		found, err := activitytest.Call(t, s.acts.FindChecks, FindChecksInput{TaskQueue: api.DefaultTaskQueue, Names: c.names})
		if err != nil || fmt.Sprint(found) != c.want {
			t.Errorf("%v: %v, %v, want %s", c.names, found, err, c.want)
		}
	}
}

func TestTheRemediationsThatRunAreFound(t *testing.T) {
	s := newSite(t)
	lease := func(node, holder string) {
		s.kinds.Set(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"node-` + node + `","namespace":"medik8s-leases"},"spec":{"holderIdentity":"` + holder + `"}}`)
	}
	s.kinds.Set(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"medik8s-leases"}}`)
	lease("n2", "NodeHealthCheck-workers") // visibility does not know it yet
	lease("n3", "NodeHealthCheck-others")
	lease("n4", "NodeHealthCheck-workers")
	s.acts.Temporal = listing(map[string]enums.WorkflowExecutionStatus{
		"node-remediation/workers/n1/r1": runs, "node-remediation/workers/n2/r2": runs, "node-remediation/others/n3/r3": runs,
		"node-remediation/workers/n4/r4": ended, "node-remediation/workers/n5/r5": ended,
	}, "node-remediation/workers/n1", "node-remediation/others/n3", "node-remediation/workers/n5", "north/node-remediation/workers/n6")
	stock, err := activitytest.Call(t, s.acts.StockRemediations, StockInput{Check: "workers", TaskQueue: api.DefaultTaskQueue})
	if err != nil || fmt.Sprint(stock.Remediations) != "[{n1 r1} {n2 r2}]" {
		t.Errorf("%+v, %v", stock, err)
	}
}

func TestChecksAreToldWhatConcernsThem(t *testing.T) {
	s, told := newSite(t), make(chan string, 10)
	temporal := &mocks.Client{}
	temporal.On("SignalWorkflow", mock.Anything, mock.Anything, "", api.SignalHealthNews, mock.Anything).Return(
		func(_ context.Context, id, _, _ string, payload any) error {
			switch id {
			case "health-check/gone":
				return serviceerror.NewNotFound("it does not run")
			case "health-check/full":
				return errors.New("too many signals")
			}
			told <- fmt.Sprintf("%s %d", id, payload.(api.HealthNews).Sequence)
			return nil
		})
	s.acts.Temporal = temporal
	news := func(checks ...string) (in TellInput) {
		for i, check := range checks {
			one := AddressedNews{Check: check}
			one.News.Sequence = i + 1
			in.News = append(in.News, one)
		}
		return in
	}
	result, err := activitytest.Call(t, s.acts.TellChecks, news("a", "gone", "b"))
	got := []string{<-told, <-told}
	slices.Sort(got)
	if err != nil || fmt.Sprint(result.Ended) != "[gone]" || len(result.Missed) != 0 || fmt.Sprint(got) != "[health-check/a 1 health-check/b 3]" {
		t.Errorf("%+v, %v, told %q", result, err, got)
	}
	// At first what goes wrong is tried again: it may be the server's, and then it is that of all.
	if _, err := activitytest.Call(t, s.acts.TellChecks, news("a", "full")); err == nil {
		t.Error("an error is taken for that of one check at once")
	}
}

func TestTheWatchHearsAnIntentWhetherOrNotItRuns(t *testing.T) {
	s, temporal := newSite(t), &mocks.Client{}
	intent := api.HealthIntent{Name: "workers", RunID: "r", CreatedAt: time.Unix(1, 0).UTC(), Revision: 3}
	temporal.On("SignalWithStartWorkflow", mock.Anything, "drydock-health", api.SignalHealthIntent, intent, mock.MatchedBy(func(o client.StartWorkflowOptions) bool {
		return o.ID == "drydock-health" && o.TaskQueue != ""
	}), api.HealthWatchType).Return(&mocks.WorkflowRun{}, nil).Once()
	s.acts.Temporal = temporal
	env := activitytest.Environment()
	env.RegisterActivity(s.acts.SendHealthIntent)
	if _, err := env.ExecuteActivity(s.acts.SendHealthIntent, intent); err != nil || !temporal.AssertExpectations(t) {
		t.Error(err)
	}
}

// What is refused is named at once, with the command that grants it: a retry heals nothing.
func TestRemediationsThatMayNotBeFoundNameThePermission(t *testing.T) {
	s := newSite(t)
	s.deny("list", "coordination.k8s.io", "leases", "medik8s-leases")
	s.acts.Temporal = listing(nil)
	_, err := activitytest.Call(t, s.acts.StockRemediations, StockInput{Check: "workers", TaskQueue: api.DefaultTaskQueue})
	if activitytest.ErrorType(err) != api.ErrorMissingPermission || !strings.Contains(err.Error(), "medik8s-leases") ||
		!strings.Contains(err.Error(), "`kubectl apply -f deploy/kubernetes/rbac-health.yaml`") {
		t.Errorf("%v", err)
	}
}
