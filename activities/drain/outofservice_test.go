package drain

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock/activities/activitytest"
	"drydock/k8s"
	"drydock/k8s/k8stest"
)

// detached answers for volume attachments: there are none.
func detached(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasSuffix(r.URL.Path, "/volumeattachments") {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Has("watch") {
		_, _ = w.Write([]byte(`{"type":"BOOKMARK","object":{"kind":"VolumeAttachment","apiVersion":"storage.k8s.io/v1","metadata":` +
			`{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	}
	_, _ = w.Write([]byte(`{"kind":"VolumeAttachmentList","apiVersion":"storage.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[]}`))
	return true
}

func outOfServiceInput(left time.Duration) OutOfServiceInput {
	return OutOfServiceInput{
		Node: "n1", UID: "uid-1", RunID: activitytest.RunID, BootID: "boot-1", Until: time.Now().Add(left), BlockedSignal: "drain-blocked",
	}
}

func booted(id string) activitytest.NodeOption {
	return func(n *corev1.Node) { n.Status.NodeInfo.BootID = id }
}

func dead(options ...activitytest.NodeOption) *corev1.Node {
	options = append([]activitytest.NodeOption{activitytest.Cordoned, activitytest.Marked(activitytest.WorkflowID, activitytest.RunID), booted("boot-1")}, options...)
	return activitytest.Node("n1", options...)
}

func TestANodeIsTaintedOnceItIsSilent(t *testing.T) {
	tainted := func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, k8s.OutOfServiceTaint) }
	for name, c := range map[string]struct {
		node *corev1.Node
		want TakenOutOfService
	}{
		"silent":                {dead(activitytest.Silent), TakenOutOfService{Tainted: true}},
		"it answers":            {dead(), TakenOutOfService{Answers: true}},
		"it says it is unwell":  {dead(activitytest.NotReady), TakenOutOfService{Answers: true}},
		"restarted":             {dead(booted("boot-2")), TakenOutOfService{Restarted: true}},
		"tainted by another":    {dead(activitytest.Silent, tainted), TakenOutOfService{}},
		"silent after its boot": {dead(activitytest.Silent, booted("boot-2")), TakenOutOfService{Restarted: true}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrain(t, c.node)
			got, err := activitytest.Call(t, d.drains.TakeOutOfService, outOfServiceInput(0))
			if err != nil || got != c.want || k8s.IsOutOfService(d.server.Node("n1")) != (c.want.Tainted || name == "tainted by another") {
				t.Errorf("%+v, %v; taints %v", got, err, d.server.Node("n1").Spec.Taints)
			}
		})
	}
	d := newDrain(t, activitytest.Node("n1", activitytest.Silent))
	if _, err := activitytest.Call(t, d.drains.TakeOutOfService, outOfServiceInput(time.Minute)); activitytest.ErrorType(err) != "NotHolder" {
		t.Errorf("a node that is not held: %v", err)
	}
}

func TestTheTaintStaysUntilThePodsAreGone(t *testing.T) {
	tolerates := func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}
	}
	objects := []k8stest.Object{dead(activitytest.Silent), activitytest.Pod("web"), activitytest.Pod("static", tolerates)}
	d := newDrain(t, objects...)
	d.server.Handle = detached
	if _, err := activitytest.Call(t, d.drains.TakeOutOfService, outOfServiceInput(time.Minute)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan LeftOutOfService, 1)
	go func() {
		left, err := activitytest.Call(t, d.drains.AwaitOutOfService, outOfServiceInput(time.Minute))
		if err != nil {
			t.Error(err)
		}
		ended <- left
	}()
	if p := d.told(); p.Remaining != 1 || p.Blockers[0].Pod != "default/web" {
		t.Errorf("told %+v", p)
	}
	if !k8s.IsOutOfService(d.server.Node("n1")) {
		t.Error("the taint is gone before the pod")
	}
	d.server.Delete(activitytest.Pod("web"))
	select {
	case left := <-ended:
		if left != (LeftOutOfService{}) || k8s.IsOutOfService(d.server.Node("n1")) {
			t.Errorf("%+v; taints %v", left, d.server.Node("n1").Spec.Taints)
		}
	case <-time.After(time.Minute):
		t.Fatal("it did not end")
	}
}

func TestTheTaintGoesWhenItsTimeIsOver(t *testing.T) {
	d := newDrain(t, dead(activitytest.Silent), activitytest.Pod("web"), activitytest.Pod("api"))
	d.server.Handle = detached
	if _, err := activitytest.Call(t, d.drains.TakeOutOfService, outOfServiceInput(time.Minute)); err != nil {
		t.Fatal(err)
	}
	left, err := activitytest.Call(t, d.drains.AwaitOutOfService, outOfServiceInput(0))
	if err != nil || left.Left != "default/api is not deleted yet, and 1 more" || k8s.IsOutOfService(d.server.Node("n1")) {
		t.Errorf("%+v, %v", left, err)
	}
}
