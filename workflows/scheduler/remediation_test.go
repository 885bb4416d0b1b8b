package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"drydock.dev/drydock/rules/schedule"
)

// repair lets a health check ask for a node.
func (f *fleet) repair(when time.Duration, node string) *asking {
	a := f.request(when, node, "health-workers", 0)
	a.request.Remediation = true
	return a
}

func TestARemediationTakesASlotOfItsOwn(t *testing.T) {
	for _, after := range []int{0, 1, 2} {
		t.Run(fmt.Sprint("continued as new after ", after), func(t *testing.T) {
			f := newFleet(t, 20)
			f.state.ContinueAfter = after
			f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Count(1)}
			planned := f.request(time.Minute, "n1", "ops", 0)
			second := f.request(2*time.Minute, "n2", "ops", 0)
			for i := range 3 {
				f.repair(time.Duration(3+i)*time.Minute, fmt.Sprintf("n%d", 3+i))
			}
			// A tenth of 20 nodes: two, and the third waits for one of them, not for what is planned.
			f.expectAt(10*time.Minute, "n1/ops n3/health-workers n4/health-workers", "n5/health-workers n2/ops")
			f.at(15*time.Minute, func() { f.release(planned) })
			f.expectAt(40*time.Minute, "n3/health-workers n4/health-workers n2/ops", "n5/health-workers")
			f.run(time.Hour)
			if len(second.granted) != 1 {
				t.Errorf("what is planned was granted %v, got %+v", second.granted, second.pending)
			}
		})
	}
}

func TestARemediationKeepsItsSlotInARebuild(t *testing.T) {
	f := newFleet(t, 9)
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Count(1)}
	f.repair(time.Minute, "n1")
	f.request(2*time.Minute, "n2", "ops", 0)
	f.expectAt(5*time.Minute, "n1/health-workers n2/ops", "")
	f.run(time.Hour)
}

func TestOnlyAHealthCheckAsksForARemediation(t *testing.T) {
	f := newFleet(t, 9)
	a := f.request(time.Minute, "n1", "ops", 0)
	a.request.Remediation = true
	b := f.repair(2*time.Minute, "n2")
	b.request.Gang = &schedule.Gang{Name: "x", Size: 2}
	f.expectAt(5*time.Minute, "", "")
	f.run(time.Hour)
	if len(a.granted)+len(b.granted) > 0 {
		t.Errorf("granted %v and %v", a.granted, b.granted)
	}
}
