package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows/workflowtest"
)

// outcomeOf is what a scenario comes to: the grants in order, and what is left at its end.
func outcomeOf(t *testing.T, continueAfter int, is010 func(run int) bool) (outcome []string, runs int) {
	f := newFleet(t, 12)
	f.is010 = is010
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Count(2)}
	f.state.ContinueAfter = continueAfter
	for i := range 8 {
		f.request(time.Duration(i+1)*time.Second, fmt.Sprintf("n%d", i+1), "ops", 10*time.Minute+time.Duration(i)*7*time.Second)
	}
	// Several in one task.
	dead := f.request(30*time.Second, "n9", "net", 0)
	f.request(30*time.Second, "n1", "net", 5*time.Minute)
	gone := f.request(30*time.Second, "n12", "net", 0)
	back := f.request(31*time.Second, "n10", "net", 0)
	f.at(40*time.Second, func() { f.release(back) })
	f.change(20*time.Second, "n12", func(n *fleetNode) { n.missing = true })
	f.update(15*time.Minute, api.UpdateFreeze, api.FreezeRequest{By: "amy", Running: true})
	f.update(17*time.Minute, api.UpdateThaw, api.ThawRequest{By: "amy"})
	f.kill(90*time.Minute, dead)
	f.update(20*time.Minute, api.UpdateSetLimits, api.SetLimits{By: "amy", Limits: schedule.Limits{MaxParallel: schedule.Count(3)}})
	for i := range 30 {
		f.at(25*time.Minute+time.Duration(i)*time.Second, func() { f.signal(api.SignalSlotRequest, workflowtest.Raw(`"noise"`)) })
	}
	// Each in one instant with a signal that may end the run.
	var updates []*stateOutcome
	for i := range 12 {
		when := 26*time.Minute + time.Duration(i)*500*time.Millisecond
		f.at(when, func() { f.signal(api.SignalSlotRequest, workflowtest.Raw(`"noise"`)) })
		updates = append(updates, f.update(when, api.UpdateSetLimits, api.SetLimits{
			By: "amy", Comment: itoa(i), Limits: schedule.Limits{MaxParallel: schedule.Count(3)},
		}))
	}
	f.at(4*time.Hour, func() {
		state := f.stateNow()
		for _, h := range state.Holders {
			outcome = append(outcome, "holds "+h.Node)
		}
		for _, p := range state.Pending {
			outcome = append(outcome, "waits "+p.Node)
		}
		outcome = append(outcome, "limits by "+state.Limits.SetBy, "limit "+state.Limits.MaxParallel.String(),
			"comment "+state.Limits.Comment, "revision "+itoa(state.Revision))
		for _, d := range state.Decisions {
			outcome = append(outcome, d.By+" "+d.What)
		}
	})
	f.run(5 * time.Hour)
	outcome = append(outcome, f.grants()...)
	for i, u := range updates {
		if !u.done || u.err != nil {
			t.Errorf("update %d was lost or failed: %+v", i, u)
		}
	}
	for run, a := range f.asking {
		if a != gone && a != back && len(a.granted) != 1 {
			t.Errorf("%s was granted %d times", run, len(a.granted))
		}
	}
	if gone.refused == nil || len(back.granted) != 0 {
		t.Errorf("a missing node got %+v, a withdrawn request granted %v", gone.refused, back.granted)
	}
	outcome = append(outcome, fmt.Sprintf("released %d orphans, held %d times", f.count("ReleaseNode n9"), f.count("hold ")))
	return outcome, f.runs
}

func TestContinueAsNewLosesNothing(t *testing.T) {
	want, runs := outcomeOf(t, 0, nil)
	if runs != 1 || len(want) < 12 {
		t.Fatalf("%d runs without continue-as-new: %v", runs, want)
	}
	for _, after := range []int{1, 2, 3, 5, 7, 11} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			got, runs := outcomeOf(t, after, nil)
			if runs < 60/(after+3) {
				t.Errorf("%d runs only", runs)
			}
			if !slices.Equal(got, want) {
				t.Errorf("outcome\n%v, want\n%v", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

func TestSchedulerContinuesAsNewAlthoughANodeCannotBeReleased(t *testing.T) {
	f := newFleet(t, 3)
	f.state.ContinueAfter = 3
	a := f.request(time.Second, "n1", "ops", 0)
	f.fail["ReleaseNode n1"] = errUnknownCause
	f.kill(time.Minute, a)
	f.update(2*time.Minute, api.UpdateSetLimits, api.SetLimits{By: "amy", Limits: schedule.Limits{MaxParallel: schedule.Count(2)}})
	var late []*asking
	for i := range 10 {
		late = append(late, f.request(time.Duration(5+i*10)*time.Minute, "n2", "ops"+itoa(i), 3*time.Minute))
	}
	f.run(3 * time.Hour)
	if f.runs < 3 {
		t.Errorf("%d runs", f.runs)
	}
	for i, a := range late {
		if len(a.granted) != 1 || a.granted[0]-time.Duration(5+i*10)*time.Minute > 3*time.Minute {
			t.Errorf("request %d was granted at %v", i, a.granted)
		}
	}
}

func TestSchedulerContinuesAsNewWhileTheAPIServerIsAway(t *testing.T) {
	f := newFleet(t, 3)
	f.state.ContinueAfter = 2
	f.fail["ObserveNodes"] = errUnknownCause
	for i := range 3 {
		f.request(time.Duration(i+1)*time.Second, fmt.Sprintf("n%d", i+1), "ops", time.Minute)
	}
	f.at(30*time.Minute, func() { f.mu.Lock(); defer f.mu.Unlock(); delete(f.fail, "ObserveNodes") })
	f.expectAt(time.Hour, "", "")
	f.run(2 * time.Hour)
	if got := f.grants(); len(got) != 3 || f.runs < 2 {
		t.Errorf("grants %v in %d runs", got, f.runs)
	}
}

func TestStateIsPaged(t *testing.T) {
	f := newFleet(t, 260)
	f.update(time.Millisecond, api.UpdateFreeze, api.FreezeRequest{By: "amy"})
	for i := range 250 {
		f.request(time.Second+time.Duration(i)*time.Millisecond, fmt.Sprintf("n%d", i+1), "ops", 0)
	}
	f.at(time.Minute, func() {
		seen := map[string]bool{}
		offset, pages := 0, 0
		for {
			state := f.stateNow(api.StateRequest{Offset: offset})
			pages++
			for _, p := range state.Pending {
				seen[p.Node] = true
			}
			if offset = state.NextOffset; offset == 0 || pages > 10 {
				break
			}
		}
		if len(seen) != 250 || pages != 3 {
			t.Errorf("%d nodes on %d pages", len(seen), pages)
		}
		for name, c := range map[string]struct {
			page api.StateRequest
			want int
		}{
			"beyond the end":  {api.StateRequest{Offset: 9999}, 0},
			"before the head": {api.StateRequest{Offset: -5, Limit: 10}, 10},
			"negative limit":  {api.StateRequest{Limit: -1}, 100},
			"all":             {api.StateRequest{Limit: 1 << 30}, 250},
		} {
			if state := f.stateNow(c.page); len(state.Pending) != c.want || state.PendingAll != 250 {
				t.Errorf("%s: %d of %d", name, len(state.Pending), state.PendingAll)
			}
		}
		if _, err := f.env.QueryWorkflow(api.QueryState, workflowtest.Raw(`{"page":1}`)); err == nil {
			t.Error("an unknown field was accepted")
		}
	})
	f.run(time.Hour)
}

func TestThoseWhoWaitGetReasonsAFewAtATimeAndNotForEachChange(t *testing.T) {
	f := newFleet(t, 200)
	for i := range 120 {
		f.request(time.Second, fmt.Sprintf("n%d", i+1), fmt.Sprintf("r%d", i%7), time.Minute)
	}
	f.run(5 * time.Minute)
	sent := 0
	for _, a := range f.asking {
		sent += len(a.pending)
		if len(a.granted) == 0 && len(a.pending) == 0 {
			t.Errorf("%s got no signal", a.request.ID)
		}
		if len(a.pending) > 2 {
			t.Errorf("%s got %d signals", a.request.ID, len(a.pending))
		}
	}
	if sent < 115 {
		t.Errorf("got %d", sent)
	}
}
