package remediation_test

import (
	"context"
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

	activity "drydock.dev/drydock/activities/health"
	planactivity "drydock.dev/drydock/activities/plan"
	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/remediation"
	"drydock.dev/drydock/workflows/workflowtest"
)

const (
	checkRun = "11111111-1111-4111-8111-111111111111"
	latency  = 20 * time.Millisecond
)

// site is the world around a remediation: a cluster with its objects, and the check.
type site struct {
	t *testing.T
	// mu guards what follows: activities and signals run beside the workflow and the callbacks.
	mu   sync.Mutex
	env  *testsuite.TestWorkflowEnvironment
	in   api.RemediationInput
	log  []string
	said []health.Progress
	// ensures are the answers to the next objects that are asked for; without, each is made.
	ensures []activity.EnsuredObject
	// sees are what the watches see, one after the other; without, nothing.
	sees []func() (time.Duration, activity.RemediationSeen)
	// keeps is how often finalizers keep the objects, removes what was to be removed.
	keeps   int
	removes []activity.RemoveInput
	// denied is why the worker may not remove objects, unmade why it may not make them.
	denied, unmade error
	// gone: the check does not run.
	gone bool
	// grants has the scheduler grant the slot that it is asked for after a while; nil never does. asleep: it does not run.
	grants *time.Duration
	asleep bool
	start  time.Time
	// objects are since when the objects of steps are there.
	objects map[int]time.Time
}

func template(name string) health.Remediation {
	return health.Remediation{Template: &health.TemplateRef{APIVersion: "r/v1", Kind: "RebootTemplate", Namespace: "n", Name: name}, Timeout: period.Duration(2 * time.Minute)}
}

func newSite(t *testing.T, steps ...health.Remediation) *site {
	s := &site{t: t, start: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), objects: map[int]time.Time{}}
	s.in = api.RemediationInput{Check: "workers", CheckRunID: checkRun, Node: "b", UID: "uid-b", Steps: steps, Why: "Ready is False", Revision: 1}
	s.begin(s.start)
	return s
}

// begin makes the environment of a run.
func (s *site) begin(now time.Time) {
	s.env = workflowtest.Environment(now)
	s.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "node-remediation/workers/b", TaskQueue: api.DefaultTaskQueue})
	s.env.RegisterWorkflowWithOptions(remediation.NodeRemediation, workflow.RegisterOptions{Name: api.NodeRemediationType})
	s.env.RegisterWorkflowWithOptions(func(_ workflow.Context, ref api.Reference) error {
		s.note("record of %s", ref.WorkflowID)
		return nil
	}, workflow.RegisterOptions{Name: api.AuditRecordType})
	s.env.RegisterActivity(call.Health)
	s.env.RegisterActivity(call.Plans)
	s.env.RegisterActivity((*settings.Activities)(nil).Prepare)
	s.env.OnActivity(call.Settings.Prepare, mock.Anything, mock.Anything).Return(settings.Prepared{}, nil)
	s.env.OnActivity(call.Health.EnsureObject, mock.Anything, mock.Anything).After(latency).Return(s.ensure)
	s.env.OnActivity(call.Health.TakeLease, mock.Anything, mock.Anything).After(latency).Return(func(context.Context, activity.LeaseInput) (activity.LeaseState, error) {
		s.note("lease")
		return activity.LeaseState{Held: true}, nil
	})
	s.env.OnActivity(call.Health.MarkObjects, mock.Anything, mock.Anything).After(latency).Return(func(_ context.Context, in activity.MarkInput) (activity.MarkedObjects, error) {
		s.note("mark %d, timed out %v, old %v", len(in.Objects), in.TimedOut != nil, in.Old)
		return activity.MarkedObjects{Gone: make([]bool, len(in.Objects))}, nil
	})
	s.env.OnActivity(call.Health.RemoveObjects, mock.Anything, mock.Anything).After(latency).Return(s.remove)
	s.env.OnActivity(call.Health.WatchRemediation, mock.Anything, mock.Anything).AfterFn(s.untilSeen).Return(s.see)
	s.env.OnActivity(call.Health.BeginRepair, mock.Anything, mock.Anything).After(latency).Return(func(_ context.Context, in activity.RepairInput) (activity.BegunRepair, error) {
		if s.refusal() != nil {
			s.note("refuse maintenance")
			return activity.BegunRepair{NeedsSlot: true}, nil
		}
		s.note("maintain")
		return activity.BegunRepair{RunID: checkRun, StartedAt: s.env.Now()}, nil
	})
	s.env.OnActivity(call.Health.EndRepair, mock.Anything, mock.Anything).After(latency).Return(func(_ context.Context, in activity.EndRepairInput) error {
		s.note("end maintenance, healthy %v", in.Healthy)
		return nil
	})
	s.env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(s.hear)
}

func (s *site) now() time.Duration { return s.env.Now().Sub(s.start) }

// at changes the world at a time.
func (s *site) at(when time.Duration, change func()) {
	s.env.RegisterDelayedCallback(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		change()
	}, when)
}

func (s *site) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf("%s ", s.now().Truncate(time.Second))+fmt.Sprintf(format, args...))
}

func (s *site) ensure(_ context.Context, in activity.ObjectInput) (activity.EnsuredObject, error) {
	if next := s.refusal(); next != nil {
		s.note("refuse step %d", in.Step+1)
		return *next, nil
	}
	if s.unmade != nil {
		return activity.EnsuredObject{}, s.unmade
	}
	s.mu.Lock()
	_, there := s.objects[in.Step]
	if !there {
		s.objects[in.Step] = s.env.Now()
	}
	since := s.objects[in.Step]
	s.mu.Unlock()
	if !there {
		s.note("make step %d", in.Step+1)
	}
	return activity.EnsuredObject{
		Resource:  &health.Resource{APIVersion: "r/v1", Kind: "Reboot", Namespace: "n", Name: fmt.Sprintf("b-%d", in.Step)},
		StartedAt: since, Found: there, Lease: activity.LeaseState{Held: true},
	}, nil
}

func (s *site) refusal() *activity.EnsuredObject {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ensures) == 0 {
		return nil
	}
	next := s.ensures[0]
	s.ensures = s.ensures[1:]
	return &next
}

func (s *site) remove(_ context.Context, in activity.RemoveInput) (activity.Removed, error) {
	s.note("remove %d", len(in.Objects))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.denied != nil {
		return activity.Removed{}, s.denied
	}
	s.removes = append(s.removes, in)
	if s.keeps > 0 {
		s.keeps--
		return activity.Removed{Gone: make([]bool, len(in.Objects))}, nil
	}
	clear(s.objects)
	gone := make([]bool, len(in.Objects))
	for i := range gone {
		gone[i] = true
	}
	return activity.Removed{Gone: gone, Done: true}, nil
}

func (s *site) untilSeen() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sees) == 0 {
		return 10000 * time.Hour
	}
	after, _ := s.sees[0]()
	return after
}

func (s *site) see(_ context.Context, in activity.RemediationWatch) (activity.RemediationSeen, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sees) == 0 { // an earlier run's, which was stopped
		return activity.RemediationSeen{}, nil
	}
	_, seen := s.sees[0]()
	s.sees = s.sees[1:]
	return seen, nil
}

// seen has the next watch see something after a while.
func (s *site) seen(after time.Duration, seen activity.RemediationSeen) {
	s.sees = append(s.sees, func() (time.Duration, activity.RemediationSeen) { return after, seen })
}

func (s *site) hear(_, id, _, name string, arg any) error {
	if id == api.SchedulerID("") {
		return s.hearScheduler(name, arg)
	}
	p, ok := arg.(health.Progress)
	if !ok || id != "health-check/workers" || name != api.SignalRemediationProgress {
		s.t.Errorf("signal %s to %s", name, id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return &temporal.UnknownExternalWorkflowExecutionError{}
	}
	s.said = append(s.said, p)
	return nil
}

// hearScheduler is what the scheduler receives.
func (s *site) hearScheduler(name string, arg any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asleep {
		return &temporal.UnknownExternalWorkflowExecutionError{}
	}
	s.log = append(s.log, fmt.Sprintf("%s %s", s.now().Truncate(time.Second), name))
	if request, ok := arg.(api.SlotRequest); ok {
		real := request // the test's runs have no UUIDs
		real.RunID, real.ID = checkRun, checkRun+strings.TrimPrefix(request.ID, request.RunID)
		if err := real.Validate("", s.env.Now()); err != nil || request.WorkflowID("") != "node-remediation/workers/b" {
			s.t.Errorf("request of %s: %v", request.WorkflowID(""), err)
		}
		if s.grants != nil {
			s.env.RegisterDelayedCallback(func() { s.env.SignalWorkflow(api.SignalSlotGranted, api.SlotAnswer{RequestID: request.ID}) }, *s.grants)
		}
	}
	return nil
}

// order gives an order at a time.
func (s *site) order(when time.Duration, o health.Order) {
	s.env.RegisterDelayedCallback(func() {
		s.env.SignalWorkflow(api.SignalRemediationOrder, api.RemediationOrder{Check: "workers", CheckRunID: checkRun, Report: true, Order: o})
	}, when)
}

func (s *site) run() health.Progress {
	s.t.Helper()
	s.env.ExecuteWorkflow(api.NodeRemediationType, s.in, []byte(nil))
	if err := s.env.GetWorkflowError(); err != nil {
		s.t.Fatal(err)
	}
	var p health.Progress
	if err := s.env.GetWorkflowResult(&p); err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *site) want(want ...string) {
	s.t.Helper()
	if !slices.Equal(s.log, want) {
		s.t.Errorf("log %q, want %q", s.log, want)
	}
}

func TestARemediationMakesItsObjectAndRemovesIt(t *testing.T) {
	s := newSite(t, template("soft"))
	s.keeps = 1
	s.order(10*time.Minute, health.Order{Node: "b", Revision: 2, Healthy: true})
	s.seen(10000*time.Hour, activity.RemediationSeen{})
	s.at(9*time.Minute, func() {
		s.sees = nil
		s.seen(30*time.Second, activity.RemediationSeen{Objects: []activity.ObjectSeen{{Index: 0, Gone: true}}})
	})
	p := s.run()
	s.want("0s make step 1", "10m0s remove 1", "10m30s remove 0")
	if !p.Ended || p.Failure != "" || !p.Recovered || len(s.said) == 0 || !s.said[len(s.said)-1].Ended {
		t.Errorf("%+v", p)
	}
}

// What the worker may not do is shown, and reported to the check, with the command that grants it, until it can be done.
func TestWhatARemediationMayNotDoIsShown(t *testing.T) {
	const why = "deleting Reboot n/b-0: forbidden (grant it with a ClusterRole)"
	s := newSite(t, template("soft"))
	s.denied = temporal.NewNonRetryableApplicationError(why, api.ErrorMissingPermission, nil)
	s.order(time.Minute, health.Order{Node: "b", Revision: 2, Healthy: true})
	s.at(70*time.Second, func() {
		defer func() { s.denied = nil }()
		value, err := s.env.QueryWorkflow(api.QueryStatus)
		var status api.RemediationStatus
		if err == nil {
			err = value.Get(&status)
		}
		if err != nil || len(status.Troubles) != 1 || status.Troubles[0].Why != why || status.Troubles[0].NextTry.IsZero() {
			t.Errorf("%v, %+v", err, status.Troubles)
			return
		}
		if said := s.said[len(s.said)-1]; said.Trouble != status.Troubles[0].String() {
			t.Errorf("the check is sent %q", said.Trouble)
		}
	})
	p := s.run()
	if !p.Ended || !p.Recovered || p.Trouble != "" || len(s.removes) != 1 || s.said[len(s.said)-1].Trouble != "" {
		t.Errorf("%+v, removes %v", p, s.removes)
	}
}

// What kept it from beginning it ends with, so that its check tells of that.
func TestARemediationThatMayNotBeginReportsWhy(t *testing.T) {
	const why = "creating Reboot n/b-0: forbidden (grant it with a ClusterRole)"
	s := newSite(t, template("soft"))
	s.unmade = temporal.NewNonRetryableApplicationError(why, api.ErrorMissingPermission, nil)
	p := s.run()
	if last := s.said[len(s.said)-1]; !p.Ended || p.Failure != why || !strings.HasSuffix(last.Trouble, why) || !last.Ended {
		t.Errorf("%+v, sent %+v", p, last)
	}
}

func TestARecordIsKeptOfWhatHasBegun(t *testing.T) {
	s := newSite(t, template("soft"))
	s.in.Audited = true
	s.order(time.Minute, health.Order{Node: "b", Revision: 2, Healthy: true})
	s.run()
	s.want("0s make step 1", "1m0s remove 1", "1m0s record of node-remediation/workers/b")
	s = newSite(t, template("soft"))
	s.in.Audited = true
	s.ensures = []activity.EnsuredObject{{Skipped: "the node is excluded"}}
	s.run()
	s.want("0s refuse step 1", "0s remove 0")
}

func TestARemediationThatMayNotBeginEnds(t *testing.T) {
	for _, answer := range []activity.EnsuredObject{
		{LeaseHeldBy: "node-maintenance"}, {NotOwned: "Reboot n/b"}, {Skipped: "the node is excluded"}, {Failure: "there is no template"}, {NodeGone: true},
		{Unproven: "machine n/a does not name the node"},
	} {
		s := newSite(t, template("soft"))
		s.ensures = []activity.EnsuredObject{answer}
		p := s.run()
		if !p.Ended || p.Failure == "" || p.LeaseHeldBy != answer.LeaseHeldBy || p.NotOwned != answer.NotOwned {
			t.Errorf("%+v: %+v", answer, p)
		}
	}
}

func TestARemediationWaitsForAnEarlierObjectToBeGone(t *testing.T) {
	s := newSite(t, template("soft"))
	s.ensures = []activity.EnsuredObject{{Waiting: "Reboot n/b is being deleted"}, {Waiting: "Reboot n/b is being deleted"}}
	s.order(time.Minute, health.Order{Node: "b", Revision: 2, Healthy: true})
	s.run()
	s.want("0s refuse step 1", "10s refuse step 1", "20s make step 1", "1m0s remove 1")
}

func TestTheNextStepBeginsByOrder(t *testing.T) {
	s := newSite(t, template("soft"), template("hard"))
	failed := false
	s.seen(time.Minute, activity.RemediationSeen{Lease: activity.LeaseState{Held: true}, Objects: []activity.ObjectSeen{{Index: 0, Succeeded: &failed, Message: "no power"}}})
	s.order(2*time.Minute, health.Order{Node: "b", Revision: 2, Step: 1, TimedOut: []int{0}})
	s.order(3*time.Minute, health.Order{Node: "b", Revision: 1, Step: 0, Healthy: true}) // it is late
	s.order(4*time.Minute, health.Order{Node: "b", Revision: 3, Step: 1, TimedOut: []int{0}, Old: true})
	s.order(5*time.Minute, health.Order{Node: "b", Revision: 4, Step: 1, TimedOut: []int{0}, Healthy: true})
	s.run()
	s.want("0s make step 1", "2m0s mark 1, timed out true, old false", "2m0s make step 2", "4m0s mark 2, timed out false, old true", "5m0s remove 2")
	reported := func(p health.Progress) bool {
		return len(p.Steps) == 1 && p.Steps[0].Succeeded != nil && !*p.Steps[0].Succeeded && p.Steps[0].Failure == "no power"
	}
	if !slices.ContainsFunc(s.said, reported) {
		t.Errorf("it did not say that the step has failed: %+v", s.said)
	}
}

func TestAStepWhoseMachineIsNotProvenIsPassedOver(t *testing.T) {
	s := newSite(t, template("machine"), template("hard"))
	s.ensures = []activity.EnsuredObject{{Unproven: "machine n/a does not name the node"}}
	s.order(time.Minute, health.Order{Node: "b", Revision: 2, Step: 1, TimedOut: []int{0}})
	s.order(2*time.Minute, health.Order{Node: "b", Revision: 3, Step: 1, TimedOut: []int{0}, Healthy: true})
	s.run()
	s.want("0s refuse step 1", "1m0s make step 2", "2m0s remove 1")
	failed := func(p health.Progress) bool {
		return !p.Ended && len(p.Steps) == 1 && p.Steps[0].Succeeded != nil && !*p.Steps[0].Succeeded && strings.Contains(p.Steps[0].Failure, "machine n/a")
	}
	if !slices.ContainsFunc(s.said, failed) {
		t.Errorf("it did not say that the step has failed: %+v", s.said)
	}
}

func TestForgedOrdersChangeNothing(t *testing.T) {
	s := newSite(t, template("soft"))
	s.env.RegisterDelayedCallback(func() {
		for _, o := range []api.RemediationOrder{
			{Check: "others", CheckRunID: checkRun, Order: health.Order{Revision: 5, Healthy: true}},
			{Check: "workers", CheckRunID: "no run", Order: health.Order{Revision: 5, Healthy: true}},
			{Check: "workers", CheckRunID: checkRun, RunID: checkRun, Order: health.Order{Revision: 5, Healthy: true}},
			{Check: "workers", CheckRunID: checkRun, Order: health.Order{Revision: 1 << 50}},
			{Check: "workers", CheckRunID: checkRun, Order: health.Order{Revision: 1 << 39}},
			{Check: "workers", CheckRunID: checkRun, Order: health.Order{Revision: 5, Step: -1}},
			{Check: "workers", CheckRunID: checkRun, Order: health.Order{Revision: 5, TimedOut: []int{-1}}},
			{Check: "workers", CheckRunID: checkRun, Order: health.Order{Revision: 5, Node: "c", Healthy: true}},
		} {
			s.env.SignalWorkflow(api.SignalRemediationOrder, o)
		}
		s.env.SignalWorkflow(api.SignalRemediationOrder, map[string]any{"healthy": true, "unknown": 1})
	}, time.Minute)
	s.order(5*time.Minute, health.Order{Node: "b", Revision: 6, Healthy: true})
	s.run()
	s.want("0s make step 1", "5m0s remove 1")
}

func TestARemediationWhoseCheckIsGoneEndsOnceTheNodeIsHealthy(t *testing.T) {
	s := newSite(t, template("soft"))
	s.in.Conditions = []health.UnhealthyCondition{{Type: "Ready", Status: "False"}}
	s.at(time.Minute, func() { s.gone = true })
	see := func(in activity.RemediationSeen) func() (time.Duration, activity.RemediationSeen) {
		return func() (time.Duration, activity.RemediationSeen) { return 5 * time.Minute, in }
	}
	held := activity.LeaseState{Held: true}
	for range 12 {
		s.sees = append(s.sees, see(activity.RemediationSeen{Lease: held, Ill: true, Objects: []activity.ObjectSeen{{}}}))
	}
	s.sees = append(s.sees, see(activity.RemediationSeen{Lease: held, Objects: []activity.ObjectSeen{{}}}))
	p := s.run()
	if len(s.log) != 2 || s.now() < 40*time.Minute || !p.Ended || !p.Recovered {
		t.Errorf("%s: %q, %+v", s.now(), s.log, p)
	}
}

func TestARemediationTakesUpWhatAnotherHasLeft(t *testing.T) {
	s := newSite(t, template("soft"))
	s.in.Resume, s.in.Revision = true, 0
	s.in.Left = []health.StepState{{Index: 0, StartedAt: s.start.Add(-time.Hour), Resource: &health.Resource{Kind: "Reboot", Name: "b-0"}}}
	s.order(time.Minute, health.Order{Node: "b", Revision: 7, Healthy: true})
	s.run()
	s.want("1m0s remove 1")
}

// somebody terminates a remediation while it makes an object: what it has made is taken up by the step that the check orders, or removed
// where the check says that the node is healthy.
func TestARemediationTakesUpUnreportedObjects(t *testing.T) {
	resumed := func(t *testing.T) *site {
		s := newSite(t, template("soft"), template("hard"))
		s.in.Resume, s.in.Revision = true, 0
		return s
	}
	removesTemplates := func(s *site) {
		if in := s.removes[0]; in.KeepLease || len(in.Templates) != 2 || in.Templates[0].Name != "soft" {
			s.t.Errorf("%+v", in)
		}
	}
	t.Run("the check orders the step", func(t *testing.T) {
		s := resumed(t)
		s.order(time.Second, health.Order{Node: "b", Revision: 1})
		s.order(2*time.Minute, health.Order{Node: "b", Revision: 2, Healthy: true})
		p := s.run()
		s.want("1s make step 1", "2m0s remove 1")
		if removesTemplates(s); !p.Recovered || p.Failure != "" {
			t.Errorf("%+v", p)
		}
	})
	t.Run("the node is healthy", func(t *testing.T) {
		s := resumed(t)
		s.order(time.Second, health.Order{Node: "b", Revision: 3, Healthy: true})
		p := s.run()
		s.want("1s remove 0")
		if removesTemplates(s); !p.Recovered {
			t.Errorf("%+v", p)
		}
	})
	t.Run("the check knows nothing, and there is an object", func(t *testing.T) {
		s := resumed(t)
		s.finds(activity.FoundObject{Template: 1, Resource: health.Resource{Kind: "Reboot", Name: "b-1"}, StartedAt: s.start})
		s.order(5*time.Minute, health.Order{Node: "b", Revision: 1, Step: 1, Healthy: true})
		p := s.run()
		s.want("1m0s find", "5m0s remove 1")
		if !p.Recovered || len(p.Steps) != 1 || p.Steps[0].Index != 1 || p.Step != 1 {
			t.Errorf("%+v", p)
		}
	})
	t.Run("the check knows nothing, and there is none", func(t *testing.T) {
		s := resumed(t)
		s.keeps = 2
		s.finds()
		p := s.run()
		if s.log[0] != "1m0s find" || !p.Ended || p.Recovered || p.Failure == "" || len(s.removes) != 3 {
			t.Errorf("%s: %+v, %q", s.now(), p, s.log)
		}
		removesTemplates(s)
	})
}

// finds has the next look for an earlier workflow's objects find some.
func (s *site) finds(objects ...activity.FoundObject) {
	s.env.OnActivity(call.Health.FindObjects, mock.Anything, mock.Anything).After(latency).Return(
		func(context.Context, activity.FindInput) (activity.FoundObjects, error) {
			s.note("find")
			return activity.FoundObjects{Objects: objects}, nil
		})
}

func (s *site) ends(after time.Duration) {
	s.env.OnActivity(call.Plans.AwaitEnds, mock.Anything, mock.Anything).AfterFn(func() time.Duration { return after }).Return(
		func(_ context.Context, awaited api.List[planactivity.Execution]) ([]planactivity.Ended, error) {
			return []planactivity.Ended{{Execution: awaited[0], Phase: api.Completed}}, nil
		})
}

func TestARemediationTakesUpTheMaintenanceThatAnotherHasBegun(t *testing.T) {
	left := []health.StepState{{Index: 1, WorkflowID: "node-maintenance/b/health-workers", StartedAt: time.Date(2026, 7, 1, 11, 0, 0, 0, time.UTC)}}
	for name, c := range map[string]struct {
		left      []health.StepState
		running   bool
		recovered bool
		want      []string
	}{
		"it was reported":         {left, true, true, []string{"30s end maintenance, healthy true", "6m0s remove 0"}},
		"it was not reported":     {nil, true, true, []string{"30s end maintenance, healthy true", "6m0s remove 0"}},
		"it has ended since":      {left, false, false, []string{"0s remove 0"}},
		"there never was any yet": {nil, false, true, []string{"30s remove 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, template("soft"), health.Remediation{Maintenance: &health.Repair{}})
			s.in.Resume, s.in.Revision, s.in.Left, s.in.Step = true, 0, c.left, 1
			s.env.OnActivity(call.Health.FindRepair, mock.Anything, mock.Anything).Return(func(context.Context, activity.RepairInput) (activity.BegunRepair, error) {
				if !c.running {
					return activity.BegunRepair{}, nil
				}
				return activity.BegunRepair{RunID: checkRun, StartedAt: s.start, Adopted: true}, nil
			})
			s.ends(6 * time.Minute)
			s.order(30*time.Second, health.Order{Node: "b", Revision: 7, Step: 1, Healthy: true})
			p := s.run()
			s.want(c.want...)
			if !p.Ended || c.recovered != p.Recovered {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestALeaseThatWasTakenInVainIsGivenBack(t *testing.T) {
	for _, answer := range []activity.EnsuredObject{
		{Failure: "the API server refuses it", Lease: activity.LeaseState{Held: true}}, {Failure: "it is not known what became of it"},
		{Waiting: "somebody has just created it", Lease: activity.LeaseState{Held: true}},
	} {
		s := newSite(t, template("soft"))
		s.ensures = []activity.EnsuredObject{answer}
		s.order(5*time.Second, health.Order{Node: "b", Revision: 2, Healthy: true})
		s.run()
		if len(s.removes) != 1 || s.removes[0].KeepLease {
			t.Errorf("%+v: %+v", answer, s.removes)
		}
	}
}

func TestTheNextStepIsNotForAnotherNodeOfTheName(t *testing.T) {
	s := newSite(t, template("soft"), template("hard"))
	s.order(time.Minute, health.Order{Node: "b", Revision: 2, Step: 1, TimedOut: []int{0}})
	s.at(30*time.Second, func() { s.ensures = []activity.EnsuredObject{{NodeGone: true, NodeUID: "uid-2"}} })
	p := s.run()
	s.want("0s make step 1", "1m0s mark 1, timed out true, old false", "1m0s refuse step 2", "1m0s remove 1")
	if !p.Ended || p.Recovered || p.Failure == "" {
		t.Errorf("%+v", p)
	}
}

func TestACheckWithMoreStepsIsUnderstood(t *testing.T) {
	s := newSite(t, template("soft"))
	s.order(time.Minute, health.Order{Node: "b", Revision: 2, Step: 2, TimedOut: []int{0, 1}})
	s.order(2*time.Minute, health.Order{Node: "b", Revision: 3, Step: 2, TimedOut: []int{0, 1}, Healthy: true})
	s.run()
	s.want("0s make step 1", "1m0s mark 1, timed out true, old false", "2m0s remove 1")
}

func TestNothingBeginsOnceTheCheckIsGone(t *testing.T) {
	s := newSite(t, template("soft"))
	s.gone = true
	for range 400 {
		s.ensures = append(s.ensures, activity.EnsuredObject{Waiting: "etcd's budget allows no disruption"})
	}
	if p := s.run(); !p.Ended || p.Failure == "" || s.now() > time.Hour {
		t.Errorf("%s: %+v", s.now(), p)
	}
}

func TestAMaintenanceRemediatesTheNode(t *testing.T) {
	s := newSite(t, health.Remediation{Maintenance: &health.Repair{}})
	over := false
	s.env.OnActivity(call.Plans.AwaitEnds, mock.Anything, mock.Anything).AfterFn(func() time.Duration { return 6 * time.Minute }).Return(
		func(_ context.Context, awaited api.List[planactivity.Execution]) ([]planactivity.Ended, error) {
			over = true
			return []planactivity.Ended{{Execution: awaited[0], Phase: api.Completed}}, nil
		})
	s.order(5*time.Minute, health.Order{Node: "b", Revision: 2, Healthy: true})
	p := s.run()
	s.want("0s lease", "0s maintain", "5m0s end maintenance, healthy true", "6m0s remove 0")
	if !over || !p.Ended || len(p.Steps) != 1 || p.Steps[0].WorkflowID != "node-maintenance/b/health-workers" || p.Steps[0].Succeeded == nil {
		t.Errorf("%+v", p)
	}
}

func TestAWrongInputIsRefused(t *testing.T) {
	for name, change := range map[string]func(*api.RemediationInput){
		"node": func(in *api.RemediationInput) { in.Node = "c" }, "steps": func(in *api.RemediationInput) { in.Steps = nil },
		"step": func(in *api.RemediationInput) { in.Step = 3 }, "checkRunId": func(in *api.RemediationInput) { in.CheckRunID = "x" },
		"steps[0]": func(in *api.RemediationInput) { in.Steps = []health.Remediation{{}} },
	} {
		s := newSite(t, template("soft"))
		change(&s.in)
		s.env.ExecuteWorkflow(api.NodeRemediationType, s.in, []byte(nil))
		if err := s.env.GetWorkflowError(); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}

func TestWhatRemediatesAHealthyNodeIsRemovedAtOnceAfterAFailedStep(t *testing.T) {
	s := newSite(t, template("soft"), template("hard"))
	s.order(time.Minute, health.Order{Node: "b", Revision: 2, Step: 1, TimedOut: []int{0}})
	s.at(30*time.Second, func() {
		for range 10 {
			s.ensures = append(s.ensures, activity.EnsuredObject{Failure: "there is no template"})
		}
	})
	s.order(5*time.Minute, health.Order{Node: "b", Revision: 3, Step: 1, TimedOut: []int{0}, Healthy: true})
	s.run()
	s.want("0s make step 1", "1m0s mark 1, timed out true, old false", "1m0s refuse step 2", "1m10s refuse step 2", "1m30s refuse step 2",
		"2m10s refuse step 2", "3m30s refuse step 2", "5m0s remove 1")
}

func TestACancelledRemediationIsTakenBack(t *testing.T) {
	s := newSite(t, template("soft"))
	s.env.RegisterDelayedCallback(s.env.CancelWorkflow, time.Minute)
	p := s.run()
	s.want("0s make step 1", "1m0s remove 1")
	if !p.Ended || p.Failure != "it was cancelled" {
		t.Errorf("%+v", p)
	}
}

func TestACarriedStateThatCannotBeReadFailsTheTask(t *testing.T) {
	s := newSite(t, template("soft"))
	s.env.SetContinuedExecutionRunID(checkRun)
	s.env.ExecuteWorkflow(api.NodeRemediationType, s.in, []byte("no state"))
	var panicked *temporal.PanicError
	if err := s.env.GetWorkflowError(); !errors.As(err, &panicked) {
		t.Errorf("%v", err)
	}
	s.want()
}

func TestARunGoesOnWithWhatTheRunBeforeHasMade(t *testing.T) {
	s := newSite(t, template("soft"))
	s.env.SetContinueAsNewSuggested(true)
	s.order(0, health.Order{Node: "b", Revision: 2})
	s.env.ExecuteWorkflow(api.NodeRemediationType, s.in, []byte(nil))
	var next *workflow.ContinueAsNewError
	if err := s.env.GetWorkflowError(); !errors.As(err, &next) {
		t.Fatal(err)
	}
	s.want() // a run that gives way begins nothing
	var input converter.RawValue
	var packed []byte
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &input, &packed); err != nil {
		t.Fatal(err)
	}
	s = newSite(t, template("soft"))
	s.env.SetContinuedExecutionRunID(checkRun)
	s.order(time.Minute, health.Order{Node: "b", Revision: 2, Healthy: true}) // it was taken already
	s.order(2*time.Minute, health.Order{Node: "b", Revision: 3, Healthy: true})
	s.env.ExecuteWorkflow(api.NodeRemediationType, s.in, packed)
	if err := s.env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	s.want("0s make step 1", "2m0s remove 1")
}
