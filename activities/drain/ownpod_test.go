package drain

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/k8s/k8stest"
)

// With the worker's own pod the drain is handed over: what else can go goes before it.
func TestTheWorkersOwnPodIsEvictedLast(t *testing.T) {
	t.Parallel()
	d := newDrain(t, activitytest.HeldNode(), activitytest.Node("n2"), activitytest.Pod("batch", succeeded), activitytest.PodOf("drydock", "drydock"), activitytest.Pod("lonely", bare),
		activitytest.Pod("web-1"), budget("web", "web", 0))
	d.drains.Pod = d.server.Pod("default", "drydock").UID
	var allowed atomic.Bool
	refuse := refusing("web-1")
	d.server.Handle = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/batch/eviction") { // a finished pod keeps nobody
			k8stest.Respond(w, `{"kind":"Status","status":"Failure","message":"etcd","code":500}`)
			return true
		}
		return !allowed.Load() && refuse(w, r)
	}
	d.start(evict)
	if progress := d.reported(); progress.Remaining != 3 || slices.Contains(d.evictions(), "drydock") {
		t.Errorf("evicted %v, and the workflow got %+v", d.evictions(), progress)
	}
	d.server.Delete(activitytest.Pod("lonely", bare))
	allowed.Store(true)
	d.server.Set(budget("web", "web", 1))
	if drained, err := d.end(); err != nil || drained.Evicted != 2 {
		t.Errorf("drained %+v, %v", drained, err)
	}
	if got := d.evictions(); got[len(got)-1] != "drydock" || strings.Count(strings.Join(got, " "), "drydock") != 1 {
		t.Errorf("evicted %v", got)
	}
}

// A worker that no other node takes keeps itself, and says so.
func TestTheOnlyWorkerStaysWhereItCanGoNowhere(t *testing.T) {
	t.Parallel()
	d := newDrain(t, activitytest.HeldNode(), activitytest.Node("n2", activitytest.Cordoned), activitytest.PodOf("drydock", "drydock"), activitytest.Pod("web-1"))
	d.drains.Pod = d.server.Pod("default", "drydock").UID
	d.start(evict)
	progress := d.reported()
	if len(progress.Blockers) != 1 || progress.Blockers[0].Reason != "OnlyWorker" || !strings.Contains(progress.Blockers[0].Message, "drydock drain skip n1 default/drydock") {
		t.Errorf("the workflow got %+v", progress)
	}
	if got := d.evictions(); !slices.Equal(got, []string{"web-1"}) {
		t.Errorf("evicted %v", got)
	}
	d.server.Set(activitytest.Node("n2"))
	if drained, err := d.end(); err != nil || drained.Evicted != 2 {
		t.Errorf("drained %+v, %v", drained, err)
	}
}
