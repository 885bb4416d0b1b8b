package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drydock/api"
	"drydock/rules/drainplan"
	"drydock/rules/rollout"
)

// TestTheLargestStagesFit: as many nodes as there may be, each with targets and a message, and more targets than are kept.
func TestTheLargestStagesFit(t *testing.T) {
	c := &core{state: state{Phase: api.PlanRunning, Since: time.Now(), CreatedAt: time.Now(), Staged: begin(rollout.Drain, time.Now())}}
	s := &stages{core: c, staged: c.state.Staged}
	c.staging = s.standing
	for i := range rollout.MaxNodes {
		var targets []drainplan.Entry
		for range 12 {
			targets = append(targets, drainplan.Entry{PodType: drainplan.Default, PodPriority: int32(i % 300), PodSelector: strings.Repeat("x", 100)})
		}
		c.state.Nodes = append(c.state.Nodes, rollout.Node{
			Facts: rollout.Facts{Name: fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", i%7, i/250, i%250), Zone: "eu-central-1a"},
			State: rollout.Running, Since: time.Now().Unix(), RunID: uuid.NewString(), Note: "Evacuating (limited by maintenance-a, maintenance-b, maintenance-c and 4 more)",
			Standing: &rollout.Standing{Phase: string(api.Draining), Pending: i, Targets: s.keep(targets, c.state.Nodes)},
		})
	}
	packed, err := api.Pack(c.state)
	if err != nil {
		t.Fatal(err)
	}
	const most = 3 << 19 // 1.5 MB
	if len(packed) > most {
		t.Errorf("%d bytes are carried to the next run", len(packed))
	}
	t.Logf("%d bytes are carried, with %d targets", len(packed), len(s.Targets))
	page, err := c.page(api.PlanStatusRequest{Limit: 1000, Cells: true})
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
	s := begin(rollout.Idle, time.Now())
	of := func(i int) []drainplan.Entry {
		return []drainplan.Entry{{PodType: drainplan.Default, PodPriority: int32(i)}}
	}
	nodes := []rollout.Node{{Standing: &rollout.Standing{}}, {}}
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
