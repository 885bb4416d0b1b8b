package e2e

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
)

// TestAForeignWorkflowCallsNoActivity is what somebody tries who may write in the namespace: a workflow that his own worker runs, on a
// queue of his own and under any type, schedules activities on the queue of Drydock's worker.
func TestAForeignWorkflowCallsNoActivity(t *testing.T) {
	s := prepareSite(t, "")
	r := s.receivers("whsec_c2lnbmVk", "unused")
	s.options.Config += fmt.Sprintf(`
hooks:
  move: {http: {url: "%s/move/{{.Node}}/{{.Ticket}}", bearerToken: %s}}
`, r.http.URL, r.secret("token", "canary-of-a-hook"))
	s.startWorker()

	drydocks, own := api.TaskQueue(s.cluster, "drydock"), s.cluster+"-somebodys"
	call := func(ctx workflow.Context, activity string, in any) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			TaskQueue: drydocks, StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
		})
		return workflow.ExecuteActivity(ctx, activity, in).Get(ctx, nil)
	}
	foreign := worker.New(s.temporal, own, worker.Options{})
	for _, kind := range []string{api.NodeMaintenanceType, api.SchedulerType, "Somebodys"} {
		foreign.RegisterWorkflowWithOptions(func(ctx workflow.Context, activity string) error {
			if activity == "ObserveNodes" {
				return call(ctx, activity, cluster.ObserveInput{})
			}
			forged := facts.Subject{Node: "worker-01", Requestor: "ops", Ticket: "forged", WorkflowID: api.MaintenanceID(s.cluster, "worker-01", "ops")}
			return call(ctx, activity, checks.HookInput{Hook: "move", Subject: forged, Key: "forged"})
		}, workflow.RegisterOptions{Name: kind})
	}
	if err := foreign.Start(); err != nil {
		t.Fatal(err)
	}
	defer foreign.Stop()

	for _, kind := range []string{api.NodeMaintenanceType, api.SchedulerType, "Somebodys"} {
		for _, activity := range []string{"CallHook", "ObserveNodes"} {
			err := s.startKind(kind, s.cluster+"/somebodys/"+kind+"/"+activity, own, activity).Get(s.ctx, nil)
			var refused *temporal.ApplicationError
			if !errors.As(err, &refused) || refused.Type() != api.ErrorForeignCaller {
				t.Errorf("%s called by a %s of somebody's: got %v, want %s", activity, kind, err, api.ErrorForeignCaller)
			}
		}
	}
	if got := r.requests("/move/worker-01/forged"); len(got) > 0 {
		t.Errorf("the hook's receiver got %d requests, the first with %q", len(got), got[0].header.Get("Authorization"))
	}
}
