package trust

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/checks"
	"drydock.dev/drydock/activities/cluster"
	"drydock.dev/drydock/api"
	facts "drydock.dev/drydock/checks"
	"drydock.dev/drydock/lab/e2e/site"
)

// TestAForeignWorkflowCallsNoActivity is what somebody tries who may write in the namespace: a workflow that his own worker runs, on a
// queue of his own and under any type, schedules activities on the queue of Drydock's worker.
func TestAForeignWorkflowCallsNoActivity(t *testing.T) {
	s := site.Prepare(t, "")
	r := s.Receivers("whsec_c2lnbmVk", "unused")
	s.Options.Config += fmt.Sprintf(`
hooks:
  move: {http: {url: "%s/move/{{.Node}}/{{.Ticket}}", bearerToken: %s}}
`, r.HTTP.URL, r.Secret("token", "canary-of-a-hook"))
	s.StartWorker()

	drydocks, own := api.TaskQueue(s.Cluster, "drydock"), s.Cluster+"-somebodys"
	call := func(ctx workflow.Context, activity string, in any) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			TaskQueue: drydocks, StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
		})
		return workflow.ExecuteActivity(ctx, activity, in).Get(ctx, nil)
	}
	foreign := worker.New(s.Temporal, own, worker.Options{})
	for _, kind := range []string{api.NodeMaintenanceType, api.SchedulerType, "Somebodys"} {
		foreign.RegisterWorkflowWithOptions(func(ctx workflow.Context, activity string) error {
			if activity == "ObserveNodes" {
				return call(ctx, activity, cluster.ObserveInput{})
			}
			forged := facts.Subject{Node: "worker-01", Requestor: "ops", Ticket: "forged", WorkflowID: api.MaintenanceID(s.Cluster, "worker-01", "ops")}
			return call(ctx, activity, checks.HookInput{Hook: "move", Subject: forged, Key: "forged"})
		}, workflow.RegisterOptions{Name: kind})
	}
	if err := foreign.Start(); err != nil {
		t.Fatal(err)
	}
	defer foreign.Stop()

	for _, kind := range []string{api.NodeMaintenanceType, api.SchedulerType, "Somebodys"} {
		for _, activity := range []string{"CallHook", "ObserveNodes"} {
			err := startKind(s, kind, s.Cluster+"/somebodys/"+kind+"/"+activity, own, activity).Get(s.Ctx, nil)
			var refused *temporal.ApplicationError
			if !errors.As(err, &refused) || refused.Type() != api.ErrorForeignCaller {
				t.Errorf("%s called by a %s of somebody's: got %v, want %s", activity, kind, err, api.ErrorForeignCaller)
			}
		}
	}
	if got := r.Requests("/move/worker-01/forged"); len(got) > 0 {
		t.Errorf("the hook's receiver got %d requests, the first with %q", len(got), got[0].Header.Get("Authorization"))
	}
}
