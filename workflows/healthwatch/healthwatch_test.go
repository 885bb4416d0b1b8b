package healthwatch_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	activity "drydock/activities/health"
	"drydock/api"
	"drydock/rules/health"
	"drydock/workflows/call"
	"drydock/workflows/healthwatch"
	"drydock/workflows/workflowtest"
)

const latency = 20 * time.Millisecond

// site is the world around a watch: checks that say what they want, and nodes that it sees.
type site struct {
	t       *testing.T
	env     *testsuite.TestWorkflowEnvironment
	start   time.Time
	packed  []byte
	running map[string]string
	// told is what checks were told, repeats who was asked to repeat.
	told    map[string][]api.HealthNews
	repeats []string
	// sees are what the next watches see, and when; a watch with none sees everything of the checks that know nothing at once.
	sees    []sight
	watches []activity.WatchInput
	// fails are how often checks cannot be told.
	fails int
	// denied is why nothing can be watched before a time.
	denied      error
	deniedUntil time.Duration
	// fresh: somebody is to be told everything.
	fresh bool
	// noting guards what signals to several checks, and a watch beside the one before it, write together.
	noting sync.Mutex
}

type sight struct {
	at     time.Duration
	result activity.WatchResult
}

func runOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

func newSite(t *testing.T, checks ...string) *site {
	s := &site{t: t, start: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), running: map[string]string{}, told: map[string][]api.HealthNews{}}
	for _, name := range checks {
		s.running[name] = runOf(name)
	}
	s.begin(s.start)
	return s
}

func (s *site) begin(now time.Time) {
	s.env = workflowtest.Environment(now)
	s.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: api.HealthWatchID(""), TaskQueue: api.DefaultTaskQueue})
	s.env.RegisterWorkflowWithOptions(healthwatch.HealthWatch, workflow.RegisterOptions{Name: api.HealthWatchType})
	s.env.RegisterActivity(call.Health)
	s.env.OnActivity(call.Health.FindChecks, mock.Anything, mock.Anything).After(latency).Return(
		func(_ context.Context, in activity.FindChecksInput) (api.List[activity.RunningCheck], error) {
			var found api.List[activity.RunningCheck]
			for _, name := range []string{"a", "b", "c"} {
				if run := s.running[name]; run != "" && (len(in.Names) == 0 || slices.Contains(in.Names, name)) {
					found = append(found, activity.RunningCheck{Name: name, RunID: run})
				}
			}
			return found, nil
		})
	s.env.OnActivity(call.Health.TellChecks, mock.Anything, mock.Anything).After(latency).Return(
		func(_ context.Context, in activity.TellInput) (activity.ToldChecks, error) {
			var told activity.ToldChecks
			for _, one := range in.News {
				if s.fails > 0 {
					s.fails--
					s.fresh = true
					told.Missed = append(told.Missed, activity.MissedCheck{Check: one.Check, Why: "it has too many signals"})
					continue
				}
				s.told[one.Check] = append(s.told[one.Check], one.News)
			}
			return told, nil
		})
	s.env.OnActivity(call.Health.WatchHealth, mock.Anything, mock.Anything).AfterFn(s.untilSeen).Return(s.see)
	s.env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(
		func(_, id, _, name string, arg any) error {
			if news, ok := arg.(api.HealthNews); !ok || !news.Repeat || name != api.SignalHealthNews {
				s.t.Errorf("signal %s to %s", name, id)
			}
			s.noting.Lock()
			defer s.noting.Unlock()
			s.repeats = append(s.repeats, id)
			return nil
		})
}

func (s *site) now() time.Duration { return s.env.Now().Sub(s.start) }

func (s *site) untilSeen() time.Duration {
	s.noting.Lock()
	fresh := s.fresh
	s.noting.Unlock()
	for _, next := range s.sees {
		if !fresh && next.at > s.now() {
			return max(next.at-s.now(), latency)
		}
	}
	return latency
}

func (s *site) see(ctx context.Context, in activity.WatchInput) (activity.WatchResult, error) {
	s.noting.Lock()
	s.watches = append(s.watches, in)
	if s.denied != nil && s.now() < s.deniedUntil {
		s.noting.Unlock()
		return activity.WatchResult{}, s.denied
	}
	s.fresh = false
	s.noting.Unlock()
	var result activity.WatchResult
	for _, c := range in.Checks {
		if !c.Known.All {
			result.Checks = append(result.Checks, activity.CheckSeen{Name: c.Name, Digest: "d", Observation: health.Observation{
				Full: true, At: s.env.Now(), Groups: []health.GroupCount{{Nodes: 3}},
			}})
		}
	}
	// A watch that was ended comes here too, at the same instant, and takes nothing away.
	for len(s.sees) > 0 && s.sees[0].at < s.now()-time.Millisecond {
		s.sees = s.sees[1:]
	}
	if len(s.sees) > 0 && s.sees[0].at <= s.now() {
		next := s.sees[0].result
		next.Checks = append(result.Checks, next.Checks...)
		return next, nil
	}
	return result, nil
}

// says has a check say what it wants.
func (s *site) says(when time.Duration, in api.HealthIntent) {
	if in.RunID == "" {
		in.RunID = s.running[in.Name]
	}
	if in.CreatedAt.IsZero() {
		in.CreatedAt = s.start.Add(-time.Duration('z'-in.Name[0]) * time.Hour)
	}
	s.env.RegisterDelayedCallback(func() {
		s.fresh = true
		s.env.SignalWorkflow(api.SignalHealthIntent, in)
	}, when)
}

// sees has a watch see something at a time.
func (s *site) saw(at time.Duration, result activity.WatchResult) {
	s.sees = append(s.sees, sight{at, result})
}

func (s *site) run(end time.Duration) error {
	s.env.RegisterDelayedCallback(s.env.CancelWorkflow, end)
	s.sees = append(s.sees, sight{at: 10000 * time.Hour})
	s.env.ExecuteWorkflow(api.HealthWatchType, s.packed)
	return s.env.GetWorkflowError()
}

func intentOf(name string, revision int) api.HealthIntent {
	return api.HealthIntent{Name: name, Revision: revision, Intent: health.Intent{
		Selector: "pool=" + name, Conditions: []health.UnhealthyCondition{{Type: "Ready", Status: "False"}},
	}}
}

func last(news []api.HealthNews) api.HealthNews {
	if len(news) == 0 {
		return api.HealthNews{}
	}
	return news[len(news)-1]
}

func TestAWatchTellsAChecksNews(t *testing.T) {
	s := newSite(t, "a")
	s.says(time.Second, intentOf("a", 1))
	ill := health.Facts{Name: "n1", Matches: []health.Match{{Index: 0, Since: s.start}}}
	s.saw(time.Minute, activity.WatchResult{Checks: []activity.CheckSeen{{
		Name: "a", Digest: "e", Hashes: []string{"h"}, Observation: health.Observation{Nodes: []health.Facts{ill}, Groups: []health.GroupCount{{Nodes: 3, Matching: 1}}},
	}}})
	changed := intentOf("a", 2)
	changed.Remediating = []string{"n1"}
	s.says(2*time.Minute, changed)
	s.says(3*time.Minute, changed) // it was not told: everything is
	_ = s.run(5 * time.Minute)
	told := s.told["a"]
	if len(told) != 4 {
		t.Fatalf("told %+v", told)
	}
	for i, n := range told {
		if n.Sequence != i+1 || n.RunID != runOf("a") || n.Watch == "" || len(n.Groups) != 1 {
			t.Errorf("%d: %+v", i, n)
		}
	}
	if !told[0].Full || told[1].Full || len(told[1].Nodes) != 1 || told[2].Revision != 2 || told[2].Full || len(told[2].Nodes) != 0 || !told[3].Full {
		t.Errorf("told %+v", told)
	}
	knows := func(w activity.WatchInput) bool { return w.Checks[0].Known.All && w.Checks[0].Known.Nodes["n1"] == "h" }
	if !slices.ContainsFunc(s.watches, knows) {
		t.Errorf("no watch knows what was told: %+v", s.watches)
	}
}

func TestChecksThatOverlapAreRefused(t *testing.T) {
	s := newSite(t, "a", "b")
	s.says(time.Second, intentOf("a", 1))
	s.says(2*time.Second, intentOf("b", 1))
	s.saw(time.Minute, activity.WatchResult{Overlaps: &activity.Overlaps{Digest: "x", Memberships: []health.Membership{{Node: "n1", Checks: []string{"a", "b"}}}}})
	s.saw(2*time.Minute, activity.WatchResult{Overlaps: &activity.Overlaps{Digest: "y"}})
	refused := ""
	s.env.RegisterDelayedCallback(func() { refused = last(s.told["b"]).Refused }, 90*time.Second)
	_ = s.run(5 * time.Minute)
	if !strings.Contains(refused, "a and b both select node n1") || last(s.told["b"]).Refused != "" || last(s.told["a"]).Refused != "" {
		t.Errorf("refused %q; then %+v", refused, last(s.told["b"]))
	}
}

func TestOneControlPlaneNodeAtATime(t *testing.T) {
	s := newSite(t, "a", "b")
	a, b := intentOf("a", 1), intentOf("b", 1)
	a.WantPermit, b.WantPermit = []string{"m1", "m2"}, []string{"m3"}
	s.says(time.Second, a)
	s.says(2*time.Second, b)
	at := func(when time.Duration, a, b string) {
		s.env.RegisterDelayedCallback(func() {
			if last(s.told["a"]).Permit != a || last(s.told["b"]).Permit != b {
				t.Errorf("%s: permits %q and %q, want %q and %q (%s)", when, last(s.told["a"]).Permit, last(s.told["b"]).Permit, a, b, last(s.told["b"]).PermitWhy)
			}
		}, when)
	}
	at(time.Minute, "m1", "")
	a.Revision, a.WantPermit, a.HoldPermit, a.Remediating = 2, []string{"m2"}, []string{"m1"}, []string{"m1"}
	s.says(2*time.Minute, a)
	at(3*time.Minute, "m1", "")
	a.Revision, a.HoldPermit, a.Remediating, a.WantPermit = 3, nil, nil, nil
	s.says(4*time.Minute, a)
	at(5*time.Minute, "", "m3")
	_ = s.run(6 * time.Minute)
}

func TestEtcdHasToAllowIt(t *testing.T) {
	s := newSite(t, "a")
	a := intentOf("a", 1)
	a.WantPermit, a.Etcd = []string{"m1"}, &health.EtcdQuestion{Etcd: health.Etcd{Namespace: "etcd"}}
	s.says(time.Second, a)
	s.saw(time.Minute, activity.WatchResult{Permits: []activity.PermitSeen{{Check: "a", Node: "m1", Permitted: activity.Permitted{Why: "no disruption is allowed"}}}})
	s.saw(2*time.Minute, activity.WatchResult{Permits: []activity.PermitSeen{{Check: "a", Node: "m1", Permitted: activity.Permitted{Allowed: true}}}})
	s.env.RegisterDelayedCallback(func() {
		if n := last(s.told["a"]); n.Permit != "" || n.PermitWhy != "no disruption is allowed" {
			t.Errorf("%+v", n)
		}
	}, 90*time.Second)
	_ = s.run(3 * time.Minute)
	if last(s.told["a"]).Permit != "m1" {
		t.Errorf("%+v", last(s.told["a"]))
	}
}

func TestAWatchEndsWhenNoCheckIsLeft(t *testing.T) {
	s := newSite(t, "a", "b")
	s.says(time.Second, intentOf("a", 1))
	s.says(2*time.Second, intentOf("b", 1))
	gone := intentOf("a", 2)
	gone.Gone = true
	s.says(time.Minute, gone)
	s.saw(2*time.Minute, activity.WatchResult{EndedChecks: []string{"b"}})
	if err := s.run(time.Hour); err != nil || s.now() > 3*time.Minute {
		t.Errorf("%s: %v", s.now(), err)
	}
}

func TestAWatchThatBeginsAnewAsksTheChecks(t *testing.T) {
	s := newSite(t, "a", "b")
	s.says(5*time.Second, intentOf("a", 1))
	held := intentOf("b", 4)
	held.HoldPermit, held.Remediating = []string{"m1"}, []string{"m1"}
	want := intentOf("a", 2)
	want.WantPermit = []string{"m2"}
	s.says(6*time.Second, want)
	s.says(20*time.Second, held)
	_ = s.run(2 * time.Minute)
	if len(s.repeats) != 2 {
		t.Errorf("asked %q", s.repeats)
	}
	for _, n := range s.told["a"] {
		if n.Permit != "" {
			t.Errorf("a permit was given beside that of b: %+v", n)
		}
	}
}

func TestForgedIntentsChangeNothing(t *testing.T) {
	s := newSite(t, "a")
	s.says(time.Second, intentOf("a", 3))
	for i, forged := range []api.HealthIntent{
		{Name: "a", RunID: runOf("another"), Revision: 9, Intent: intentOf("a", 9).Intent}, {Name: "a", RunID: "x", Revision: 9}, {Name: "../a", RunID: runOf("a"), Revision: 9},
		{Name: "c", RunID: runOf("c"), Revision: 1, Intent: intentOf("c", 1).Intent}, {Name: "a", RunID: runOf("a"), Revision: 2, Gone: true, Intent: intentOf("a", 2).Intent},
	} {
		s.says(time.Minute+time.Duration(i)*time.Second, forged)
	}
	s.env.RegisterDelayedCallback(func() {
		value, err := s.env.QueryWorkflow(api.QueryState)
		var state api.HealthWatchState
		if err == nil {
			err = value.Get(&state)
		}
		if err != nil || len(state.Checks) != 1 || state.Checks[0].Revision != 3 {
			t.Errorf("%v: %+v", err, state)
		}
	}, 2*time.Minute)
	_ = s.run(3 * time.Minute)
	if len(s.told["a"]) != 1 {
		t.Errorf("told %+v", s.told["a"])
	}
}

func TestACheckThatCouldNotBeToldIsToldEverything(t *testing.T) {
	s := newSite(t, "a")
	s.fails = 2
	s.says(time.Second, intentOf("a", 1))
	_ = s.run(5 * time.Minute)
	if told := s.told["a"]; len(told) != 1 || !told[0].Full {
		t.Errorf("told %+v", told)
	}
}

// A check whose nodes cannot be watched hears why, and hears once they can be.
func TestWhatTheWatchCannotDoIsToldToItsChecks(t *testing.T) {
	const why = "watching nodes: forbidden (grant it with rbac.yaml)"
	s := newSite(t, "a")
	s.denied, s.deniedUntil = temporal.NewNonRetryableApplicationError(why, api.ErrorMissingPermission, nil), time.Minute
	s.says(time.Second, intentOf("a", 1))
	_ = s.run(5 * time.Minute)
	var troubles []string
	for _, news := range s.told["a"] {
		if news.Troubles != nil {
			troubles = append(troubles, fmt.Sprint(*news.Troubles))
		}
	}
	if len(troubles) != 2 || !strings.Contains(troubles[0], why) || troubles[1] != "[]" || !last(s.told["a"]).Full {
		t.Errorf("told of %q, and last %+v", troubles, last(s.told["a"]))
	}
}

func TestTheEndOfARemediationIsToldToItsCheck(t *testing.T) {
	s := newSite(t, "a")
	a := intentOf("a", 1)
	a.Remediating = []string{"n1"}
	s.says(time.Second, a)
	s.saw(time.Minute, activity.WatchResult{EndedRemediations: []activity.EndedRemediation{{Check: "a", Node: "n1"}}})
	_ = s.run(2 * time.Minute)
	if n := last(s.told["a"]); !slices.Equal(n.Ended, []string{"n1"}) {
		t.Errorf("%+v", n)
	}
}

func TestAWatchGoesOnInANewRun(t *testing.T) {
	s := newSite(t, "a", "b")
	for i := range 20 {
		s.says(time.Duration(i+1)*time.Second, intentOf("a", i+1))
	}
	s.says(500*time.Millisecond, intentOf("b", 1))
	s.env.RegisterDelayedCallback(func() { s.env.SetContinueAsNewSuggested(true) }, 10*time.Second)
	err := s.run(time.Minute)
	var again *workflow.ContinueAsNewError
	if !errors.As(err, &again) {
		t.Fatal(err)
	}
	if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, &s.packed); err != nil {
		t.Fatal(err)
	}
	told := len(s.told["b"])
	s.begin(s.env.Now())
	s.env.SetContinuedExecutionRunID(runOf("before"))
	s.sees = nil
	s.says(time.Second, intentOf("a", 30))
	_ = s.run(time.Minute)
	if len(s.told["b"]) != told || last(s.told["a"]).Revision != 30 || len(s.repeats) != 2 {
		t.Errorf("b was told %d times, then %d; a %+v; repeats %q", told, len(s.told["b"]), last(s.told["a"]), s.repeats)
	}
}

func TestACheckThatSomebodySaidIsGoneIsAskedAgain(t *testing.T) {
	s := newSite(t, "a", "b")
	s.says(time.Second, intentOf("a", 1))
	s.says(time.Second, intentOf("b", 1))
	forged := intentOf("a", 2)
	forged.Gone = true
	s.says(time.Minute, forged)
	far := intentOf("b", 1<<40)
	far.Selector = "pool=forged"
	s.says(2*time.Minute, far)
	s.says(3*time.Minute, intentOf("b", 2))
	s.env.RegisterDelayedCallback(func() {
		s.noting.Lock()
		defer s.noting.Unlock()
		s.repeats = nil
	}, 10*time.Minute)
	s.says(62*time.Minute, intentOf("a", 1))
	s.env.RegisterDelayedCallback(func() {
		value, err := s.env.QueryWorkflow(api.QueryState)
		var state api.HealthWatchState
		if err == nil {
			err = value.Get(&state)
		}
		if err != nil || len(state.Checks) != 2 || state.Checks[1].Revision != 2 || state.Rebuilding != "" {
			t.Errorf("%v: %+v", err, state)
		}
	}, 70*time.Minute)
	_ = s.run(80 * time.Minute)
	if !slices.Equal(s.repeats, []string{"health-check/a"}) {
		t.Errorf("asked %q", s.repeats)
	}
}

func TestAPermitOfACheckThatEndsMayHaveBeenUsed(t *testing.T) {
	s := newSite(t, "a", "b")
	a, b := intentOf("a", 1), intentOf("b", 1)
	a.WantPermit, b.WantPermit = []string{"m1"}, []string{"m2"}
	s.says(time.Second, a)
	s.says(2*time.Minute, b)
	s.saw(3*time.Minute, activity.WatchResult{EndedChecks: []string{"a"}})
	s.saw(5*time.Minute, activity.WatchResult{EndedRemediations: []activity.EndedRemediation{{Check: "a", Node: "m1"}}})
	for when, want := range map[time.Duration]string{2 * time.Minute: "m1", 4 * time.Minute: "m1", 6 * time.Minute: "m2"} {
		s.env.RegisterDelayedCallback(func() {
			value, err := s.env.QueryWorkflow(api.QueryState)
			var state api.HealthWatchState
			if err == nil {
				err = value.Get(&state)
			}
			if err != nil || state.Permit.Node != want {
				t.Errorf("at %s %s may be remediated, want %s: %v", when, state.Permit.Node, want, err)
			}
		}, when)
	}
	_ = s.run(10 * time.Minute)
}
