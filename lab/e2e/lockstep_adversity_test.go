package e2e

import (
	"errors"
	"testing"

	"drydock.dev/drydock/api"
)

// A plan that only waits in Idle keeps the nodes of no other out of service, also where the lockstep begins after it.
func TestAnIdlePlanKeepsNoNodeOfOthers(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 2}")
	before := s.imprint("worker-01")
	idle := s.plan("later", s.inLockstep(api.StageIdle, []string{"worker-02"}, "x"))
	s.untilPlan(idle, "is Idle", func(status api.PlanStatus) bool { return status.Counts.Waiting == 1 })
	run := s.plan("now", s.inLockstep(api.StageCordon, []string{"worker-01"}, "x"))
	s.untilPlan(run, "is cordoned", func(status api.PlanStatus) bool { return status.Stages != nil && status.Stages.Nodes.Cordoned == 1 })
	s.mustDrydock("plan", "set-stage", "now", string(api.StageComplete))
	if end := s.planEnds(run); end.Phase != api.PlanCompleted {
		t.Errorf("it ended %s: %s", end.Phase, end.Failure)
	}
	s.back("worker-01", before)
	s.mustDrydock("plan", "cancel", "later", "--yes")
	s.planEnds(idle)
}

// A node that is deleted while it drains, and made anew at once, is drained again.
func TestANodeOfAPlanInLockstepThatIsMadeAnewIsDrainedAgain(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 2}")
	ns := s.namespace()
	before := s.imprints()
	s.guarded(ns, "held", "worker-01")
	run := s.plan("firmware", s.inLockstep(api.StageDrain, []string{"worker-01", "worker-02"}, "held"))
	runOf := func(status api.PlanStatus) string {
		for _, n := range status.Nodes {
			if n.Node == "worker-01" {
				return n.RunID
			}
		}
		return ""
	}
	first := runOf(s.untilPlan(run, "waits for a pod", func(status api.PlanStatus) bool {
		return status.Stages != nil && status.Stages.Nodes.Pending == 1 && runOf(status) != ""
	}))
	s.createNode(s.deleteNode("worker-01"))
	s.untilPlan(run, "has begun the new node", func(status api.PlanStatus) bool {
		return runOf(status) != "" && runOf(status) != first && status.Stages.Nodes.Cordoned == 2
	})
	s.allow(ns, "held")
	s.untilDrained(run)
	if status, err := s.planStatus(run); err != nil || status.Counts.Running != 2 || status.Counts.Skipped != 0 {
		t.Errorf("%+v, %v", status.Counts, err)
	}
	s.mustDrydock("plan", "set-stage", "firmware", string(api.StageComplete))
	if end := s.planEnds(run); end.Phase != api.PlanCompleted {
		t.Errorf("it ended %s: %s", end.Phase, end.Failure)
	}
	for _, node := range []string{"worker-01", "worker-02"} {
		s.back(node, before[node])
	}
}

// A plan that is reset, with or without what it was told since, goes on, and one that is reset to Idle while its nodes are held
// gives them back when it is cancelled.
func TestAPlanInLockstepThatIsResetGoesOn(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 2}")
	before := s.imprints()
	nodes := []string{"worker-01", "worker-02"}
	for name, end := range map[string]api.PlanPhase{"kept": api.PlanCompleted, "lost": api.PlanCancelled} {
		s.sub(name, func(s *site) {
			run := s.plan(name, s.inLockstep(api.StageIdle, nodes, "x"))
			first := s.firstTask(run.GetID())
			s.mustDrydock("plan", "set-stage", name, string(api.StageDrain))
			s.untilDrained(run)
			again := s.resetTo(run, first, name == "kept")
			if name == "kept" {
				s.untilDrained(again)
				s.mustDrydock("plan", "set-stage", name, string(api.StageComplete))
			} else {
				s.untilPlan(again, "hears that its nodes are held", func(status api.PlanStatus) bool {
					return status.Stages != nil && status.Stages.Stage == api.StageIdle && status.Counts.Running == len(nodes)
				})
				s.mustDrydock("plan", "cancel", name, "--yes")
			}
			if status := s.planEnds(again); status.Phase != end {
				s.Errorf("it ended %s: %s", status.Phase, status.Failure)
			}
			for _, node := range nodes {
				s.back(node, before[node])
			}
		})
	}
}

// A shared maintenance that is reset to before it was told how far to go is told again, and holds up no plan.
func TestASharedMaintenanceThatIsResetIsToldAgain(t *testing.T) {
	slow(t)
	s := newSite(t, "scheduler: {maxParallel: 2}")
	before := s.imprint("worker-01")
	run := s.plan("firmware", s.inLockstep(api.StageCordon, []string{"worker-01"}, "x", "y"))
	s.untilPlan(run, "is cordoned", func(status api.PlanStatus) bool { return status.Stages != nil && status.Stages.Nodes.Cordoned == 1 })
	id := api.MaintenanceID(s.cluster, "worker-01", api.PlansRequestor)
	var last int64
	s.eventually("the maintenance has a history", func() (err error) {
		if last = s.lastTask(id); last == 0 {
			err = errors.New("no workflow task is completed")
		}
		return err
	})
	s.mustDrydock("plan", "set-stage", "firmware", string(api.StageDrain))
	s.untilDrained(run)
	s.until(s.resetTo(s.temporal.GetWorkflow(s.ctx, id, ""), last, false), api.Ready)
	s.untilDrained(run)
	s.mustDrydock("plan", "set-stage", "firmware", string(api.StageComplete))
	if end := s.planEnds(run); end.Phase != api.PlanCompleted {
		t.Errorf("it ended %s: %s", end.Phase, end.Failure)
	}
	s.back("worker-01", before)
}

// Where the lockstep is terminated, and the plan too, a worker starts it anew, and it gives the nodes back.
func TestNodesOfAPlanComeBackThoughTheLockstepIsTerminatedWithIt(t *testing.T) {
	slow(t)
	s := newSite(t, "scheduler: {maxParallel: 2}")
	before := s.imprint("worker-01")
	run := s.plan("firmware", s.inLockstep(api.StageCordon, []string{"worker-01"}, "x"))
	s.untilPlan(run, "is cordoned", func(status api.PlanStatus) bool { return status.Stages != nil && status.Stages.Nodes.Cordoned == 1 })
	for _, id := range []string{api.LockstepID(s.cluster), run.GetID()} {
		if err := s.temporal.TerminateWorkflow(s.ctx, id, "", "a test"); err != nil {
			t.Fatal(err)
		}
	}
	s.back("worker-01", before)
	s.slotFree("worker-01")
}
