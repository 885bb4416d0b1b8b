package activities

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	corev1 "k8s.io/api/core/v1"

	"drydock/api"
	"drydock/k8s"
	"drydock/rules/spec"
)

func TestActivityThatStoodStillDoesNotWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for name, c := range map[string]struct {
			pulse *pulse
			alive bool
		}{
			"none":       {nil, true},
			"fresh":      {&pulse{last: now.Add(-silence)}, true},
			"silent":     {&pulse{last: now.Add(-silence - time.Millisecond)}, false},
			"once again": {&pulse{last: now, lost: true}, false},
		} {
			if err := c.pulse.alive(); (err == nil) != c.alive {
				t.Errorf("%s: error = %v", name, err)
			}
		}
		err := within(t, activityEnvironment(), func(ctx context.Context) error {
			p := &pulse{last: time.Now()}
			time.Sleep(silence)
			p.beat(ctx)
			if err := p.alive(); err != nil {
				t.Error(err)
			}
			time.Sleep(silence + time.Second)
			p.beat(ctx)
			p.beat(ctx)
			if p.alive() == nil {
				t.Error("a pause that another attempt may have begun in is forgotten")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestFenceRefusesWithoutAHeartbeat(t *testing.T) {
	held := watchedNode(t, heldN1())
	held.pulse = &pulse{last: time.Now().Add(-time.Minute)}
	held.uid, held.workflowID, held.runID, held.pods = "uid-1", testWorkflow, testRun, &k8s.Watch[*corev1.Pod]{}
	if err := held.fence(); err == nil || !contains(err.Error(), "no heartbeat") {
		t.Errorf("error = %v", err)
	}
	held.pulse = nil
	if err := held.fence(); err != nil {
		t.Error(err)
	}
}

// cancellable lets the workflow cancel the drain.
func (d *draining) cancellable() (cancel func()) {
	background, cancelCause := context.WithCancelCause(d.t.Context())
	d.env.SetWorkerOptions(worker.Options{BackgroundActivityContext: background})
	return func() { cancelCause(temporal.NewCanceledError()) }
}

func TestDrainBeatsBeforeItSeesTheNode(t *testing.T) {
	t.Parallel()
	d := newDrain(t, heldN1(), pod("web-1"))
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
	d.in = func(in *DrainInput) { in.Before = &api.DrainProgress{Evicted: 3} }
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
	d := newDrain(t, heldN1(), pod("web-1"))
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
	skipped, db, web := pod("skipped"), pod("db", withLabel("app", "db")), pod("web-1")
	d := newDrain(t, heldN1(), skipped, db, web, requestFor(skipped, 0), requestFor(db, 0), requestFor(web, 0))
	d.in = func(in *DrainInput) { in.Skip, in.Drain.PodSelector = []string{"default/skipped"}, "app=web" }
	d.start(spec.Drain{Mode: spec.ModeEvict, Via: spec.ViaEvictionRequest})
	api := k8s.EvictionRequests{RunID: testRun}
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
