package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/activities/windows"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/window"
)

// openings are those of the configuration, as the worker computes them.
func (f *fleet) openings(ctx context.Context, in windows.ComputeInput) (window.Horizon, error) {
	f.note("ComputeOpenings")
	if err := f.failure("ComputeOpenings"); err != nil {
		return window.Horizon{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.windows
	if n := len(f.workers); n > 0 { // they take turns
		of, f.workers = f.workers[0], append(f.workers[1:], f.workers[0])
	}
	a, err := windows.New(of)
	if err != nil {
		return window.Horizon{}, err
	}
	return a.ComputeOpenings(ctx, in)
}

// nightly is a fleet with a window from 22:00 to 04:00 UTC that all of it keeps to. The world begins at noon.
func nightly(t *testing.T, nodes int) *fleet {
	f := newFleet(t, nodes)
	f.windows = map[string]window.Window{"nights": {From: "22:00", To: "04:00"}}
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Count(1), Windows: []string{"nights"}}
	return f
}

// reasonsSent returns the reasons that a maintenance got, in order.
func reasonsSent(a *asking) (all []string) {
	for _, answer := range a.pending {
		all = append(all, answer.Reason)
	}
	return all
}

func TestWhoWaitsForAWindowCostsNothingUntilItOpens(t *testing.T) {
	f := nightly(t, 2)
	a := f.request(time.Second, "n1", "ops", 10*time.Minute)
	gone := f.request(2*time.Second, "n9", "ops", 0)
	before := 0
	f.at(time.Hour, func() { before = len(f.log) })
	f.at(9*time.Hour, func() {
		if f.watches > 0 || len(f.log) != before || f.count("ObserveNodes") > 2 || f.count("ComputeOpenings") != 1 {
			t.Errorf("%d watches while it waits: %v", f.watches, f.log)
		}
		state := f.stateNow()
		if len(state.Pending) != 1 || state.Pending[0].Code != schedule.Window || state.Pending[0].Reason != "window nights opens 2026-07-01T22:00:00Z" {
			t.Errorf("%+v", state.Pending)
		}
		if w := state.Windows; w == nil || w.Digest != window.Digest(f.windows) || w.Zones == "" {
			t.Errorf("windows %+v", w)
		}
	})
	f.run(30 * time.Hour)
	if gone.refused == nil || gone.refused.Code != schedule.NodeMissing {
		t.Errorf("a node that is missing need not wait: %+v", gone)
	}
	if len(a.granted) != 1 || a.granted[0] < 10*time.Hour || a.granted[0] > 10*time.Hour+5*time.Second {
		t.Errorf("granted %v", a.granted)
	}
	if len(a.pending) != 1 || a.pending[0].OpensAt == nil || !a.pending[0].OpensAt.Equal(f.start.Add(10*time.Hour)) {
		t.Errorf("got %+v", a.pending)
	}
	if !slices.ContainsFunc(f.log, func(entry string) bool { return strings.Contains(entry, "ComputeOpenings") }) {
		t.Error("nothing was computed")
	}
}

func TestAMaintenanceThatRunsGoesOnWhenItsWindowCloses(t *testing.T) {
	f := nightly(t, 3)
	long := f.request(time.Second, "n1", "ops", 8*time.Hour)
	next := f.request(2*time.Second, "n2", "ops", 5*time.Minute)
	urgent := f.request(17*time.Hour, "n3", "ops", time.Minute)
	urgent.request.IgnoreWindows = "the disk burns"
	f.expectAt(15*time.Hour, "n1/ops", "n2/ops")
	f.expectAt(17*time.Hour+time.Minute, "n1/ops", "n2/ops n3/ops")
	f.run(40 * time.Hour)
	if len(long.granted) != 1 || len(long.holds) != 0 {
		t.Errorf("granted %v, held %v", long.granted, long.holds)
	}
	if len(next.granted) != 1 || next.granted[0].Truncate(time.Minute) != 34*time.Hour {
		t.Errorf("the next was granted %v", next.granted)
	}
	if len(urgent.granted) != 1 || urgent.granted[0].Truncate(time.Minute) != 18*time.Hour {
		t.Errorf("the one that ignores windows was granted %v, want when the slot was free", urgent.granted)
	}
	want := []string{
		"window nights opens 2026-07-01T22:00:00Z", "maxParallel 1: the slot is taken (n1)", "window nights opens 2026-07-02T22:00:00Z",
	}
	if got := reasonsSent(next); !slices.Equal(got, want) {
		t.Errorf("the next got %q", got)
	}
}

func TestOnlyWhatEndsBeforeTheWindowClosesIsGranted(t *testing.T) {
	f := nightly(t, 3)
	f.state.Limits.MaxParallel = schedule.Unlimited()
	short := f.request(11*time.Hour, "n1", "ops", time.Hour)
	short.request.ExpectedDuration = period.Duration(time.Hour)
	late := f.request(15*time.Hour+30*time.Minute, "n2", "ops", time.Hour)
	late.request.ExpectedDuration = period.Duration(time.Hour)
	never := f.request(time.Minute, "n3", "ops", time.Hour)
	never.request.ExpectedDuration = period.Duration(7 * time.Hour)
	f.run(72 * time.Hour)
	if len(short.granted) != 1 || short.granted[0] > 11*time.Hour+5*time.Second || len(late.granted) != 1 || late.granted[0] < 34*time.Hour || len(never.granted) != 0 {
		t.Errorf("granted %v, %v, %v", short.granted, late.granted, never.granted)
	}
	if got := reasonsSent(late); len(got) < 1 || got[0] != "window nights closes at 2026-07-02T04:00:00Z, before the expected 1h0m0s are over; at the earliest 2026-07-02T22:00:00Z" {
		t.Errorf("got %q", got)
	}
}

func TestGroupsAndRequestsHaveWindowsOfTheirOwn(t *testing.T) {
	f := nightly(t, 3)
	f.windows["mornings"] = window.Window{From: "06:00", To: "08:00"}
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Unlimited(), Groups: []schedule.Group{
		{Name: "gpu", NodeSelector: "pool=gpu", Windows: []string{"nights"}},
	}}
	f.nodes["n1"].labels = map[string]string{"pool": "gpu"}
	gpu := f.request(time.Second, "n1", "ops", time.Minute)
	own := f.request(time.Second, "n2", "ops", time.Minute)
	own.request.Windows = []string{"mornings"}
	free := f.request(time.Second, "n3", "ops", time.Minute)
	f.run(24 * time.Hour)
	for name, c := range map[string]struct {
		a    *asking
		want time.Duration
	}{"of the group": {gpu, 10 * time.Hour}, "with its own": {own, 18 * time.Hour}, "with none": {free, 0}} {
		if len(c.a.granted) != 1 || c.a.granted[0].Truncate(time.Minute) != c.want {
			t.Errorf("the one %s was granted %v", name, c.a.granted)
		}
	}
}

func TestAWindowFarAheadIsLookedForAgainAndAgain(t *testing.T) {
	f := nightly(t, 1)
	f.windows["nights"] = window.Window{Cron: "0 0 1 * *", For: period.Duration(time.Hour)}
	a := f.request(time.Second, "n1", "ops", time.Minute)
	f.run(32 * 24 * time.Hour)
	if len(a.granted) != 1 || a.granted[0].Truncate(time.Minute) != 30*24*time.Hour+12*time.Hour {
		t.Errorf("granted %v", a.granted)
	}
	if n := f.count("ComputeOpenings"); n < 4 || n > 6 || f.count("ObserveNodes") > 3 {
		t.Errorf("computed %d times: %v", n, f.log)
	}
	if first := reasonsSent(a)[0]; first != "window nights does not open before 2026-07-10T12:00:01Z" {
		t.Errorf("got %s", first)
	}
}

func TestWhereOpeningsCannotBeComputedNothingGoesThatNeedsThem(t *testing.T) {
	f := nightly(t, 2)
	f.windows["nights"] = window.Window{From: "00:00", To: "24:00"}
	f.fail["ComputeOpenings"] = errUnknownCause
	a := f.request(time.Second, "n1", "ops", time.Minute)
	urgent := f.request(time.Second, "n2", "ops", time.Minute)
	urgent.request.IgnoreWindows = "the disk burns"
	f.at(30*time.Minute, func() {
		state := f.stateNow()
		if len(state.Pending) != 1 || state.Pending[0].Code != schedule.Window || !strings.Contains(state.Pending[0].Reason, "window nights opens could not be found out") ||
			state.Trouble == nil || !strings.Contains(state.Trouble.What, "when windows are open") {
			t.Errorf("%+v, trouble %+v", state.Pending, state.Trouble)
		}
		f.mu.Lock()
		delete(f.fail, "ComputeOpenings")
		f.mu.Unlock()
	})
	f.expectAt(time.Hour, "", "")
	f.run(2 * time.Hour)
	if len(a.granted) != 1 || a.granted[0] < 30*time.Minute || len(urgent.granted) != 1 || urgent.granted[0] > time.Minute {
		t.Errorf("granted %v and %v", a.granted, urgent.granted)
	}
}

func TestAWindowThatIsNotConfiguredIsWaitedFor(t *testing.T) {
	f := nightly(t, 1)
	f.state.Limits.Windows = nil
	a := f.request(time.Second, "n1", "ops", time.Minute)
	a.request.Windows = []string{"new"}
	f.at(time.Hour, func() {
		if got := f.stateNow().Pending; len(got) != 1 || got[0].Reason != "the worker's configuration has no window new (windows)" {
			t.Errorf("%+v", got)
		}
		f.signal(api.SignalWindowsChanged, api.WindowsChanged{Digest: window.Digest(f.windows)})
	})
	f.at(2*time.Hour, func() {
		if n := f.count("ComputeOpenings"); n != 1 {
			t.Errorf("computed %d times although nothing has changed", n)
		}
		f.mu.Lock()
		f.windows = map[string]window.Window{"new": {From: "00:00", To: "24:00"}}
		f.mu.Unlock()
		f.signal(api.SignalWindowsChanged, api.WindowsChanged{Digest: window.Digest(f.windows)})
	})
	f.run(3 * time.Hour)
	if len(a.granted) != 1 || a.granted[0].Truncate(time.Minute) != 2*time.Hour {
		t.Errorf("granted %v: %v", a.granted, f.log)
	}
}

func TestWindowsOutliveContinueAsNew(t *testing.T) {
	outcome := func(after int) []string {
		f := nightly(t, 12)
		f.state.ContinueAfter = after
		var all []*asking
		for i := range 8 {
			a := f.request(time.Duration(i+1)*time.Hour, fmt.Sprintf("n%d", i+1), "ops", 20*time.Minute)
			a.request.ExpectedDuration = period.Duration(i) * period.Duration(time.Hour)
			all = append(all, a)
		}
		f.run(5 * 24 * time.Hour)
		var granted []string
		for _, a := range all {
			for _, at := range a.granted {
				granted = append(granted, fmt.Sprint(a.request.Node, " ", at.Truncate(time.Minute)))
			}
		}
		if after > 0 && f.runs < 3 {
			t.Errorf("%d runs", f.runs)
		}
		return granted
	}
	want := outcome(0)
	if len(want) != 7 || want[5] != "n6 34h0m0s" || want[6] != "n7 58h0m0s" {
		t.Fatalf("granted %v", want)
	}
	for _, after := range []int{1, 2, 3, 5} {
		if got := outcome(after); !slices.Equal(got, want) {
			t.Errorf("continued as new after %d: %v, want %v", after, got, want)
		}
	}
}

func TestManyRequestsAreCarriedWithTheirWindows(t *testing.T) {
	f := nightly(t, 1)
	f.state.ContinueAfter = 1
	for i := range 1200 {
		a := f.silent(fmt.Sprintf("n%d", i+1))
		a.request.Windows, a.request.ExpectedDuration, a.request.IgnoreWindows = []string{"nights"}, period.Duration(time.Hour), fmt.Sprint("reason ", i)
		f.nodes[a.request.Node] = &fleetNode{}
		f.state.Pending = append(f.state.Pending, api.PendingRequest{SlotRequest: a.request, Code: schedule.Unobserved})
	}
	f.state.Freezes = []schedule.Freeze{{By: "amy", At: f.start}}
	f.at(time.Minute, func() { f.signal(api.SignalSlotRelease, api.SlotRelease{RequestID: runOf("no", "body") + "/1"}) })
	f.at(time.Hour, func() {
		pending := f.stateNow(api.StateRequest{Limit: 2000}).Pending
		if f.runs < 2 || len(pending) != 1200 {
			t.Errorf("%d runs, %d wait", f.runs, len(pending))
		}
		for _, p := range pending {
			if !slices.Equal(p.Windows, []string{"nights"}) || p.ExpectedDuration.Std() != time.Hour || !strings.HasPrefix(p.IgnoreWindows, "reason ") {
				t.Fatalf("%+v", p)
			}
		}
	})
	f.run(2 * time.Hour)
}

// A history may begin with a build that did not know windows, and refused a request that names one.
func TestARequestWithWindowsIsTakenOnceAllOfTheHistoryKnowsThem(t *testing.T) {
	f := nightly(t, 2)
	f.state.Limits.Windows = nil
	f.until010 = 90 * time.Second
	a := f.request(time.Second, "n1", "ops", time.Minute)
	a.request.Windows = []string{"nights"}
	for i := range 4 {
		f.at(time.Duration(i+1)*time.Minute, func() {
			if waits := len(f.stateNow().Pending); waits > 0 && f.count("ComputeOpenings") == 0 || waits == 0 && i > 1 {
				t.Errorf("%d wait after it asked %d times", waits, i+1)
			}
			f.signal(api.SignalSlotRequest, a.request)
		})
	}
	f.run(24 * time.Hour)
	if len(a.granted) != 1 || a.granted[0].Truncate(time.Minute) != 10*time.Hour {
		t.Errorf("granted %v", a.granted)
	}
}

// What such a build granted in spite of the limits' windows stays granted.
func TestLimitsHaveNoWindowsInAHistoryThatDoesNotKnowThem(t *testing.T) {
	f := nightly(t, 2)
	f.state.Limits.Groups = []schedule.Group{{Name: "all", NodeSelector: "", GroupBy: []string{"zone"}, Windows: []string{"nights"}}}
	f.until010 = time.Hour
	a := f.request(time.Second, "n1", "ops", time.Minute)
	f.run(time.Hour)
	if len(a.granted) != 1 || f.count("ComputeOpenings") != 0 {
		t.Errorf("granted %v: %v", a.granted, f.log)
	}
}

// Of workers with different windows, the one counts that was started last, whichever is asked and whoever speaks last.
func TestTheWindowsOfTheWorkerThatWasStartedLastCount(t *testing.T) {
	for _, after := range []int{0, 1} {
		t.Run(fmt.Sprint("continued as new after ", after), func(t *testing.T) { startedLastCounts(t, after) })
	}
}

func startedLastCounts(t *testing.T, continueAfter int) {
	f := nightly(t, 2)
	f.state.ContinueAfter = continueAfter
	old, late := f.windows, map[string]window.Window{"nights": {From: "20:00", To: "04:00"}}
	f.workers = []map[string]window.Window{old, late}
	send := func(of map[string]window.Window, since time.Duration) {
		f.signal(api.SignalWindowsChanged, api.WindowsChanged{Digest: window.Digest(of), Since: f.start.Add(since)})
	}
	f.at(time.Second, func() { send(late, -time.Minute) }) // nothing needs a window yet
	a := f.request(time.Minute, "n1", "ops", time.Minute)
	for i := range 5 {
		f.at(time.Duration(i+1)*time.Hour, func() { send(old, -time.Hour) })
	}
	f.at(7*time.Hour, func() {
		state := f.stateNow()
		if w := state.Windows; w == nil || w.Digest != window.Digest(late) || !w.Since.Equal(f.start.Add(-time.Minute)) {
			t.Errorf("it goes by %+v", w)
		}
		if n := f.count("ComputeOpenings"); n > 4 {
			t.Errorf("computed %d times", n)
		}
	})
	f.run(24 * time.Hour)
	if len(a.granted) != 1 || a.granted[0].Truncate(time.Minute) != 8*time.Hour {
		t.Errorf("granted %v: %v", a.granted, reasonsSent(a))
	}
}

// Where that worker runs no more, the windows of the others count.
func TestTheWindowsOfAWorkerThatIsGoneDoNotCount(t *testing.T) {
	f := nightly(t, 2)
	gone := map[string]window.Window{"nights": {From: "20:00", To: "21:00"}}
	a := f.request(time.Second, "n1", "ops", time.Minute)
	f.at(time.Minute, func() {
		f.signal(api.SignalWindowsChanged, api.WindowsChanged{Digest: window.Digest(gone), Since: f.start.Add(time.Hour)})
	})
	f.run(24 * time.Hour)
	if len(a.granted) != 1 || a.granted[0].Truncate(time.Minute) != 10*time.Hour {
		t.Errorf("granted %v: %v", a.granted, reasonsSent(a))
	}
}
