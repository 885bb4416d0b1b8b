package maintenance_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows/maintenance"
	"drydock.dev/drydock/workflows/workflowtest"
)

// member is a maintenance whose gang the test sets, and what it asks for: its request, its gang, and when.
type member struct {
	*workflowtest.Site
	maintenance.Member
	asked []asked
}

type asked struct {
	Request string
	Gang    schedule.Gang
	At      time.Duration
}

// newMember is one whose scheduler answers nothing by itself.
func newMember(t *testing.T) *member {
	m := &member{Site: workflowtest.New(t)}
	m.Workflow = m.Maintain
	start := m.Env.Now()
	m.Scheduler = func(_ string, arg any) error {
		if r, ok := arg.(api.SlotRequest); ok {
			a := asked{Request: r.ID, At: m.Env.Now().Sub(start).Truncate(time.Minute)}
			if r.Gang != nil {
				a.Gang = *r.Gang
			}
			if len(m.asked) == 0 || cmp.Diff(m.asked[len(m.asked)-1], a) != "" {
				m.asked = append(m.asked, a)
			}
		}
		return nil
	}
	return m
}

func (m *member) joinAt(d time.Duration, gang *schedule.Gang) {
	m.At(d, func() {
		m.Join(gang)
		m.Env.SignalWorkflow("wake-up", nil)
	})
}

// pendingAt has the scheduler say that a request waits, so that it is not repeated by itself.
func (m *member) pendingAt(d time.Duration, request string) {
	m.At(d, func() {
		m.Env.SignalWorkflow(api.SignalSlotPending, api.SlotAnswer{RequestID: request, Code: schedule.GangIncomplete, Reason: "not yet"})
	})
}

func TestAChangedGangIsAskedForAtOnce(t *testing.T) {
	m := newMember(t)
	first := workflowtest.RunID + "/1"
	m.pendingAt(time.Second, first)
	m.joinAt(5*time.Minute, &schedule.Gang{Name: "x", Size: 3})
	m.pendingAt(5*time.Minute+time.Second, first)
	m.joinAt(6*time.Minute, &schedule.Gang{Name: "x", Size: 3})
	m.joinAt(7*time.Minute, &schedule.Gang{Name: "x", Size: 2})
	m.ContinueAt(8 * time.Minute)
	m.joinAt(9*time.Minute, nil)
	m.pendingAt(9*time.Minute+time.Second, first)
	m.At(10*time.Minute, func() { m.Grant(first) })
	m.DoneAt(time.Hour)
	m.Run(workflowtest.InputWith(nil))
	m.ExpectCompleted()
	want := []asked{
		{Request: first}, {first, schedule.Gang{Name: "x", Size: 3}, 5 * time.Minute}, {first, schedule.Gang{Name: "x", Size: 2}, 7 * time.Minute},
		{first, schedule.Gang{Name: "x", Size: 2}, 8 * time.Minute}, // the next run asks once more
		{first, schedule.Gang{}, 9 * time.Minute},
	}
	if diff := cmp.Diff(want, m.asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	if m.Runs != 2 {
		t.Errorf("%d runs", m.Runs)
	}
}

// The others may have given their nodes back by then.
func TestAMemberThatWasTakenGoesByItselfFromThenOn(t *testing.T) {
	m := newMember(t)
	first, second := workflowtest.RunID+"/1", workflowtest.RunID+"/2"
	m.joinAt(10*time.Minute, &schedule.Gang{Name: "x", Size: 3})
	m.At(20*time.Minute, func() { m.Grant(first) })
	m.Answer("HoldNode", workflowtest.Reply{Err: workflowtest.Failing(api.ErrorSlotNotHeld, "the scheduler knows of no slot")})
	m.joinAt(30*time.Minute, &schedule.Gang{Name: "x", Size: 4})
	m.At(40*time.Minute, func() { m.Grant(second) })
	m.DoneAt(2 * time.Hour)
	in := workflowtest.InputWith(workflowtest.Input{"notBefore": m.Env.Now().Add(15 * time.Minute).UTC().Format(time.RFC3339)})
	m.Run(in)
	m.ExpectCompleted()
	for _, a := range m.asked {
		want := schedule.Gang{Name: "x", Size: 3}
		if a.Request == second {
			want.Size = 1
		}
		if a.Gang != want {
			t.Errorf("it asked for %+v, want %+v", a, want)
		}
	}
	if last := m.asked[len(m.asked)-1].Request; last != second {
		t.Errorf("it asked %+v", m.asked)
	}
}
