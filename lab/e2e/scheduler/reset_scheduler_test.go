package scheduler

import (
	"fmt"
	"slices"
	"testing"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

func TestTheSchedulerThatIsResetGrantsNothingTwice(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 2}")
	nodes := s.WatchNodes()
	runs := map[string]client.WorkflowRun{}
	for _, name := range []string{"worker-01", "worker-02"} {
		runs[name] = s.Begin(name)
		s.Until(runs[name], api.Ready)
	}
	for _, name := range []string{"worker-03", "worker-04"} {
		runs[name] = s.Begin(name)
		s.WaitsFor(runs[name], "maxParallel 2")
	}
	// To its first task, to where it had granted nothing, one, both; and once more, which resets a run that was reset.
	for _, part := range []int{0, 25, 50, 100, 50} {
		resetScheduler(s, part)
		slotsAre(s, []string{"worker-01", "worker-02"}, []string{"worker-03", "worker-04"})
	}
	s.Done(runs["worker-01"])
	s.Until(runs["worker-03"], api.Ready)
	// To where the first still held its slot, and the third still waited.
	for _, part := range []int{0, 50, 90} {
		resetScheduler(s, part)
		slotsAre(s, []string{"worker-02", "worker-03"}, []string{"worker-04"})
	}
	// While it finds out who holds what, slots are given back and asked for.
	resetScheduler(s, 0)
	s.Done(runs["worker-02"])
	s.Until(runs["worker-04"], api.Ready)
	runs["worker-05"] = s.Begin("worker-05")
	s.WaitsFor(runs["worker-05"], "maxParallel 2")
	resetScheduler(s, 60)
	s.Done(runs["worker-03"])
	s.Until(runs["worker-05"], api.Ready)
	s.Done(runs["worker-04"])
	s.Done(runs["worker-05"])
	if most := s.NobodyHolds(nodes); most != 2 {
		t.Errorf("%d nodes were held at one instant, want 2", most)
	}
	for _, name := range []string{"worker-01", "worker-02", "worker-03", "worker-04", "worker-05"} {
		if taken := nodes.Taken(name); taken != 1 {
			t.Errorf("%s was taken %d times", name, taken)
		}
	}
	slotsAre(s, nil, nil)
}

// resetScheduler resets the scheduler to a workflow task so many percent into its history.
func resetScheduler(s *site.Site, percent int) {
	s.Helper()
	s.ResetWorkflow(api.SchedulerID(s.Cluster), percent)
}

// slotsAre waits until the scheduler knows who holds a slot and who waits for one, and that is as wanted.
func slotsAre(s *site.Site, holders, pending []string) {
	s.Helper()
	s.Eventually("the slots are as before", func() error {
		state := s.State()
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
