package drain

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/spec"
)

var byRequest = spec.Drain{Mode: spec.ModeEvict, Via: spec.ViaEvictionRequest}

// evictionOf is what a controller makes of a request; the responder says a word.
func evictionOf(p *corev1.Pod, says string) *lifecyclev1alpha1.Eviction {
	return &lifecyclev1alpha1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: "any", Namespace: p.Namespace},
		Spec:       lifecyclev1alpha1.EvictionSpec{Target: lifecyclev1alpha1.EvictionTarget{Pod: &lifecyclev1alpha1.EvictionPodReference{Name: p.Name, UID: p.UID}}},
		Status: lifecyclev1alpha1.EvictionStatus{
			Requesters:       []lifecyclev1alpha1.Requester{{Name: k8s.Requester, Intent: lifecyclev1alpha1.RequesterIntentEviction}},
			TargetResponders: []lifecyclev1alpha1.TargetResponder{{Name: "a.example/mover", State: lifecyclev1alpha1.ResponderStateActive}},
			Responders:       []lifecyclev1alpha1.ResponderStatus{{Name: "a.example/mover", Message: &says}},
		},
	}
}

// direct are the evictions by Drydock itself.
func (d *draining) direct() []string { return d.server.Requests("/pods/web-1/eviction") }

func (d *draining) expectNoRequests() {
	d.t.Helper()
	w := httptest.NewRecorder()
	d.server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/apis/lifecycle.k8s.io/v1alpha1/evictionrequests", nil))
	if !strings.Contains(w.Body.String(), `"items":[]`) {
		d.t.Errorf("left behind: %s", w.Body)
	}
}

func TestDrainByRequestLeavesThePodsToTheirResponder(t *testing.T) {
	t.Parallel()
	web := activitytest.Pod("web-1")
	d := newDrain(t, activitytest.HeldNode(), web).start(byRequest)
	d.untilAsked("POST /apis/lifecycle.k8s.io/v1alpha1/namespaces/default/evictionrequests")
	copying, expected := evictionOf(web, "copying"), metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second))
	copying.Status.Responders[0].ExpectedCompletionTime = &expected
	d.server.Set(copying)
	progress := <-d.blocked
	if len(progress.Blockers) != 1 || !progress.Blockers[0].ExpectedBy.Equal(expected.Time) || progress.Blockers[0].Reason != "EvictionRequested" || !strings.Contains(progress.Blockers[0].Message, "a.example/mover acts on it, expects to end at ") {
		t.Errorf("the workflow got %+v", progress)
	}
	if filed := d.server.Requests("POST /apis/lifecycle"); len(filed) != 1 {
		t.Errorf("filed %v", filed)
	}
	d.server.Delete(web)
	drained, err := d.end()
	if err != nil || drained.Evicted != 1 || drained.Direct != 0 || len(d.direct()) != 0 {
		t.Errorf("drained %+v, %v; evictions %v", drained, err, d.direct())
	}
	d.expectNoRequests()
}

func TestDrainByRequestEvictsWhatNobodyAnswersFor(t *testing.T) {
	web := activitytest.Pod("web-1")
	failed := evictionOf(web, "")
	failed.Status.Conditions = []metav1.Condition{{Type: "Failed", Status: "True", Reason: "NoFurtherResponder", Message: "no disk"}}
	for name, c := range map[string]struct {
		objects []k8stest.Object
		answer  func(w http.ResponseWriter, r *http.Request) bool
		why     string
	}{
		"the API is not served": {nil, func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasPrefix(r.URL.Path, "/apis/lifecycle") {
				return false
			}
			http.Error(w, "404 page not found", http.StatusNotFound)
			return true
		}, "does not serve lifecycle.k8s.io/v1alpha1"},
		"it is not accepted": {nil, func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/evictionrequests") {
				return false
			}
			k8stest.Respond(w, `{"kind":"Status","status":"Failure","message":"pods of a group are not supported","reason":"Invalid","code":422}`)
			return true
		}, "pods of a group are not supported"},
		"it failed":                         {[]k8stest.Object{failed}, nil, "NoFurtherResponder: no disk"},
		"an earlier attempt had no answer":  {[]k8stest.Object{activitytest.EvictionRequest(web, time.Minute)}, nil, "no controller answered the EvictionRequest within 30s"},
		"a pod that has finished is at end": {[]k8stest.Object{activitytest.Pod("web-1", succeeded)}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDrain(t, append([]k8stest.Object{activitytest.HeldNode(), web}, c.objects...)...)
			d.server.Handle = c.answer
			drained, err := d.start(byRequest).end()
			if err != nil || len(d.direct()) != 1 || !strings.Contains(drained.DirectWhy, c.why) || (drained.Direct == 1) != (c.why != "") {
				t.Errorf("drained %+v, %v; evictions %v", drained, err, d.direct())
			}
			d.server.Handle = nil
			d.expectNoRequests()
		})
	}
}

func TestDrainByRequestNamesAMissingPermission(t *testing.T) {
	for name, part := range map[string][2]string{
		"to list": {"list", "evictions"}, "to watch": {"watch", "evictions"}, "to take back": {"patch", "evictionrequests"},
		"to file": {"create", "evictionrequests"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDrain(t, activitytest.HeldNode(), activitytest.Pod("web-1"))
			d.server.Deny(part[0], part[1])
			_, err := d.start(byRequest).end()
			if activitytest.ErrorType(err) != api.ErrorMissingPermission || !strings.Contains(err.Error(), part[1]) {
				t.Errorf("error = %v", err)
			}
			if len(d.direct()) != 0 {
				t.Errorf("evicted %v", d.direct())
			}
		})
	}
}

func TestRequestThatSomebodyTookBackIsFiledAgainLater(t *testing.T) {
	t.Parallel()
	web := activitytest.Pod("web-1")
	d := newDrain(t, activitytest.HeldNode(), web).start(byRequest)
	d.untilAsked("POST /apis/lifecycle.k8s.io/v1alpha1/namespaces/default/evictionrequests")
	d.server.Set(evictionOf(web, "copying"))
	<-d.blocked
	before := len(d.server.Requests("POST /apis/lifecycle"))
	d.server.Delete(activitytest.EvictionRequest(web, 0))
	time.Sleep(heartbeat.Every + heartbeat.Every/2) // that nothing is filed at once has no event to wait for
	if after := len(d.server.Requests("POST /apis/lifecycle")); after != before || len(d.direct()) != 0 {
		t.Errorf("filed %d times more, evictions %v", after-before, d.direct())
	}
	d.server.Delete(web)
	if _, err := d.end(); err != nil {
		t.Error(err)
	}
}
