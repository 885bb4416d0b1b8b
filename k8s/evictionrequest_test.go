package k8s_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

func TestRequestIsFiledAsJSONAndCanBeFoundAgain(t *testing.T) {
	var body lifecyclev1alpha1.EvictionRequest
	var path, kind, accept string
	client := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		path, kind, accept = r.URL.Path, r.Header.Get("Content-Type"), r.Header.Get("Accept")
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"kind":"EvictionRequest","apiVersion":"lifecycle.k8s.io/v1alpha1"}`)
	})
	api := k8s.EvictionRequests{Client: client, Node: strings.Repeat("long.", 30) + "example", WorkflowID: "node-maintenance/n1/ops", RunID: "run-1"}
	if _, err := api.File(t.Context(), evicted); err != nil {
		t.Fatal(err)
	}
	if path != "/apis/lifecycle.k8s.io/v1alpha1/namespaces/default/evictionrequests" || kind != "application/json" || strings.Contains(accept, "protobuf") {
		t.Errorf("POST %s, %s, accepts %s", path, kind, accept)
	}
	if errs := validation.IsDNS1123Subdomain(body.Name); len(errs) > 0 || body.Name != api.Name(evicted) {
		t.Errorf("name %q: %v", body.Name, errs)
	}
	for key, value := range body.Labels {
		if errs := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(errs) > 0 {
			t.Errorf("label %s=%s: %v", key, value, errs)
		}
	}
	target := body.Spec.Target.Pod
	if body.Spec.Requester != k8s.Requester || body.Spec.Intent != "Eviction" || target == nil || target.Name != "web-1" || target.UID != "pod-uid" {
		t.Errorf("spec %+v", body.Spec)
	}
	if o := body.OwnerReferences; len(o) != 1 || o[0].UID != "pod-uid" || o[0].BlockOwnerDeletion != nil {
		t.Errorf("owners %+v", o)
	}
	other, replacement := api, evicted.DeepCopy()
	other.RunID, replacement.UID = "run-2", "pod-uid-2"
	if api.Name(evicted) == other.Name(evicted) || api.Name(evicted) == api.Name(replacement) {
		t.Error("two requests share a name")
	}
}

func TestRequestIsFiledOnceAndWithdrawnThenRemoved(t *testing.T) {
	s := k8stest.New()
	api := k8s.EvictionRequests{Client: s.Client(t), Node: "n1", WorkflowID: "w", RunID: "run-1"}
	other := api
	other.RunID = "run-2"
	for _, a := range []k8s.EvictionRequests{api, api, other} {
		if r, err := a.File(t.Context(), evicted); err != nil || r.Spec.Intent != "Eviction" {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if err := api.WithdrawAll(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	requests := s.Requests(api.Name(evicted))
	if n := len(requests); n < 2 || !strings.HasPrefix(requests[n-2], "PATCH") || !strings.HasPrefix(requests[n-1], "DELETE") {
		t.Errorf("requests %v", requests)
	}
	if touched := s.Requests(other.Name(evicted)); len(touched) > 0 {
		t.Errorf("those of another run: %v", touched)
	}
	if err := api.Withdraw(t.Context(), "default", api.Name(evicted)); err != nil {
		t.Errorf("withdrawn again: %v", err)
	}
	if err := other.WithdrawAll(t.Context(), func(types.UID) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if touched := s.Requests(other.Name(evicted)); len(touched) != 1 || !strings.HasPrefix(touched[0], "DELETE") {
		t.Errorf("of a pod that is gone: %v", touched)
	}
}

func TestAnAPIThatIsNotServedIsToldFromANamespaceThatIsGone(t *testing.T) {
	for body, want := range map[string]bool{
		"404 page not found": true,
		`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}`:                     true,
		`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"namespaces \"default\" not found","reason":"NotFound","details":{"name":"default","kind":"namespaces"},"code":404}`: false,
		`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"forbidden","reason":"Forbidden","details":{"group":"lifecycle.k8s.io","kind":"evictionrequests"},"code":403}`:       false,
	} {
		client := apiServer(t, func(w http.ResponseWriter, _ *http.Request) {
			if !strings.HasPrefix(body, "{") {
				http.Error(w, body, http.StatusNotFound)
				return
			}
			k8stest.Respond(w, body)
		})
		_, err := k8s.EvictionRequests{Client: client}.File(t.Context(), evicted)
		if k8s.NotServed(err) != want {
			t.Errorf("%v: not served %t", err, !want)
		}
	}
}

func TestAMissingPermissionToRequestIsRecognised(t *testing.T) {
	server := k8stest.New()
	server.Deny("create", "evictionrequests")
	requests := k8s.EvictionRequests{Client: server.Client(t)}
	_, err := requests.File(t.Context(), evicted)
	if got := requests.Answer(t.Context(), err); got.Answer != k8s.MissingPermission || !errors.Is(got.Err, k8s.ErrDenied) {
		t.Errorf("answer %+v", got)
	}
}

func TestReadRequest(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	message := "copying"
	eviction := func(change func(*lifecyclev1alpha1.Eviction)) *lifecyclev1alpha1.Eviction {
		e := &lifecyclev1alpha1.Eviction{}
		e.Status.Requesters = []lifecyclev1alpha1.Requester{{Name: k8s.Requester, Intent: lifecyclev1alpha1.RequesterIntentEviction}}
		e.Status.TargetResponders = []lifecyclev1alpha1.TargetResponder{
			{Name: "a.example/first", State: lifecyclev1alpha1.ResponderStateInterrupted}, {Name: "a.example/mover", State: lifecyclev1alpha1.ResponderStateActive},
		}
		e.Status.Responders = []lifecyclev1alpha1.ResponderStatus{{Name: "a.example/mover", StartTime: &at, ExpectedCompletionTime: &at, Message: &message}}
		if change != nil {
			change(e)
		}
		return e
	}
	says := func(kind, reason, is string) func(*lifecyclev1alpha1.Eviction) {
		return func(e *lifecyclev1alpha1.Eviction) {
			e.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionStatus(is), Reason: reason}}
		}
	}
	observed := &lifecyclev1alpha1.EvictionRequest{Status: lifecyclev1alpha1.EvictionRequestStatus{ObservedGeneration: new(int64(1))}}
	for name, c := range map[string]struct {
		request  *lifecyclev1alpha1.EvictionRequest
		eviction *lifecyclev1alpha1.Eviction
		want     k8s.RequestState
	}{
		"nobody":   {&lifecyclev1alpha1.EvictionRequest{}, nil, k8s.RequestState{}},
		"observed": {observed, nil, k8s.RequestState{Answered: true, Message: "the EvictionRequest is accepted, and there is no Eviction yet"}},
		"by a responder": {observed, eviction(nil), k8s.RequestState{Answered: true,
			Message: "a.example/mover acts on it since 2026-11-21T12:00:00Z, expects to end at 2026-11-21T12:00:00Z: copying", ExpectedBy: at.Time}},
		"nobody's turn": {observed, eviction(func(e *lifecyclev1alpha1.Eviction) { e.Status.TargetResponders = nil }),
			k8s.RequestState{Answered: true, Message: "no responder is active yet"}},
		"somebody else's": {nil, eviction(func(e *lifecyclev1alpha1.Eviction) { e.Status.Requesters[0].Name = "b.example/other" }), k8s.RequestState{}},
		"an earlier one of ours": {nil, eviction(func(e *lifecyclev1alpha1.Eviction) {
			e.Status.Requesters[0].Intent = lifecyclev1alpha1.RequesterIntentWithdrawn
			says("Failed", "CanceledDueToNoRequesters", "True")(e)
		}), k8s.RequestState{}},
		"cancelled, and not yet taken up again": {nil, eviction(says("Failed", "CanceledDueToNoRequesters", "True")), k8s.RequestState{}},
		"no responder is left":                  {nil, eviction(says("Failed", "NoFurtherResponder", "True")), k8s.RequestState{Answered: true, Failed: "NoFurtherResponder"}},
		"failed":                                {nil, eviction(says("TargetEvicted", "EvictionFailed", "False")), k8s.RequestState{Answered: true, Failed: "EvictionFailed"}},
		"evicted":                               {nil, eviction(says("TargetEvicted", "PodDeleted", "True")), k8s.RequestState{Answered: true, Evicted: true}},
		"under way":                             {nil, eviction(says("TargetEvicted", "AwaitingEviction", "False")), k8s.RequestState{Answered: true}},
		"of an older generation": {&lifecyclev1alpha1.EvictionRequest{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Status: lifecyclev1alpha1.EvictionRequestStatus{
			ObservedGeneration: new(int64(1)), Conditions: []metav1.Condition{{Type: "Failed", Status: "True", Reason: "EvictionInvalid"}},
		}}, nil, k8s.RequestState{Answered: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := k8s.ReadRequest(c.request, c.eviction)
			if c.want.Message == "" {
				got.Message, got.ExpectedBy = "", time.Time{}
			}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
