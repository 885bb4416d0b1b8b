package plan

import (
	"strings"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

// What the command line says of plans of strategy allAtOnce to whoever meets them for the first time.
func TestPlansThatShareNodesExplainThemselves(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 1}")
	before := s.Imprint("worker-01")
	s.Exits(s.Drydock("plan", "create", "never", "worker-01", "--strategy", "all-at-once", "--stage", "Complete", "--yes"), 2, "want one of Idle, Cordon, Drain")
	s.MustDrydock("plan", "create", "firmware", "worker-01", "worker-02", "--strategy", "all-at-once", "--stage", "Cordon", "--yes")
	untilShown(s, "firmware", "says which limit its gang is larger than", func(p api.Plan) bool {
		return strings.Contains(p.WaitingFor, "0 of 2 are; ") && strings.Contains(p.WaitingFor, "drydock limits set --max-parallel 2")
	})
	s.MustDrydock("limits", "set", "--max-parallel", "2")
	untilShown(s, "firmware", "is cordoned", func(p api.Plan) bool { return p.Stages != nil && p.Stages.Nodes.Cordoned == 2 })
	s.Exits(s.Drydock("plan", "create", "bios", "worker-01", "--strategy", "all-at-once", "--stage", "Drain", "--priority", "5", "--yes"), 1,
		"plan bios has not begun, and is in stage Idle: Drain was refused", "plan set-stage bios Drain")
	s.Says("status", s.MustDrydock("status", "worker-01", "--requestor", api.PlansRequestor), "Started by:", "the plans that share the node (worker ")
	s.MustDrydock("plan", "set-stage", "firmware", "Drain")
	untilShown(s, "firmware", "is drained", func(p api.Plan) bool { return p.Stages != nil && p.Stages.Drained.Status })
	s.Says("done", s.MustDrydock("done", "worker-01", "--requestor", api.PlansRequestor, "--yes"), "done; plan firmware goes on without the node")
	s.Back("worker-01", before)
	untilShown(s, "firmware", "goes on without the node", func(p api.Plan) bool { return p.Counts != nil && p.Counts.Done == 1 && p.Counts.Running == 1 })
	s.MustDrydock("plan", "cancel", "bios", "--yes")
	s.MustDrydock("plan", "set-stage", "firmware", "Complete")
	untilShown(s, "firmware", "has ended", func(p api.Plan) bool { return p.EndedAt != nil })
}
