package scheduler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

// gang lets maintenances of ops ask for nodes as a gang, one a minute from a time on.
func (f *fleet) gang(when time.Duration, name string, size int, nodes ...int) (all []*asking) {
	for i, n := range nodes {
		a := f.request(when+time.Duration(i)*time.Minute, fmt.Sprintf("n%d", n), "ops", 0)
		a.request.Gang = &schedule.Gang{Name: name, Size: size}
		all = append(all, a)
	}
	return all
}

// again lets a maintenance repeat its request with another gang.
func (f *fleet) again(when time.Duration, a *asking, gang *schedule.Gang) {
	f.at(when, func() {
		a.request.Gang = gang
		f.signal(api.SignalSlotRequest, a.request)
	})
}

func TestAGangIsGrantedOnceAllHaveAsked(t *testing.T) {
	for _, after := range []int{0, 1, 2} {
		t.Run(fmt.Sprint("continued as new after ", after), func(t *testing.T) {
			f := newFleet(t, 9)
			f.state.ContinueAfter = after
			f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Count(3)}
			all := f.gang(time.Minute, "x", 3, 1, 2, 3)
			f.expectAt(150*time.Second, "", "n1/ops n2/ops")
			f.expectAt(10*time.Minute, "n1/ops n2/ops n3/ops", "")
			// The rest of a gang that holds slots goes singly.
			late := f.gang(20*time.Minute, "x", 4, 4)
			f.at(30*time.Minute, func() { f.release(all[0]) })
			f.expectAt(40*time.Minute, "n2/ops n3/ops n4/ops", "")
			f.run(time.Hour)
			first := all[0].pending
			if len(first) == 0 || first[0].Code != schedule.GangIncomplete || !strings.HasPrefix(first[0].Reason, "gang x goes once all of its 3 nodes have asked") {
				t.Errorf("the first got %+v", first)
			}
			if len(late[0].granted) != 1 {
				t.Errorf("the one that came late was granted %v, got %+v", late[0].granted, late[0].pending)
			}
		})
	}
}

func TestTheLatestSizeOfAGangCounts(t *testing.T) {
	for _, after := range []int{0, 1} {
		t.Run(fmt.Sprint("continued as new after ", after), func(t *testing.T) {
			f := newFleet(t, 9)
			f.state.ContinueAfter = after
			f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Unlimited()}
			x := f.gang(time.Minute, "x", 3, 1, 2)
			f.again(10*time.Minute, x[0], &schedule.Gang{Name: "x", Size: 2}) // a node went away
			y := f.gang(20*time.Minute, "y", 4, 3, 4)
			f.expectAt(30*time.Minute, "n1/ops n2/ops", "n3/ops n4/ops")
			f.again(31*time.Minute, y[1], nil) // it goes by itself
			f.expectAt(35*time.Minute, "n1/ops n2/ops n4/ops", "n3/ops")
			f.again(40*time.Minute, y[0], &schedule.Gang{Name: "z", Size: 1})
			f.expectAt(45*time.Minute, "n1/ops n2/ops n4/ops n3/ops", "")
			f.run(time.Hour)
		})
	}
}

// The command that a gang is advised lets it go.
func TestAGangThatIsTooLargeGoesOnceTheLimitIsRaised(t *testing.T) {
	f := newFleet(t, 9)
	all := f.gang(time.Minute, "x", 2, 1, 2)
	f.update(20*time.Minute, api.UpdateSetLimits, api.SetLimits{By: "amy", Limits: schedule.Limits{MaxParallel: schedule.Count(2)}})
	f.expectAt(30*time.Minute, "n1/ops n2/ops", "")
	f.run(time.Hour)
	answers := all[1].pending
	if len(answers) == 0 || answers[0].Code != schedule.GangTooLarge || !strings.Contains(answers[0].Reason, "drydock limits set --max-parallel 2") {
		t.Errorf("it got %+v", answers)
	}
}

func TestNothingOfLowerRankDelaysAGang(t *testing.T) {
	f := newFleet(t, 9)
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Count(2)}
	f.request(time.Second, "n9", "net", 30*time.Minute)
	f.gang(time.Minute, "x", 2, 1, 2)
	below := f.request(10*time.Minute, "n5", "low", 0)
	f.expectAt(20*time.Minute, "n9/net", "n1/ops n2/ops n5/low")
	f.expectAt(40*time.Minute, "n1/ops n2/ops", "n5/low")
	f.run(time.Hour)
	if len(below.pending) == 0 || below.pending[0].Code != schedule.Reserved || !strings.Contains(below.pending[0].Reason, "gang x goes first") {
		t.Errorf("the one of lower rank got %+v", below.pending)
	}
}

// Who only waits for others to ask needs no watch of the cluster.
func TestAnIncompleteGangWatchesNothing(t *testing.T) {
	f := newFleet(t, 9)
	f.gang(time.Minute, "x", 3, 1, 2)
	f.run(5 * time.Hour)
	if f.watches > 0 || len(f.observed) > 2 {
		t.Errorf("%d watches and %d observations", f.watches, len(f.observed))
	}
}

func TestABadGangIsIgnored(t *testing.T) {
	f := newFleet(t, 9)
	all := f.gang(time.Minute, "a\nb", 2, 1, 2)
	f.at(30*time.Minute, func() {
		state := f.stateNow()
		if state.PendingAll != 0 || len(state.Decisions) == 0 || !strings.Contains(state.Decisions[0].Why, `gang.name: "a\nb" has control characters`) {
			t.Errorf("%d wait; %+v", state.PendingAll, state.Decisions)
		}
	})
	f.run(time.Hour)
	if len(all[0].granted) > 0 {
		t.Error("it was granted")
	}
}

// A history of a build that knew no gangs refused such requests; it goes on as it was.
func TestGangsAreUnknownWhereTheHistoryDoesNotKnowThem(t *testing.T) {
	f := newFleet(t, 9)
	f.until010 = time.Hour
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Unlimited()}
	f.gang(time.Minute, "x", 1, 1, 2)
	f.request(10*time.Minute, "n3", "net", 0)
	f.expectAt(30*time.Minute, "n3/net", "")
	f.run(time.Hour)
}

// A scheduler that begins anew knows the gang of those who hold slots from themselves, also where it had them from elsewhere.
func TestARebuildKnowsTheGangsOfHolders(t *testing.T) {
	for _, known := range []bool{false, true} {
		t.Run(fmt.Sprint("holder known ", known), func(t *testing.T) {
			f := newFleet(t, 9)
			f.state.Rebuilt = false
			f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Count(2)}
			holder := f.running("n1", "ops", 1, false)
			if f.nodes["n1"].marked = holder.request.RunID; known {
				f.state.Holders = append(f.state.Holders, f.holderOf(holder))
			}
			holder.request.Gang = &schedule.Gang{Name: "x", Size: 3}
			f.answers[holder.request.RunID] = answered(t, api.SlotWanted{SlotRequest: holder.request, Wants: true, GrantedAt: &f.start})
			rest := f.gang(time.Minute, "x", 3, 2)
			f.at(10*time.Minute, func() {
				for _, h := range f.stateNow().Holders {
					if h.Gang != "x" {
						t.Errorf("%s holds for gang %q", h.Node, h.Gang)
					}
				}
			})
			f.expectAt(10*time.Minute, "n1/ops n2/ops", "")
			f.run(20 * time.Minute)
			if len(rest[0].granted) != 1 {
				t.Errorf("the rest got %+v", rest[0].pending)
			}
		})
	}
}

// A gang of thousands is answered, granted and repeated without payloads or signals without end.
func TestAGangOfThousandsGoes(t *testing.T) {
	f := newFleet(t, 1)
	f.neverTooMany()
	f.fill(3000, fewRequestors())
	gang := &schedule.Gang{Name: strings.Repeat("x", 253), Size: 3000}
	for i := range f.state.Pending {
		f.state.Pending[i].Gang = gang
	}
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Unlimited()}
	f.at(time.Second, func() { f.signal(api.SignalSlotRelease, api.SlotRelease{RequestID: runOf("no", "body") + "/1"}) })
	f.at(time.Hour, func() {
		if state := f.stateNow(); len(state.Holders) != 3000 || state.PendingAll != 0 {
			t.Errorf("%d hold and %d wait", len(state.Holders), state.PendingAll)
		}
	})
	f.run(2 * time.Hour)
	f.weigh(wantedPayload)
}
