package plan

import (
	"errors"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

// A plan that only waits in Idle keeps the nodes of no other out of service, also where the lockstep begins after it.
func TestAnIdlePlanKeepsNoNodeOfOthers(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 2}")
	before := s.Imprint("worker-01")
	idle := newPlan(s, "later", inLockstep(s, api.StageIdle, []string{"worker-02"}, "x"))
	untilPlan(s, idle, "is Idle", func(status api.PlanStatus) bool { return status.Counts.Waiting == 1 })
	run := newPlan(s, "now", inLockstep(s, api.StageCordon, []string{"worker-01"}, "x"))
	untilPlan(s, run, "is cordoned", func(status api.PlanStatus) bool { return status.Stages != nil && status.Stages.Nodes.Cordoned == 1 })
	s.MustDrydock("plan", "set-stage", "now", string(api.StageComplete))
	if end := planEnds(s, run); end.Phase != api.PlanCompleted {
		t.Errorf("it ended %s: %s", end.Phase, end.Failure)
	}
	s.Back("worker-01", before)
	s.MustDrydock("plan", "cancel", "later", "--yes")
	planEnds(s, idle)
}

// A node that is deleted while it drains, and made anew at once, is drained again.
func TestANodeOfAPlanInLockstepThatIsMadeAnewIsDrainedAgain(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 2}")
	ns := s.Namespace()
	before := s.Imprints()
	s.Guarded(ns, "held", "worker-01")
	run := newPlan(s, "firmware", inLockstep(s, api.StageDrain, []string{"worker-01", "worker-02"}, "held"))
	runOf := func(status api.PlanStatus) string {
		for _, n := range status.Nodes {
			if n.Node == "worker-01" {
				return n.RunID
			}
		}
		return ""
	}
	first := runOf(untilPlan(s, run, "waits for a pod", func(status api.PlanStatus) bool {
		return status.Stages != nil && status.Stages.Nodes.Pending == 1 && runOf(status) != ""
	}))
	s.CreateNode(s.DeleteNode("worker-01"))
	untilPlan(s, run, "has begun the new node", func(status api.PlanStatus) bool {
		return runOf(status) != "" && runOf(status) != first && status.Stages.Nodes.Cordoned == 2
	})
	s.Allow(ns, "held")
	untilDrained(s, run)
	if status, err := planStatus(s, run); err != nil || status.Counts.Running != 2 || status.Counts.Skipped != 0 {
		t.Errorf("%+v, %v", status.Counts, err)
	}
	s.MustDrydock("plan", "set-stage", "firmware", string(api.StageComplete))
	if end := planEnds(s, run); end.Phase != api.PlanCompleted {
		t.Errorf("it ended %s: %s", end.Phase, end.Failure)
	}
	for _, node := range []string{"worker-01", "worker-02"} {
		s.Back(node, before[node])
	}
}

// A plan that is reset, with or without what it was told since, goes on, and one that is reset to Idle while its nodes are held
// gives them back when it is cancelled.
func TestAPlanInLockstepThatIsResetGoesOn(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 2}")
	before := s.Imprints()
	nodes := []string{"worker-01", "worker-02"}
	for name, end := range map[string]api.PlanPhase{"kept": api.PlanCompleted, "lost": api.PlanCancelled} {
		s.Sub(name, func(s *site.Site) {
			run := newPlan(s, name, inLockstep(s, api.StageIdle, nodes, "x"))
			first := s.FirstTask(run.GetID())
			s.MustDrydock("plan", "set-stage", name, string(api.StageDrain))
			untilDrained(s, run)
			again := s.ResetTo(run, first, name == "kept")
			if name == "kept" {
				untilDrained(s, again)
				s.MustDrydock("plan", "set-stage", name, string(api.StageComplete))
			} else {
				untilPlan(s, again, "hears that its nodes are held", func(status api.PlanStatus) bool {
					return status.Stages != nil && status.Stages.Stage == api.StageIdle && status.Counts.Running == len(nodes)
				})
				s.MustDrydock("plan", "cancel", name, "--yes")
			}
			if status := planEnds(s, again); status.Phase != end {
				s.Errorf("it ended %s: %s", status.Phase, status.Failure)
			}
			for _, node := range nodes {
				s.Back(node, before[node])
			}
		})
	}
}

// A shared maintenance that is reset to before it was told how far to go is told again, and holds up no plan.
func TestSlowASharedMaintenanceThatIsResetIsToldAgain(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 2}")
	before := s.Imprint("worker-01")
	run := newPlan(s, "firmware", inLockstep(s, api.StageCordon, []string{"worker-01"}, "x", "y"))
	untilPlan(s, run, "is cordoned", func(status api.PlanStatus) bool { return status.Stages != nil && status.Stages.Nodes.Cordoned == 1 })
	id := api.MaintenanceID(s.Cluster, "worker-01", api.PlansRequestor)
	var last int64
	s.Eventually("the maintenance has a history", func() (err error) {
		if last = s.LastTask(id); last == 0 {
			err = errors.New("no workflow task is completed")
		}
		return err
	})
	s.MustDrydock("plan", "set-stage", "firmware", string(api.StageDrain))
	untilDrained(s, run)
	s.Until(s.ResetTo(s.Temporal.GetWorkflow(s.Ctx, id, ""), last, false), api.Ready)
	untilDrained(s, run)
	s.MustDrydock("plan", "set-stage", "firmware", string(api.StageComplete))
	if end := planEnds(s, run); end.Phase != api.PlanCompleted {
		t.Errorf("it ended %s: %s", end.Phase, end.Failure)
	}
	s.Back("worker-01", before)
}

// Where the lockstep is terminated, and the plan too, a worker starts it anew, and it gives the nodes back.
func TestSlowNodesOfAPlanComeBackThoughTheLockstepIsTerminatedWithIt(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 2}")
	before := s.Imprint("worker-01")
	run := newPlan(s, "firmware", inLockstep(s, api.StageCordon, []string{"worker-01"}, "x"))
	untilPlan(s, run, "is cordoned", func(status api.PlanStatus) bool { return status.Stages != nil && status.Stages.Nodes.Cordoned == 1 })
	for _, id := range []string{api.LockstepID(s.Cluster), run.GetID()} {
		if err := s.Temporal.TerminateWorkflow(s.Ctx, id, "", "a test"); err != nil {
			t.Fatal(err)
		}
	}
	s.Back("worker-01", before)
	s.SlotFree("worker-01")
}
