package e2e

import (
	"strings"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/starter/show"
)

// What the command line says of plans of strategy allAtOnce to whoever meets them for the first time.
func TestPlansThatShareNodesExplainThemselves(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 1}")
	before := s.imprint("worker-01")
	s.exits(s.drydock("plan", "create", "never", "worker-01", "--strategy", "all-at-once", "--stage", "Complete", "--yes"), 2, "want one of Idle, Cordon, Drain")
	s.mustDrydock("plan", "create", "firmware", "worker-01", "worker-02", "--strategy", "all-at-once", "--stage", "Cordon", "--yes")
	s.untilShown("firmware", "says which limit its gang is larger than", func(p show.Plan) bool {
		return strings.Contains(p.WaitingFor, "0 of 2 are; ") && strings.Contains(p.WaitingFor, "drydock limits set --max-parallel 2")
	})
	s.mustDrydock("limits", "set", "--max-parallel", "2")
	s.untilShown("firmware", "is cordoned", func(p show.Plan) bool { return p.Stages != nil && p.Stages.Nodes.Cordoned == 2 })
	s.exits(s.drydock("plan", "create", "bios", "worker-01", "--strategy", "all-at-once", "--stage", "Drain", "--priority", "5", "--yes"), 1,
		"plan bios has not begun, and is in stage Idle: Drain was refused", "plan set-stage bios Drain")
	s.says("status", s.mustDrydock("status", "worker-01", "--requestor", api.PlansRequestor), "Started by:", "the plans that share the node (worker ")
	s.mustDrydock("plan", "set-stage", "firmware", "Drain")
	s.untilShown("firmware", "is drained", func(p show.Plan) bool { return p.Stages != nil && p.Stages.Drained.Status })
	s.says("done", s.mustDrydock("done", "worker-01", "--requestor", api.PlansRequestor, "--yes"), "done; plan firmware goes on without the node")
	s.back("worker-01", before)
	s.untilShown("firmware", "goes on without the node", func(p show.Plan) bool { return p.Counts != nil && p.Counts.Done == 1 && p.Counts.Running == 1 })
	s.mustDrydock("plan", "cancel", "bios", "--yes")
	s.mustDrydock("plan", "set-stage", "firmware", "Complete")
	s.untilShown("firmware", "has ended", func(p show.Plan) bool { return p.EndedAt != nil })
}
