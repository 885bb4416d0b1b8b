package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/workflows/controller"
	"drydock.dev/drydock/workflows/handover"
)

// largest is a plan of as many nodes as there may be, with something to say of each.
func largest(t testing.TB, input string, now time.Time) *maintenancePlan {
	t.Helper()
	p := given(t, input)
	states := []plan.State{plan.Waiting, plan.Done, plan.Failed, plan.Held, plan.Running}
	for i := range plan.MaxNodes {
		n := plan.Node{
			Facts: plan.Facts{Name: fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", i%7, i/250, i%250), Zone: fmt.Sprintf("eu-central-1%c", 'a'+i%3)},
			State: states[i%len(states)], Since: now.Unix() - int64(i), Tries: 1,
		}
		if n.State == plan.Running || n.State == plan.Held {
			n.RunID = uuid.NewString()
		}
		if n.State == plan.Failed {
			n.Note = "the node could not be emptied: escalation: fail: not empty after 30m0s: pod default/web-" + uuid.NewString()
		}
		p.Nodes = append(p.Nodes, n)
	}
	// Whoever may write to it writes as much as is taken, and what takes the most room.
	long := strings.Repeat("<", bounds.Text)
	for range maxEvents {
		p.note(long, now)
	}
	for range 30 {
		entry := api.Received{ID: long, Name: long, By: long, Comment: long, Effect: long}
		bounds.Fit(&entry)
		p.Messages = append(p.Messages, entry)
	}
	return p
}

// fits reports whether a plan is carried to the next run.
func fits(t *testing.T, p *maintenancePlan, now time.Time) {
	t.Helper()
	p.Decide(controller.At(now))
	packed, err := api.Pack(p)
	if err != nil {
		t.Fatal(err)
	}
	if len(packed) > 3<<19 { // 1.5 MB, of 1.9 that the frame takes
		t.Errorf("%d bytes are carried to the next run", len(packed))
	}
	data, err := handover.Encode(p, handover.Unknown{})
	if err == nil {
		_, err = handover.Decode(data, &maintenancePlan{})
	}
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d bytes", len(packed))
}

// decides measures a decision, and what people are shown of it.
func decides(b *testing.B, p *maintenancePlan) {
	b.Helper()
	for b.Loop() {
		p.Decide(controller.At(now))
		p.Page(now)
	}
}

func BenchmarkDecideTheLargestPlan(b *testing.B) { decides(b, largestRolling(b)) }

func BenchmarkDecideManyLongInputs(b *testing.B) { decides(b, longInputs(b)) }

func BenchmarkDecideTheLargestStages(b *testing.B) { decides(b, largestStages(b)) }

func BenchmarkHandOver(b *testing.B) {
	p := largestStages(b)
	for b.Loop() {
		data, err := handover.Encode(p, handover.Unknown{})
		if err == nil {
			_, err = handover.Decode(data, &maintenancePlan{})
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func largestRolling(t testing.TB) *maintenancePlan {
	return largest(t, `{"all":true,"strategy":{"maxParallel":"100%","maxFailures":"100%"}}`, now)
}

// TestTheLargestPlanFits: what is carried to the next run, and a page of the status, stay within what a server takes.
func TestTheLargestPlanFits(t *testing.T) {
	p := largestRolling(t)
	fits(t, p, now)
	values := make([]string, 7000)
	for i := range values {
		values[i] = fmt.Sprintf("a-value-of-a-label-that-is-as-long-as-it-may-be-%05d", i)
	}
	p.spec = plan.Plan{
		Maintenance: json.RawMessage(`{"reason":"` + strings.Repeat("x", 60<<10) + `"}`),
		Selection: plan.Selection{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a", Operator: corev1.NodeSelectorOpIn, Values: values}},
		}}}},
	}
	seen := map[string]bool{}
	for asked := (api.PlanStatusRequest{Limit: 1000, Cells: true}); ; {
		page, err := p.page(asked)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(page)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 200<<10 {
			t.Fatalf("a page of the status has %d bytes", len(text))
		}
		for _, n := range page.Nodes {
			if seen[n.Node] {
				t.Fatalf("%s is on two pages", n.Node)
			}
			seen[n.Node] = true
		}
		if asked.Offset = page.NextOffset; asked.Offset == 0 {
			break
		}
	}
	if len(seen) != plan.MaxNodes {
		t.Errorf("%d nodes are listed", len(seen))
	}
	if first, err := p.page(api.PlanStatusRequest{}); err != nil || first.Nodes[0].State != plan.Held.Word() {
		t.Errorf("it lists first %+v, %v", first.Nodes[0], err)
	}
	if _, err := p.page(api.PlanStatusRequest{States: []string{"dun"}}); err == nil || !strings.Contains(err.Error(), "states[0]") {
		t.Error(err)
	}
}

// longInputs is a plan of 500 nodes that begin at once, with inputs as long as they may be.
func longInputs(t testing.TB) *maintenancePlan {
	p := given(t, `{"all":true,"strategy":{"maxParallel":"100%"},"maintenance":{"hooks":{"beforeCordon":[]},"reason":"`+strings.Repeat("x", 1000)+`"}}`)
	annotation := strings.Repeat("y", 60<<10)
	p.spec.Maintenance = json.RawMessage(`{"long":"` + annotation + `"}`)
	for i := range plan.MaxNodes {
		p.Nodes = append(p.Nodes, plan.Node{Facts: plan.Facts{Name: fmt.Sprint("n", i)}})
	}
	return p
}

func TestManyLongInputsAreMadeInParts(t *testing.T) {
	p := longInputs(t)
	fits(t, p, now)
	d := p.Decide(controller.At(now))
	size := 0
	for _, x := range d.Effects {
		if start, ok := x.(controller.Start); ok {
			size += len(start.Input.(json.RawMessage))
		}
	}
	if counts := plan.Count(p.Nodes); counts.Running != plan.MaxAtOnce || size < startBytes || size > startBytes+(64<<10) {
		t.Errorf("%+v, %d bytes begin", counts, size)
	}
}

// largestStages has as many nodes as there may be, each with targets and a message, and more targets than are kept.
func largestStages(t testing.TB) *maintenancePlan {
	p := largest(t, in("Drain"), now)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		var targets []drainplan.Entry
		for range 12 {
			targets = append(targets, drainplan.Entry{PodType: drainplan.Default, PodPriority: int32(i % 300), PodSelector: strings.Repeat("x", 100)})
		}
		n.State, n.RunID = plan.Running, uuid.NewString()
		n.Note = "Evacuating (limited by maintenance-a, maintenance-b, maintenance-c and 4 more)"
		n.Standing = &plan.Standing{Phase: string(api.Draining), Pending: i, Targets: p.Staged.keep(targets, p.Nodes)}
	}
	return p
}

func TestTheLargestStagesFit(t *testing.T) {
	p := largestStages(t)
	fits(t, p, now)
	page, err := p.page(api.PlanStatusRequest{Limit: 1000, Cells: true})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(page); err != nil || len(text) > 200<<10 {
		t.Errorf("a page of the status has %d bytes, %v", len(text), err)
	}
	if page.Nodes[0].Drain == nil || len(page.Nodes[0].Drain.Targets) != 12 {
		t.Errorf("%+v", page.Nodes[0])
	}
}

func TestTargetsThatNoNodeHasAreForgotten(t *testing.T) {
	s := begin(plan.Idle, time.Now())
	of := func(i int) []drainplan.Entry {
		return []drainplan.Entry{{PodType: drainplan.Default, PodPriority: int32(i)}}
	}
	nodes := []plan.Node{{Standing: &plan.Standing{}}, {}}
	for i := range 3 * maxTargetSets {
		nodes[0].Standing.Targets = s.keep(of(i), nodes)
		if got := s.targets(nodes[0].Standing.Targets); len(got) != 1 || got[0] != of(i)[0] {
			t.Fatalf("the targets %d are %+v", i, got)
		}
	}
	if len(s.Targets) > maxTargetSets || s.keep(of(3*maxTargetSets-1), nodes) != nodes[0].Standing.Targets || s.targets(0) != nil {
		t.Errorf("%d are kept", len(s.Targets))
	}
}

// TestANoteHasOnlyWholeCommands, however little room there is for it.
func TestANoteHasOnlyWholeCommands(t *testing.T) {
	const why = "a slot: gang firmware-of-the-rack/01a21d32-8f6e-4c2b-9a6e-0a1b2c3d4e5f of 12 nodes goes once limits are raised that it is larger than by itself"
	message := why + ": drydock limits set --max-parallel 12 --max-unavailable 12 (maxParallel 2, maxUnavailable 20%, 4 of 20 nodes)"
	p := given(t, in("Drain"), nodes(plan.Running))
	p.stands(&api.SharedProgress{Node: "n0", Phase: api.Pending, Message: message}, now)
	if n := p.node("n0"); n.Note != why+" …" || unbegun(p.Nodes) != n.Note {
		t.Errorf("the note is %q, and the plan waits for %q", n.Note, unbegun(p.Nodes))
	}
	setState(p.node("n0"), plan.Failed, message, now)
	if n := p.node("n0"); n.Note != why+" …" {
		t.Errorf("the note of a failed node is %q", n.Note)
	}
}
