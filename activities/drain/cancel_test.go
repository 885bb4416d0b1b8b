package drain

import (
	"context"
	"errors"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/spec"
)

// cancellable lets the workflow cancel the drain.
func (d *draining) cancellable() (cancel func()) {
	background, cancelCause := context.WithCancelCause(d.t.Context())
	d.env.SetWorkerOptions(worker.Options{BackgroundActivityContext: background})
	return func() { cancelCause(temporal.NewCanceledError()) }
}

func TestDrainBeatsBeforeItSeesTheNode(t *testing.T) {
	t.Parallel()
	d := newDrain(t, activitytest.HeldNode(), activitytest.Pod("web-1"))
	d.server.Refuse(500)
	beats := make(chan api.DrainProgress, 100)
	d.env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		var p api.DrainProgress
		if err := details.Get(&p); err != nil {
			t.Error(err)
		}
		select {
		case beats <- p:
		default:
		}
	})
	d.in = func(in *Input) { in.Before = &api.DrainProgress{Evicted: 3} }
	cancel := d.cancellable()
	d.start(evict)
	if p := <-beats; p.Evicted != 3 {
		t.Errorf("it forgot what was done: %+v", p)
	}
	cancel()
	var progress api.DrainProgress
	_, err := d.end()
	var cancelled *temporal.CanceledError
	if !errors.As(err, &cancelled) || cancelled.Details(&progress) != nil || progress.Evicted != 3 {
		t.Errorf("it ended with %+v, %v", progress, err)
	}
}

func TestCancelledDrainWithdrawsItsRequests(t *testing.T) {
	t.Parallel()
	d := newDrain(t, activitytest.HeldNode(), activitytest.Pod("web-1"))
	cancel := d.cancellable()
	d.start(byRequest)
	d.untilAsked("POST /apis/lifecycle.k8s.io/v1alpha1/namespaces/default/evictionrequests")
	cancel()
	if _, err := d.end(); !temporal.IsCanceledError(err) {
		t.Errorf("error = %v", err)
	}
	d.expectNoRequests()
}

func TestDrainWithdrawsWhatIsToStay(t *testing.T) {
	t.Parallel()
	skipped, db, web := activitytest.Pod("skipped"), activitytest.Pod("db", withLabel("app", "db")), activitytest.Pod("web-1")
	d := newDrain(t, activitytest.HeldNode(), skipped, db, web, activitytest.EvictionRequest(skipped, 0), activitytest.EvictionRequest(db, 0), activitytest.EvictionRequest(web, 0))
	d.in = func(in *Input) { in.Skip, in.Drain.PodSelector = []string{"default/skipped"}, "app=web" }
	d.start(spec.Drain{Mode: spec.ModeEvict, Via: spec.ViaEvictionRequest})
	api := k8s.EvictionRequests{RunID: activitytest.RunID}
	for _, p := range []string{api.Name(skipped), api.Name(db)} {
		d.untilAsked("DELETE /apis/lifecycle.k8s.io/v1alpha1/namespaces/default/evictionrequests/" + p)
	}
	if gone := d.server.Requests("PATCH /apis/lifecycle.k8s.io/v1alpha1/namespaces/default/evictionrequests/" + api.Name(web)); len(gone) > 0 {
		t.Errorf("it withdrew what it wants: %v", gone)
	}
	d.server.Delete(web)
	if _, err := d.end(); err != nil {
		t.Error(err)
	}
}
