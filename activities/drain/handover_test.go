package drain

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
)

// The eviction of its own pod tells a worker to stop, before the API server has answered that eviction.
func TestAnEvictionThatIsUnderWayWhenTheWorkerStopsCounts(t *testing.T) {
	t.Parallel()
	d := newDrain(t, activitytest.HeldNode(), activitytest.PodOf("web", "web-1"))
	var last atomic.Pointer[api.DrainProgress]
	d.env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		var p api.DrainProgress
		if details.HasValues() && details.Get(&p) == nil {
			last.Store(&p)
		}
	})
	d.server.Handle = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/eviction") {
			close(d.stop)
			select {
			case <-time.After(300 * time.Millisecond):
			case <-r.Context().Done():
			}
		}
		return false
	}
	d.start(evict)
	if _, err := d.end(); err == nil || !strings.Contains(err.Error(), "the worker is stopping") {
		t.Fatal(err)
	}
	if got := last.Load(); got == nil || got.Evicted != 1 {
		t.Errorf("the next attempt gets %+v", got)
	}
}
