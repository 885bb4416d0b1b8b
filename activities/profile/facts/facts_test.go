package facts_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/activities/profile/facts"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/profile/check"
	"drydock.dev/drydock/rules/profile/state"
)

var noon = time.Date(2026, 1, 5, 12, 0, 0, 123456789, time.UTC)

// start is an API server that has leases, in the namespace ns, besides some objects.
func start(t *testing.T, has ...k8stest.Object) (*facts.Gatherer, *k8stest.Server, *k8stest.Kinds) {
	t.Helper()
	kinds := k8stest.NewKinds()
	kinds.Set(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns"}}`)
	server := k8stest.New(has...)
	server.Handle = kinds.Handle
	return &facts.Gatherer{Client: server.Client(t), Agent: "drydock/test"}, server, kinds
}

// have sets a lease, with fields of its specification.
func have(kinds *k8stest.Kinds, name, spec string) {
	kinds.Set(fmt.Sprintf(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":%q,"namespace":"ns"},"spec":{%s}}`, name, spec))
}

func held(holder string, renewed time.Time, seconds int) string {
	return fmt.Sprintf(`"holderIdentity":%q,"renewTime":%q,"leaseDurationSeconds":%d`, holder, renewed.UTC().Format(metav1.RFC3339Micro), seconds)
}

func leaseName(i int) check.LeaseName {
	return check.LeaseName{Namespace: "ns", Name: fmt.Sprintf("l-%d", i)}
}

func leaseNames(n int) check.Needs {
	var needs check.Needs
	for i := range n {
		needs.Leases = append(needs.Leases, leaseName(i))
	}
	return needs
}

func TestSamples(t *testing.T) {
	vector := func(values ...string) string {
		var samples []string
		for i, v := range values {
			samples = append(samples, fmt.Sprintf(`{"metric":{"n":"%d"},"value":[1700000000,%q]}`, i, v))
		}
		return `{"status":"success","warnings":["a store is away"],"data":{"resultType":"vector","result":[` + strings.Join(samples, ",") + `]}}`
	}
	for name, c := range map[string]struct {
		code   int
		answer string
		value  float64
		error  string
	}{
		"one":         {200, vector("2.5"), 2.5, ""},
		"none":        {200, vector(), 0, "the query gives 0 samples: want exactly one"},
		"two":         {200, vector("1", "2"), 0, "the query gives 2 samples: want exactly one"},
		"a scalar":    {200, `{"status":"success","data":{"resultType":"scalar","result":[1700000000,"3"]}}`, 0, "the query gives a scalar"},
		"a bad query": {400, `{"status":"error","errorType":"bad_data","error":"parse error"}`, 0, "Prometheus refuses it: bad_data: parse error"},
		"down":        {503, "canary-user:canary-word", 0, "Prometheus did not answer: server_error"},
	} {
		t.Run(name, func(t *testing.T) {
			var user, word, agent string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				user, word, _ = r.BasicAuth()
				agent = r.UserAgent()
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.answer)
			}))
			defer server.Close()
			u, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			u.User = url.UserPassword("canary-user", "canary-word")
			q := check.Query{URL: u.String(), Query: "up"}
			g, _, _ := start(t)
			got := g.Gather(t.Context(), check.Needs{Queries: []check.Query{q}}, nil).Samples[q]
			if got.Value != c.value || !strings.HasPrefix(got.Error, c.error) || (got.Error == "") != (c.error == "") || strings.Contains(got.Error, "canary") {
				t.Errorf("%+v", got)
			}
			if user != "canary-user" || word != "canary-word" || agent != "drydock/test" {
				t.Errorf("%s, %s, %s", user, word, agent)
			}
			if name == "one" && len(got.Warnings) != 1 {
				t.Errorf("warnings: %v", got.Warnings)
			}
			server.Close()
			if got = g.Gather(t.Context(), check.Needs{Queries: []check.Query{q}}, nil).Samples[q]; got.Error == "" || strings.Contains(got.Error, "canary") {
				t.Errorf("of a server that is gone: %+v", got)
			}
		})
	}
}

func TestLeases(t *testing.T) {
	for name, n := range map[string]int{"read one by one": 3, "listed": 30} {
		t.Run(name, func(t *testing.T) {
			g, server, kinds := start(t)
			have(kinds, "l-0", held("a", noon, 60))
			have(kinds, "l-1", "")
			got := g.Gather(t.Context(), leaseNames(n), nil).Leases
			wanted := check.Lease{Holder: "a", Renewed: noon.Truncate(time.Microsecond), For: time.Minute}
			if first := got[leaseName(0)]; first.Holder != wanted.Holder || !first.Renewed.Equal(wanted.Renewed) || first.For != wanted.For {
				t.Errorf("%+v", first)
			}
			if empty, there := got[leaseName(1)]; !there || !empty.Expired(noon) || len(got) != 2 {
				t.Errorf("%+v", got)
			}
			if asked := len(server.Requests("/leases")); asked != 1 && n > 20 || asked != n && n <= 20 {
				t.Errorf("%d requests", asked)
			}
			kinds.Refuse = func(*http.Request) int { return http.StatusForbidden }
			got = g.Gather(t.Context(), leaseNames(n), nil).Leases
			if len(got) != n || got[leaseName(n-1)].Error == "" || got[leaseName(0)].Expired(noon) {
				t.Errorf("leases that cannot be read look free: %+v", got)
			}
		})
	}
}

// TestTheServersClockIsAFact: the worker's clock is an hour behind the API server's, or ahead of it.
func TestTheServersClockIsAFact(t *testing.T) {
	for _, n := range []int{1, 3, 30} {
		for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
			t.Run(fmt.Sprintf("%d leases, %s ahead", n, ahead), func(t *testing.T) {
				g, server, kinds := start(t)
				server.Handle = func(w http.ResponseWriter, r *http.Request) bool {
					w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
					return kinds.Handle(w, r)
				}
				for _, missing := range []bool{true, false} { // the time is known also where there is no lease
					if !missing {
						have(kinds, "l-0", held("a", noon, 60))
					}
					if got := g.Gather(t.Context(), leaseNames(n), nil).Ahead; got > ahead || got < ahead-time.Minute {
						t.Errorf("ahead by %s, want %s", got, ahead)
					}
				}
			})
		}
	}
}

func TestPods(t *testing.T) {
	node := func(name string, s state.State) *corev1.Node {
		n := activitytest.Node(name)
		n.Annotations = map[string]string{state.DataAnnotation: fmt.Sprintf(`{"Profiles":{"p":{"Transition":"2026-01-01T00:00:00Z","Current":%q,"Previous":%q}},"Notifications":{}}`, s, s)}
		return n
	}
	pod := func(name, node string, marked bool) *corev1.Pod {
		p := activitytest.Pod(name)
		p.Spec.NodeName = node
		if marked {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
				Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: state.StateLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{"operational"}},
				}},
			}}}}
		}
		return p
	}
	for name, required := range map[string]int{"node by node": 2, "all at once": 25} {
		t.Run(name, func(t *testing.T) {
			nodes := []*corev1.Node{node("other", state.Operational), activitytest.Node("fresh")}
			broken := activitytest.Node("broken")
			broken.Annotations = map[string]string{state.DataAnnotation: "{"}
			nodes = append(nodes, broken)
			for i := range required {
				nodes = append(nodes, node(fmt.Sprintf("n%d", i), state.Required))
			}
			g, server, _ := start(t, pod("a", "n0", true), pod("b", "n0", false), pod("c", "n1", false), pod("d", "other", true))
			got := g.Gather(t.Context(), check.Needs{Pods: true}, nodes)
			if len(got.Marked) != 1 || !got.Marked["n0"] || len(got.Unread) != 0 {
				t.Errorf("%+v", got)
			}
			if asked := server.Requests("/pods"); len(asked) != 2 && required == 2 || len(asked) != 1 && required == 25 {
				t.Errorf("%v", asked)
			}
			if got = g.Gather(t.Context(), check.Needs{}, nodes); len(got.Marked) != 0 {
				t.Errorf("unasked: %+v", got)
			}
			server.Deny("list", "pods")
			if got = g.Gather(t.Context(), check.Needs{Pods: true}, nodes); len(got.Unread) != required || got.Unread["n1"] == "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestTake(t *testing.T) {
	claim := check.Claim{LeaseName: leaseName(0), Holder: "n1", At: noon, For: 90 * time.Second}
	for name, c := range map[string]struct {
		before      string
		taken       bool
		transitions int32
	}{
		"missing":                  {"", true, 0},
		"never taken":              {`"holderIdentity":"x"`, true, 0},
		"expired":                  {held("n2", noon.Add(-61*time.Second), 60) + `,"leaseTransitions":4`, true, 5},
		"it lasts":                 {held("n2", noon.Add(-59*time.Second), 60) + `,"leaseTransitions":4`, false, 4},
		"its holder is not exempt": {held("n1", noon.Add(-59*time.Second), 60) + `,"leaseTransitions":4`, false, 4},
		"taken later":              {held("n2", noon.Add(time.Hour), 60) + `,"leaseTransitions":4`, false, 4},
		"taken by the same claim":  {held("n1", noon, 60) + `,"leaseTransitions":4`, true, 4},
	} {
		t.Run(name, func(t *testing.T) {
			g, _, kinds := start(t)
			if c.before != "" {
				have(kinds, "l-0", c.before)
			}
			for range 2 { // a repetition changes nothing
				if err := g.Take(t.Context(), []check.Claim{claim}); errors.Is(err, facts.ErrTaken) == c.taken || (err == nil) != c.taken {
					t.Fatalf("%v", err)
				}
			}
			got := &coordinationv1.Lease{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(kinds.Find("coordination.k8s.io/leases/ns/l-0").Object, got); err != nil {
				t.Fatal(err)
			}
			if got.Spec.LeaseTransitions == nil || *got.Spec.LeaseTransitions != c.transitions {
				t.Errorf("%+v", got.Spec)
			}
			if c.taken && (*got.Spec.HolderIdentity != "n1" || !got.Spec.RenewTime.Time.Equal(noon.Truncate(time.Microsecond))) {
				t.Errorf("%+v", got.Spec)
			}
			if name == "expired" && (*got.Spec.LeaseDurationSeconds != 90 || !got.Spec.AcquireTime.Equal(got.Spec.RenewTime)) {
				t.Errorf("%+v", got.Spec)
			}
		})
	}
}

// Of two that claim one lease at the same time one gets it.
func TestOneOfManyTakesALease(t *testing.T) {
	g, _, kinds := start(t)
	have(kinds, "l-0", held("old", noon.Add(-time.Hour), 60))
	ended := make(chan error)
	const many = 5
	for i := range many {
		go func() {
			ended <- g.Take(t.Context(), []check.Claim{{LeaseName: leaseName(0), Holder: fmt.Sprintf("n%d", i), At: noon, For: time.Minute}})
		}()
	}
	took := 0
	for range many {
		switch err := <-ended; {
		case err == nil:
			took++
		case !errors.Is(err, facts.ErrTaken):
			t.Error(err)
		}
	}
	if took != 1 {
		t.Errorf("%d took it", took)
	}
}
