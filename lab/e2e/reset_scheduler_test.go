package e2e

import (
	"fmt"
	"slices"
	"testing"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
)

func TestTheSchedulerThatIsResetGrantsNothingTwice(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 2}")
	nodes := s.watchNodes()
	runs := map[string]client.WorkflowRun{}
	for _, name := range []string{"worker-01", "worker-02"} {
		runs[name] = s.begin(name)
		s.until(runs[name], api.Ready)
	}
	for _, name := range []string{"worker-03", "worker-04"} {
		runs[name] = s.begin(name)
		s.waitsFor(runs[name], "maxParallel 2")
	}
	// To its first task, to where it had granted nothing, one, both; and once more, which resets a run that was reset.
	for _, part := range []int{0, 25, 50, 100, 50} {
		s.resetScheduler(part)
		s.slotsAre([]string{"worker-01", "worker-02"}, []string{"worker-03", "worker-04"})
	}
	s.done(runs["worker-01"])
	s.until(runs["worker-03"], api.Ready)
	// To where the first still held its slot, and the third still waited.
	for _, part := range []int{0, 50, 90} {
		s.resetScheduler(part)
		s.slotsAre([]string{"worker-02", "worker-03"}, []string{"worker-04"})
	}
	// While it finds out who holds what, slots are given back and asked for.
	s.resetScheduler(0)
	s.done(runs["worker-02"])
	s.until(runs["worker-04"], api.Ready)
	runs["worker-05"] = s.begin("worker-05")
	s.waitsFor(runs["worker-05"], "maxParallel 2")
	s.resetScheduler(60)
	s.done(runs["worker-03"])
	s.until(runs["worker-05"], api.Ready)
	s.done(runs["worker-04"])
	s.done(runs["worker-05"])
	if most := s.nobodyHolds(nodes); most != 2 {
		t.Errorf("%d nodes were held at one instant, want 2", most)
	}
	for _, name := range []string{"worker-01", "worker-02", "worker-03", "worker-04", "worker-05"} {
		if taken := nodes.taken(name); taken != 1 {
			t.Errorf("%s was taken %d times", name, taken)
		}
	}
	s.slotsAre(nil, nil)
}

// resetScheduler resets the scheduler to a workflow task so many percent into its history.
func (s *site) resetScheduler(percent int) {
	s.Helper()
	s.resetWorkflow(api.SchedulerID(s.cluster), percent)
}

// resetWorkflow resets the present run of a workflow to a task so many percent into its history.
func (s *site) resetWorkflow(id string, percent int) {
	s.Helper()
	described, err := s.temporal.DescribeWorkflowExecution(s.ctx, id, "")
	if err != nil {
		s.Fatal(err)
	}
	run := described.WorkflowExecutionInfo.Execution.RunId
	tasks, err := world.Tasks(s.ctx, s.temporal, id, run)
	if err != nil {
		s.Fatal(err)
	}
	to := tasks[(len(tasks)-1)*percent/100]
	if _, err := world.Reset(s.ctx, s.temporal, id, run, to); err != nil {
		s.Fatal(err)
	}
	s.Logf("%s was reset to event %d of %d tasks", id, to, len(tasks))
}

// slotsAre waits until the scheduler knows who holds a slot and who waits for one, and that is as wanted.
func (s *site) slotsAre(holders, pending []string) {
	s.Helper()
	s.eventually("the slots are as before", func() error {
		state := s.state()
		var held, waiting []string
		for _, h := range state.Holders {
			held = append(held, h.Node)
		}
		for _, p := range state.Pending {
			waiting = append(waiting, p.Node)
		}
		slices.Sort(held)
		slices.Sort(waiting)
		if state.Rebuilding || !slices.Equal(held, holders) || !slices.Equal(waiting, pending) {
			return fmt.Errorf("rebuilding %v, held %v, waiting %v", state.Rebuilding, held, waiting)
		}
		return nil
	})
}
