package page

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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
	slow    time.Duration
	missing int
	mu      sync.Mutex
}

func (c *cluster) now() time.Time { return noon.Add(c.late) }

func (c *cluster) close() {}

func (c *cluster) nodes(context.Context) ([]*corev1.Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all, c.broken
}

func (c *cluster) mark(n *corev1.Node) (k8s.Mark, error) { return k8s.MarkOf(n) }

func (c *cluster) status(context.Context, time.Time) api.ClusterStatus {
	time.Sleep(c.slow) // in a bubble of synctest
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	return c.is
}

func (c *cluster) maintenances(context.Context, string) ([]client.View, error) {
	return c.running, c.broken
}

func (c *cluster) records(context.Context, string) ([]record.Record, int, error) {
	return c.had, c.missing, nil
}

func (c *cluster) plan(_ context.Context, name string) (client.PlanView, *plan.Pace, error) {
	v, there := c.plans[name]
	if !there {
		return v, nil, &client.NoneError{What: "plan " + name}
	}
	pace := plan.PaceOf(c.ends, true, 1, 4, noon)
	return v, &pace, c.broken
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
		"5 of 10 nodes done", "expected to end at 12:40:00 UTC (in 40m), between 12:40:00 UTC and 12:40:00 UTC; 5 nodes in the last hour",
		`<rect class="good" x="0" width="500"`, `<a href="/nodes/worker-4">`,
	} {
		if status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%d, not %q in\n%s", status, want, body)
		}
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

// What cannot be read is said, what can be read is shown, and why is for the log.
func TestWhatCannotBeReadIsSaid(t *testing.T) {
	c := busy()
	c.broken, c.missing = errors.New("10.0.0.1: the API server is away"), 2
	for path, want := range map[string]string{"/": "The nodes cannot be read", "/nodes/worker-2": "cannot be read at the moment", "/plans/kernel": "cannot be read at the moment"} {
		if _, body := get(t, pageOf(c), path); !strings.Contains(body, want) || strings.Contains(body, "10.0.0.1") || path == "/" && !strings.Contains(body, "drydock retry worker-4") {
			t.Errorf("%s says\n%s", path, body)
		}
	}
	c.broken = nil
	if _, body := get(t, pageOf(c), "/nodes/worker-2"); !strings.Contains(body, "Of 2 earlier maintenances no worker says") {
		t.Errorf("it says\n%s", body)
	}
}

// However many look, one reads; and nobody waits where something is known already.
func TestViewersShareWhatIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := busy()
		c.slow = 2 * time.Second
		p := pageOf(c)
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { get(t, p, "/") })
		}
		all.Wait()
		if c.asked != 1 {
			t.Errorf("the cluster was read %d times", c.asked)
		}
		first := p.fleet.last.moving.digest
		c.mu.Lock()
		seen := noon.Add(time.Minute)
		slots := *c.is.Slots
		slots.ObservedAt = &seen
		c.is.Slots = &slots
		c.mu.Unlock()
		time.Sleep(time.Minute)
		began := time.Now()
		get(t, p, "/")
		if took := time.Since(began); took != 0 {
			t.Errorf("a reader waited %s, and something is known", took)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if now := p.fleet.last.moving.digest; c.asked != 2 || now != first {
			t.Errorf("it was read %d times, and by time alone %q became %q", c.asked, first, now)
		}
		c.mu.Lock()
		in(api.Draining)(c.all[0])
		c.mu.Unlock()
		get(t, p, "/")
		synctest.Wait()
		if now := p.fleet.last.moving.digest; now == first {
			t.Error("a node that is drained changes nothing")
		}
		time.Sleep(time.Minute) // what is being read ends
	})
}

// Temporal is away: the nodes are shown all the same, and the rest when it is known.
func TestNodesDoNotWaitForTemporal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := busy()
		c.slow = 20 * time.Second
		p := pageOf(c)
		began := time.Now()
		_, body := get(t, p, "/")
		if took := time.Since(began); took > statusWithin || !strings.Contains(body, "only the nodes are shown") || !strings.Contains(body, "1 failed, and held") {
			t.Errorf("after %s it says\n%s", took, body)
		}
		time.Sleep(time.Minute)
		get(t, p, "/")
		synctest.Wait()
		if _, body := get(t, p, "/"); strings.Contains(body, "only the nodes are shown") || !strings.Contains(body, "drydock retry worker-4") {
			t.Errorf("it says\n%s", body)
		}
		time.Sleep(time.Minute) // what is being read ends
	})
}

// After an error nothing is read again at once, what was known stays, and somebody who leaves does not wait.
func TestWhatIsSharedSurvivesErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s shared[int]
		tries, failing := 0, error(nil)
		read := func(context.Context) (int, time.Duration, error) {
			tries++
			time.Sleep(time.Second)
			return tries, time.Minute, failing
		}
		left, leave := context.WithCancel(t.Context())
		leave()
		if _, err := s.get(left, time.Minute, read); !errors.Is(err, context.Canceled) {
			t.Errorf("who has left gets %v", err)
		}
		if got, err := s.get(t.Context(), time.Minute, read); got != 1 || err != nil {
			t.Errorf("%d, %v", got, err)
		}
		failing = errors.New("away")
		for range 3 {
			time.Sleep(40 * time.Second)
			s.get(t.Context(), time.Minute, read)
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		if got, err := s.get(t.Context(), time.Minute, read); got != 1 || !errors.Is(err, failing) || tries > 3 {
			t.Errorf("after %d tries %d, %v", tries, got, err)
		}
	})
}

// A stream ends when the worker stops, and there are no more of them than places.
func TestStreamsAreBounded(t *testing.T) {
	p := pageOf(busy())
	server := httptest.NewServer(p.Handler())
	defer server.Close()
	open := func() *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/live", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	for range maxViewers - 1 {
		p.live.places <- struct{}{}
	}
	one := open()
	defer one.Body.Close()
	if line, err := bufio.NewReader(one.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: ") {
		t.Errorf("it says %q, %v", line, err)
	}
	refused := open()
	defer refused.Body.Close()
	if refused.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one too many gets %s", refused.Status)
	}
	p.Close()
	if _, err := io.Copy(io.Discard, one.Body); err != nil {
		t.Errorf("the stream ends with %v", err)
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
	if page := p.fleet.last.moving; len(page.zipped) > 500_000 || len(page.plain) < 100_000 {
		t.Errorf("%d bytes compressed, %d as they are", len(page.zipped), len(page.plain))
	}
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
