package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"

	"drydock/api"
	"drydock/rules/bounds"
	"drydock/rules/rollout"
)

// TestTheLargestPlanFits: what is carried to the next run, and what the status tells at once, stay within what a server
// takes, with as many nodes as there may be and something to say of each.
func TestTheLargestPlanFits(t *testing.T) {
	c := &core{state: state{Phase: api.PlanRunning, Since: time.Now(), CreatedAt: time.Now()}}
	states := []rollout.State{rollout.Waiting, rollout.Done, rollout.Failed, rollout.Held, rollout.Running}
	for i := range rollout.MaxNodes {
		n := rollout.Node{
			Facts: rollout.Facts{Name: fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", i%7, i/250, i%250), Zone: fmt.Sprintf("eu-central-1%c", 'a'+i%3)},
			State: states[i%len(states)], Since: time.Now().Unix() - int64(i), Tries: 1,
		}
		if n.State == rollout.Running || n.State == rollout.Held {
			n.RunID = uuid.NewString()
		}
		if n.State == rollout.Failed {
			n.Note = "the node could not be emptied: escalation: fail: not empty after 30m0s: pod default/web-" + uuid.NewString()
		}
		c.state.Nodes = append(c.state.Nodes, n)
	}
	// Whoever may write to it writes as much as is taken, and what takes the most room.
	long := strings.Repeat("<", bounds.Text)
	for i := range maxEvents {
		c.state.Events = append(c.state.Events, api.PlanEvent{Sequence: i, State: noted, Message: bounds.Cut(long, bounds.Text)})
	}
	for range maxMessages {
		entry := api.Received{ID: long, Name: long, By: long, Comment: long, Effect: long}
		bounds.Fit(&entry)
		c.state.Messages = append(c.state.Messages, entry)
	}
	values := make([]string, 7000)
	for i := range values {
		values[i] = fmt.Sprintf("a-value-of-a-label-that-is-as-long-as-it-may-be-%05d", i)
	}
	c.spec = rollout.Plan{
		Maintenance: json.RawMessage(`{"reason":"` + strings.Repeat("x", 60<<10) + `"}`),
		Selection: rollout.Selection{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a", Operator: corev1.NodeSelectorOpIn, Values: values}},
		}}}},
	}
	packed, err := api.Pack(c.state)
	if err != nil {
		t.Fatal(err)
	}
	const most = 3 << 19 // 1.5 MB
	if len(packed) > most {
		t.Errorf("%d bytes are carried to the next run", len(packed))
	}
	t.Logf("%d bytes are carried", len(packed))
	seen := map[string]bool{}
	for asked := (api.PlanStatusRequest{Limit: 1000, Cells: true}); ; {
		page, err := c.page(asked)
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
	if len(seen) != rollout.MaxNodes {
		t.Errorf("%d nodes are told", len(seen))
	}
	if first, err := c.page(api.PlanStatusRequest{}); err != nil || first.Nodes[0].State != rollout.Held.Word() {
		t.Errorf("first of all it tells %+v, %v", first.Nodes[0], err)
	}
	if _, err := c.page(api.PlanStatusRequest{States: []string{"dun"}}); err == nil || !strings.Contains(err.Error(), "states[0]") {
		t.Error(err)
	}
}
