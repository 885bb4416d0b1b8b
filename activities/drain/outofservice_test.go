package drain

import (
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
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

// kubeletLease is the lease of n1 as renewed for the nth time.
func kubeletLease(n int, seconds int32) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "n1"},
		Spec: coordinationv1.LeaseSpec{
			LeaseDurationSeconds: &seconds, RenewTime: &metav1.MicroTime{Time: time.Unix(int64(n), 0)}, // by a clock that is far behind
		},
	}
}

func TestANodeWhoseLeaseIsRenewedIsNotTainted(t *testing.T) {
	d := newDrain(t, dead(activitytest.Silent), kubeletLease(0, 40))
	renewal := 0
	d.server.Handle = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/leases/") {
			renewal++
			d.server.Set(kubeletLease(renewal, 40))
		}
		return false
	}
	got, err := activitytest.Call(t, d.drains.TakeOutOfService, outOfServiceInput(0))
	if err != nil || got != (TakenOutOfService{Answers: true}) || renewal < 2 || len(d.server.Requests("PATCH")) > 0 {
		t.Errorf("%+v, %v after %d renewals; patches %v", got, err, renewal, d.server.Requests("PATCH"))
	}
}

func TestALeaseHasToBeUnchangedForHalfOfItsTime(t *testing.T) {
	d := newDrain(t, dead(activitytest.Silent), kubeletLease(0, 2))
	began := time.Now()
	got, err := activitytest.Call(t, d.drains.TakeOutOfService, outOfServiceInput(0))
	if err != nil || got != (TakenOutOfService{Tainted: true}) || time.Since(began) < time.Second {
		t.Errorf("%+v, %v after %s", got, err, time.Since(began))
	}
}

func TestTheTaintGoesAsSoonAsTheKubeletAnswers(t *testing.T) {
	ready := func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionTrue }
	for name, speak := range map[string]func(*draining){
		"it renews its lease": func(d *draining) { d.server.Set(kubeletLease(1, 40)) },
		"it reports": func(d *draining) {
			node := d.server.Node("n1")
			ready(node)
			d.server.Set(node)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrain(t, dead(activitytest.Silent), kubeletLease(0, 0), activitytest.Pod("web"))
			d.server.Handle = detached
			if taken, err := activitytest.Call(t, d.drains.TakeOutOfService, outOfServiceInput(time.Minute)); err != nil || !taken.Tainted {
				t.Fatalf("%+v, %v", taken, err)
			}
			go func() {
				d.reported()
				speak(d)
			}()
			left, err := activitytest.Call(t, d.drains.AwaitOutOfService, outOfServiceInput(time.Minute))
			if err != nil || left != (LeftOutOfService{CameBack: true}) || k8s.IsOutOfService(d.server.Node("n1")) {
				t.Errorf("%+v, %v; taints %v", left, err, d.server.Node("n1").Spec.Taints)
			}
		})
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
	if p := d.reported(); p.Remaining != 1 || p.Blockers[0].Pod != "default/web" {
		t.Errorf("got %+v", p)
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

func TestALeaseOfYearsKeepsNoNode(t *testing.T) {
	years := k8s.KubeletLease{For: 1 << 31 * time.Second}
	for unchanged, want := range map[time.Duration]bool{20 * time.Second: false, 31 * time.Second: true} {
		q := quiet{lease: years, since: time.Now().Add(-unchanged), known: true}
		if long := q.look(years); long != want {
			t.Errorf("unchanged for %s: long %t, want %t", unchanged, long, want)
		}
	}
}
