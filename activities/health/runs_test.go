package health

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/mocks"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
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
	found, err := activitytest.Call(t, s.acts.FindRemediations, RemediationsInput{Check: "workers", TaskQueue: api.DefaultTaskQueue})
	if err != nil || fmt.Sprint(found.Remediations) != "[{n1 r1} {n2 r2}]" {
		t.Errorf("%+v, %v", found, err)
	}
}

// The runs are looked at as soon as the watch has begun, and then as rarely as requests allow, however often watches are begun.
func TestRemediationsThatHaveEndedAreReported(t *testing.T) {
	s := newSite(t, worker("n1", "Unknown"))
	s.acts.Temporal = listing(map[string]enums.WorkflowExecutionStatus{
		"node-remediation/workers/n1/r1": runs, "node-remediation/workers/n2/r2": ended, "node-remediation/workers/n3/another": runs,
	})
	in := check("workers")
	in.Known.Take(s.see(in))
	in.Runs = []RunningRemediation{{Node: "n1", RunID: "r1"}, {Node: "n2", RunID: "r2"}, {Node: "n3", RunID: "r3"}, {Node: "n4", RunID: "r4"}}
	if seen := s.see(in); !slices.Equal(seen.Ended, []string{"n2", "n3", "n4"}) || seen.Observation != nil {
		t.Errorf("%+v", seen)
	}
	s.quiet(in, func() {})
}

// What is refused is named at once, with the command that grants it: a retry heals nothing.
func TestRemediationsThatMayNotBeFoundNameThePermission(t *testing.T) {
	s := newSite(t)
	s.deny("list", "coordination.k8s.io", "leases", "medik8s-leases")
	s.acts.Temporal = listing(nil)
	_, err := activitytest.Call(t, s.acts.FindRemediations, RemediationsInput{Check: "workers", TaskQueue: api.DefaultTaskQueue})
	if activitytest.ErrorType(err) != api.ErrorMissingPermission || !strings.Contains(err.Error(), "medik8s-leases") ||
		!strings.Contains(err.Error(), "`kubectl apply -f deploy/kubernetes/rbac-health.yaml`") {
		t.Errorf("%v", err)
	}
}
