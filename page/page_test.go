package page

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/rules/schedule"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// hostile is HTML, and what turns text round.
const hostile = "<script>alert(1)</script>\u202eevil"

// cluster is a source as a test has it.
type cluster struct {
	all     []*corev1.Node
	is      api.ClusterStatus
	plans   map[string]client.PlanView
	had     []record.Record
	broken  error
	asked   int
	ends    []time.Time
	running []client.View
	late    time.Duration
}

func (c *cluster) now() time.Time { return noon.Add(c.late) }

func (c *cluster) nodes(context.Context) ([]*corev1.Node, error) { return c.all, c.broken }

func (c *cluster) mark(n *corev1.Node) (k8s.Mark, error) { return k8s.MarkOf(n) }

func (c *cluster) status(context.Context, time.Time) api.ClusterStatus {
	c.asked++
	return c.is
}

func (c *cluster) maintenances(context.Context, string) ([]client.View, error) {
	return c.running, c.broken
}

func (c *cluster) records(context.Context, string) ([]record.Record, error) { return c.had, nil }

func (c *cluster) plan(_ context.Context, name string) (client.PlanView, []time.Time, error) {
	v, there := c.plans[name]
	if !there {
		return v, nil, &client.NoneError{What: "plan " + name}
	}
	return v, c.ends, c.broken
}

func pageOf(c *cluster) *Page {
	p := New(Options{Logger: slog.New(slog.DiscardHandler), TemporalUI: "https://temporal.example.com", Namespace: "default"})
	p.from = c
	return p
}

func get(t *testing.T, p *Page, path string) (status int, body string) {
	t.Helper()
	answer := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
	r.Host = "localhost"
	p.Handler().ServeHTTP(answer, r)
	return answer.Code, answer.Body.String()
}

func node(name, zone string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}}}
	if zone != "" {
		n.Labels[corev1.LabelTopologyZone] = zone
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, apply := range change {
		apply(n)
	}
	return n
}

func in(phase api.Phase) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Labels[api.PhaseLabel] = string(phase)
		n.Annotations[api.HoldersAnnotation] = `{"holders":[{"workflowId":"node-maintenance/x/ops","runId":"r"}],"cordoned":true}`
	}
}

func silent(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }

func shut(n *corev1.Node) { n.Spec.Unschedulable = true }

// busy has a node in every state, and texts of which nobody knows where they come from.
func busy() *cluster {
	counts := plan.Counts{Total: 10, Done: 5, Held: 1, Running: 1, Waiting: 3}
	running := client.Run{Name: "kernel", Started: noon.Add(-time.Hour), Execution: 1}
	return &cluster{
		all: []*corev1.Node{
			node("worker-10", "a"), node("worker-2", "a", in(api.Ready)), node("worker-3", "a", in(api.Draining)), node("worker-4", "b", in(api.RequestorFailed)),
			node("worker-5", "b", silent), node("worker-6", "b", shut), node("worker-7", ""),
		},
		is: api.ClusterStatus{
			Cluster: "prod",
			Slots: &api.ClusterSlots{
				Limits: api.LimitsInForce{Limits: schedule.Limits{MaxParallel: schedule.Count(2)}}, Nodes: 7, Unavailable: 4,
				Freezes: []schedule.Freeze{{By: hostile, Reason: hostile, At: noon}},
			},
			Maintenances: &api.ClusterMaintenances{Running: 1, First: []api.MaintenanceSummary{{Node: "worker-2", Requestor: "ops", Phase: api.Ready, WaitingFor: hostile}}},
			Plans:        &api.ClusterPlans{First: []api.PlanSummary{{Name: "kernel", Phase: api.PlanRunning, Counts: &counts}}},
			Attention:    []api.Attention{{About: "worker-4", What: hostile, Next: []string{"drydock retry worker-4"}}},
		},
		plans: map[string]client.PlanView{"kernel": {Run: running, Status: &api.PlanStatus{
			Name: "kernel", Phase: api.PlanRunning, Counts: counts, Plan: plan.Plan{Reason: hostile},
			Nodes: []api.PlanNode{{Node: "worker-4", State: plan.Held.Word(), Note: hostile}},
		}}},
		ends: []time.Time{noon.Add(-40 * time.Minute), noon.Add(-30 * time.Minute), noon.Add(-20 * time.Minute), noon.Add(-10 * time.Minute), noon},
		had: []record.Record{{
			Node: "worker-2", Requestor: hostile, Reason: hostile, Phase: string(api.Completed), CreatedAt: noon.Add(-2 * time.Hour), EndedAt: noon.Add(-time.Hour),
			Phases: []record.Phase{{Phase: "Pending", At: noon.Add(-2 * time.Hour)}, {Phase: "Draining", At: noon.Add(-90 * time.Minute)}, {Phase: "Ready", At: noon.Add(-75 * time.Minute)}},
		}},
	}
}

func TestTheFleetByZoneAndState(t *testing.T) {
	status, body := get(t, pageOf(busy()), "/")
	if status != http.StatusOK {
		t.Fatalf("%d: %s", status, body)
	}
	for _, want := range []string{
		"<h1><bdi>Cluster prod</bdi></h1>", "<bdi>a</bdi> <small>3 nodes</small>", "<bdi>no zone</bdi> <small>1 node</small>",
		"1 failed, and held", "1 not Ready", "1 in maintenance", "1 Ready for work", "1 cordoned by others", "1 in service",
		`<a href="/nodes/worker-3">worker-3</a> <bdi>Draining</bdi>`, `<a href="/plans/kernel">`, `<a href="/nodes/worker-2">`, "drydock retry worker-4",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("not %q in\n%s", want, body)
		}
	}
}

func TestANodeWithWhatItHad(t *testing.T) {
	status, body := get(t, pageOf(busy()), "/nodes/worker-2")
	for _, want := range []string{"It is Ready for work.", "Earlier maintenances", "Pending 30m", "Draining 15m", "Ready 15m", `<rect class="active" x="500" width="250"`} {
		if status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%d, not %q in\n%s", status, want, body)
		}
	}
}

func TestAPlanWithItsExpectedEnd(t *testing.T) {
	status, body := get(t, pageOf(busy()), "/plans/kernel")
	for _, want := range []string{
		"5 of 10 nodes done; expected to end at 12:40:00 UTC, if it goes on as the last 5 nodes did: between 12:40:00 UTC and 12:40:00 UTC",
		`<rect class="good" x="0" width="500"`, `<a href="/nodes/worker-4">`,
	} {
		if status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%d, not %q in\n%s", status, want, body)
		}
	}
}

func TestNoEndIsExpectedOfWhatIsNotKnown(t *testing.T) {
	every := func(d time.Duration, n int, last time.Time) (ends []time.Time) {
		for i := range n {
			ends = append(ends, last.Add(-time.Duration(i)*d))
		}
		return ends
	}
	for name, one := range map[string]struct {
		done []time.Time
		left int
	}{
		"two are done":             {every(time.Minute, 2, noon), 5},
		"nothing is left":          {every(time.Minute, 9, noon), 0},
		"all at once":              {every(0, 9, noon), 5},
		"something is in the way":  {every(time.Minute, 9, noon.Add(-time.Hour)), 5},
		"none has ever been begun": {nil, 5},
	} {
		if got := expected(one.done, one.left, noon); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	uneven := append(every(time.Minute, 5, noon), every(5*time.Minute, 5, noon.Add(-10*time.Minute))...)
	if got := expected(uneven, 16, noon); !strings.Contains(got, "at 12:53:00 UTC") || !strings.Contains(got, "between 12:36:00 UTC and 13:10:00 UTC") {
		t.Errorf("uneven: %q", got)
	}
}

func TestTextsOfOthersShowAsText(t *testing.T) {
	for _, path := range []string{"/", "/nodes/worker-2", "/plans/kernel"} {
		_, body := get(t, pageOf(busy()), path)
		if strings.Contains(body, "<script>alert") || strings.Contains(body, "\u202e") || !strings.Contains(body, "&lt;script&gt;alert(1)") {
			t.Errorf("%s has it as it is:\n%s", path, body)
		}
	}
}

func TestWhatCannotBeReadIsSaid(t *testing.T) {
	c := busy()
	c.broken = errors.New("the API server is away")
	for _, path := range []string{"/", "/nodes/worker-2", "/plans/kernel"} {
		if status, body := get(t, pageOf(c), path); status != http.StatusServiceUnavailable || !strings.Contains(body, "the API server is away") {
			t.Errorf("%s: %d\n%s", path, status, body)
		}
	}
}

// Everybody who looks in the same two seconds is shown what was read once.
func TestViewersShareWhatIsRead(t *testing.T) {
	c := busy()
	p := pageOf(c)
	for range 50 {
		get(t, p, "/")
	}
	if c.asked != 1 {
		t.Errorf("the cluster was read %d times", c.asked)
	}
	first := p.fleet.digest
	c.late = time.Minute
	seen := noon.Add(time.Minute)
	slots := *c.is.Slots
	slots.ObservedAt = &seen
	c.is.Slots = &slots
	get(t, p, "/")
	if c.asked != 2 || p.fleet.digest != first {
		t.Errorf("it was read %d times, and by time alone %q became %q", c.asked, first, p.fleet.digest)
	}
	in(api.Draining)(c.all[0])
	c.late = 2 * time.Minute
	if get(t, p, "/"); p.fleet.digest == first {
		t.Error("a node that is drained changes nothing")
	}
}

// A cluster of 5,000 nodes with long names: 500 KB at most go over the wire.
func TestALargeClusterIsSmallOnTheWire(t *testing.T) {
	c := busy()
	c.all = nil
	for i := range 5000 {
		c.all = append(c.all, node(fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", i%7, i/250, i%250), fmt.Sprintf("zone-%d", i%3)))
	}
	p := pageOf(c)
	get(t, p, "/")
	if size := len(p.fleet.zipped); size > 500_000 {
		t.Errorf("%d bytes compressed, %d as they are", size, len(p.fleet.plain))
	}
	t.Logf("%d bytes compressed, %d as they are", len(p.fleet.zipped), len(p.fleet.plain))
}

// The main rules of WCAG 2 that can be told from the HTML: a language, one main part and title, headings that skip no level, unique IDs, a
// name for each link, region and picture, and column headers.
func TestPagesAreAccessible(t *testing.T) {
	for _, path := range []string{"/", "/nodes/worker-2", "/nodes/none", "/plans/kernel", "/elsewhere"} {
		_, body := get(t, pageOf(busy()), path)
		root, err := html.Parse(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		seen, ids, level := map[string]int{}, map[string]bool{}, 0
		for n := range root.Descendants() {
			if n.Type != html.ElementNode {
				continue
			}
			seen[n.Data]++
			has := func(name string) string {
				for _, a := range n.Attr {
					if a.Key == name {
						return a.Val
					}
				}
				return ""
			}
			if id := has("id"); id != "" && ids[id] {
				t.Errorf("%s: two elements have the ID %s", path, id)
			} else {
				ids[id] = true
			}
			switch {
			case n.Data == "html" && has("lang") == "", n.Data == "svg" && has("aria-hidden") != "true", has("style") != "", n.Data == "th" && has("scope") == "":
				t.Errorf("%s: %s %v", path, n.Data, n.Attr)
			case (n.Data == "a" || n.Data == "title" || n.Data == "summary") && strings.TrimSpace(textOf(n)) == "",
				(has("role") == "region" || n.Data == "nav") && has("aria-label") == "":
				t.Errorf("%s: a %s has no name", path, n.Data)
			case len(n.Data) == 2 && n.Data[0] == 'h' && n.Data[1] >= '1' && n.Data[1] <= '6':
				if now := int(n.Data[1] - '0'); now > level+1 {
					t.Errorf("%s: h%d follows h%d", path, now, level)
				} else {
					level = now
				}
			}
		}
		if seen["main"] != 1 || seen["h1"] != 1 || seen["title"] != 1 {
			t.Errorf("%s has %v", path, seen)
		}
	}
}

func textOf(n *html.Node) (text string) {
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			text += d.Data
		}
	}
	return text
}
