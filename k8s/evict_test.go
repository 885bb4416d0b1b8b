package k8s_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/k8s/kube"
)

// apiServer is a real client of a server that answers as it is told.
func apiServer(t *testing.T, answer http.HandlerFunc) kube.Interface {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	client, err := kube.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

var evicted = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "default", UID: "pod-uid"}}

// What kube-apiserver 1.36 answers to an eviction (pkg/registry/core/pod/storage/eviction.go, the responsewriters, the
// admission plugins and the priority-and-fairness filter of k8s.io/apiserver).
func TestAnswersToAnEviction(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",`
	for name, c := range map[string]struct {
		body       string
		text       bool
		allowed    bool // so says the authorizer when it is asked
		want       k8s.Answer
		budget     string
		message    string
		retryAfter time.Duration
	}{
		"accepted": {
			body: `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}`, want: k8s.Accepted,
		},
		"the budget is spent": {
			body: status + `"message":"Cannot evict pod as it would violate the pod's disruption budget.","reason":"TooManyRequests","details":{"causes":[{"reason":"DisruptionBudget","message":"The disruption budget web needs 3 healthy pods and has 3 currently"}]},"code":429}`,
			want: k8s.BudgetRefused, budget: "web", message: "needs 3 healthy pods and has 3 currently",
		},
		"the budget's controller failed": {
			body: status + `"message":"Cannot evict pod as it would violate the pod's disruption budget.","reason":"TooManyRequests","details":{"causes":[{"reason":"DisruptionBudget","message":"The disruption budget web does not allow evicting pods currently because it failed sync: found no controllers for pod \"web-1\""}]},"code":429}`,
			want: k8s.BudgetRefused, budget: "web", message: "failed sync",
		},
		"the budget is being processed": {
			body: status + `"message":"Cannot evict pod as it would violate the pod's disruption budget.","reason":"TooManyRequests","details":{"causes":[{"reason":"DisruptionBudget","message":"The disruption budget web is still being processed by the server."}],"retryAfterSeconds":10},"code":429}`,
			want: k8s.BudgetRefused, budget: "web", message: "still being processed", retryAfter: 10 * time.Second,
		},
		"the budget has too many evictions under way": {
			body: status + `"message":"poddisruptionbudget.policy \"web\" is forbidden: DisruptedPods map too big - too many evictions not confirmed by PDB controller","reason":"Forbidden","details":{"name":"web","group":"policy","kind":"poddisruptionbudget"},"code":403}`,
			want: k8s.BudgetRefused, budget: "web", message: "too many evictions not confirmed",
		},
		"the budget's status makes no sense": {
			body: status + `"message":"poddisruptionbudget.policy \"web\" is forbidden: pdb disruptions allowed is negative","reason":"Forbidden","details":{"name":"web","group":"policy","kind":"poddisruptionbudget"},"code":403}`,
			want: k8s.BudgetRefused, budget: "web", message: "negative",
		},
		"several budgets": {
			body: status + `"message":"This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.","code":500}`,
			want: k8s.SeveralBudgets, message: "more than one PodDisruptionBudget",
		},
		"the budget could not be updated in time": {
			body: status + `"message":"Timeout: couldn't update PodDisruptionBudget \"web\" due to conflicts","reason":"Timeout","details":{"retryAfterSeconds":10},"code":504}`,
			want: k8s.Failed, message: "due to conflicts", retryAfter: 10 * time.Second,
		},
		"the server asks to wait for an hour": {
			body: status + `"message":"Timeout: later","reason":"Timeout","details":{"retryAfterSeconds":3600},"code":504}`,
			want: k8s.Failed, message: "later", retryAfter: 30 * time.Second,
		},
		"the server throttles": {
			body: "Too many requests, please try again later.\n", text: true,
			want: k8s.Throttled, retryAfter: time.Second,
		},
		"a webhook has begun a migration": {
			body: status + `"message":"admission webhook \"guard.example.com\" denied the request: migration of web-1 has begun","reason":"TooManyRequests","code":429}`,
			want: k8s.WebhookRefused, message: "migration of web-1 has begun",
		},
		"a webhook asks for patience without a reason": {
			body: status + `"message":"admission webhook \"guard.example.com\" denied the request without explanation","code":429}`,
			want: k8s.WebhookRefused, message: "guard.example.com",
		},
		"a webhook forbids": {
			body: status + `"message":"admission webhook \"guard.example.com\" denied the request: not in working hours","reason":"Forbidden","code":403}`,
			want: k8s.WebhookRefused, message: "not in working hours",
		},
		"a webhook is away": {
			body: status + `"message":"Internal error occurred: failed calling webhook \"guard.example.com\": failed to call webhook: Post \"https://guard.default.svc:443/?timeout=10s\": dial tcp 10.0.0.1:443: connect: connection refused","reason":"InternalError","details":{"causes":[{"message":"failed calling webhook"}]},"code":500}`,
			want: k8s.Failed, message: "failed calling webhook",
		},
		"a policy forbids": {
			body: status + `"message":"pods \"web-1\" is forbidden: ValidatingAdmissionPolicy 'no-evictions' with binding 'all' denied request: not in working hours","reason":"Forbidden","details":{"name":"web-1","kind":"pods"},"code":403}`,
			want: k8s.Failed, message: "not in working hours",
		},
		"another pod of the name": {
			body: status + `"message":"Operation cannot be fulfilled on Pod \"web-1\": the UID in the precondition (pod-uid) does not match the UID in record (other). The object might have been deleted and then recreated","reason":"Conflict","details":{"name":"web-1","kind":"Pod"},"code":409}`,
			want: k8s.PodChanged,
		},
		"no pod": {
			body: status + `"message":"pods \"web-1\" not found","reason":"NotFound","details":{"name":"web-1","kind":"pods"},"code":404}`,
			want: k8s.PodGone,
		},
		"no permission": {
			body: status + `"message":"pods \"web-1\" is forbidden: User \"system:serviceaccount:drydock:drydock\" cannot create resource \"pods/eviction\" in API group \"\" in the namespace \"default\"","reason":"Forbidden","details":{"name":"web-1","kind":"pods"},"code":403}`,
			want: k8s.MissingPermission, message: "cannot create resource",
		},
		"no permission, with a reason": {
			body: status + `"message":"pods \"web-1\" is forbidden: User \"drydock\" cannot create resource \"pods/eviction\" in API group \"\" in the namespace \"default\": RBAC: clusterrole.rbac.authorization.k8s.io \"drydock\" not found","reason":"Forbidden","details":{"name":"web-1","kind":"pods"},"code":403}`,
			want: k8s.MissingPermission, message: `"drydock" not found`,
		},
		"no permission, as it was before": {
			body:    status + `"message":"pods \"web-1\" is forbidden: User \"drydock\" cannot create resource \"pods/eviction\" in API group \"\" in the namespace \"default\"","reason":"Forbidden","details":{"name":"web-1","kind":"pods"},"code":403}`,
			allowed: true, want: k8s.Failed, message: "cannot create resource",
		},
		"the namespace goes": {
			body: status + `"message":"pods \"web-1\" is forbidden: unable to create new content in namespace default because it is being terminated","reason":"Forbidden","details":{"name":"web-1","kind":"pods","causes":[{"reason":"NamespaceTerminating","message":"namespace default is being terminated","field":"metadata.namespace"}]},"code":403}`,
			want: k8s.NamespaceGoing,
		},
		"not known to the server": {
			body: status + `"message":"Unauthorized","reason":"Unauthorized","code":401}`,
			want: k8s.Failed,
		},
		"the server is overloaded": {
			body: status + `"message":"etcdserver: request timed out","code":500}`,
			want: k8s.Failed, message: "etcdserver",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			client := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprintf(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":%t}}`, c.allowed)
					return
				}
				requests.Add(1)
				if c.text {
					w.Header().Set("Retry-After", "1")
					http.Error(w, strings.TrimSpace(c.body), http.StatusTooManyRequests)
					return
				}
				k8stest.Respond(w, c.body)
			})
			got := k8s.EvictPod(t.Context(), client, evicted, nil)
			if got.Answer != c.want || got.Budget != c.budget || !strings.Contains(got.Message, c.message) || got.RetryAfter != c.retryAfter {
				t.Errorf("answer = %+v", got)
			}
			if (got.Err == nil) != (c.want == k8s.Accepted) {
				t.Errorf("error = %v", got.Err)
			}
			if n := requests.Load(); n != 1 {
				t.Errorf("%d requests for one eviction", n)
			}
		})
	}
}

func TestEvictionNamesThePodAndItsUID(t *testing.T) {
	for name, grace := range map[string]*int64{"the pod's own": nil, "none": new(int64), "thirty": new(int64(30))} {
		t.Run(name, func(t *testing.T) {
			var body policyv1.Eviction
			var path, method string
			client := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
				path, method = r.URL.Path, r.Method
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
					t.Error(err)
				}
				k8stest.Respond(w, `{"kind":"Status","apiVersion":"v1","status":"Success","code":201}`)
			})
			k8s.EvictPod(t.Context(), client, evicted, grace)
			if method != http.MethodPost || path != "/api/v1/namespaces/default/pods/web-1/eviction" {
				t.Errorf("%s %s", method, path)
			}
			if body.Kind != "Eviction" || body.APIVersion != "policy/v1" || body.Name != "web-1" {
				t.Errorf("body = %+v", body)
			}
			o := body.DeleteOptions
			if o == nil || o.Preconditions == nil || *o.Preconditions.UID != "pod-uid" {
				t.Fatalf("options = %+v", o)
			}
			if (o.GracePeriodSeconds == nil) != (grace == nil) || grace != nil && *o.GracePeriodSeconds != *grace {
				t.Errorf("grace = %v", o.GracePeriodSeconds)
			}
		})
	}
}

func TestEvictionWhenTheServerIsAway(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	client, err := kube.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if got := k8s.EvictPod(t.Context(), client, evicted, nil); got.Answer != k8s.Failed || got.Err == nil {
		t.Errorf("answer = %+v", got)
	}
}

func TestPodIsGoneWhenItsNameIsAnothers(t *testing.T) {
	other := evicted.DeepCopy()
	other.UID = "another"
	for name, c := range map[string]struct {
		objects []k8stest.Object
		want    bool
	}{
		"it is there":    {[]k8stest.Object{evicted}, false},
		"another":        {[]k8stest.Object{other}, true},
		"nobody":         {nil, true},
		"another's name": {[]k8stest.Object{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-2", Namespace: "default", UID: "pod-uid"}}}, true},
	} {
		if gone, err := k8s.IsGone(t.Context(), k8stest.New(c.objects...).Client(t), evicted); err != nil || gone != c.want {
			t.Errorf("%s: gone = %v, %v", name, gone, err)
		}
	}
	s := k8stest.New()
	s.Refuse(http.StatusInternalServerError)
	if _, err := k8s.IsGone(t.Context(), s.Client(t), evicted); err == nil {
		t.Error("a server that fails says that it is gone")
	}
}

func TestEvictionDoesNotWaitAfterItsTurn(t *testing.T) {
	server := httptest.NewServer(k8stest.New(evicted))
	defer server.Close()
	client, err := kube.NewForConfig(&rest.Config{Host: server.URL, QPS: 0.001, Burst: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := k8s.Queue(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if got := k8s.EvictPod(ctx, client, evicted, nil); got.Answer != k8s.Accepted {
		t.Errorf("eviction %+v", got)
	}
	if err := k8s.Queue(ctx, client); err == nil {
		t.Error("there was no queue")
	}
}
