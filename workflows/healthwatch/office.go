package healthwatch

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	activity "drydock/activities/health"
	"drydock/api"
	"drydock/rules/bounds"
	"drydock/workflows/call"
	"drydock/workflows/inbox"
	"drydock/workflows/loop"
)

const (
	// maxChecks bounds the checks of a cluster, maxWaiting the intents whose checks are being looked up; others are repeated.
	maxChecks  = 200
	maxWaiting = 50
	// maxIntent bounds the signal of an intent, in bytes.
	maxIntent = 1 << 20
	// patience is how long checks have, when the watch begins anew, to say what they want before others go on without.
	patience = 30 * time.Second
	// sequencesOfACopy is far more than an earlier run that this one is a copy of can have told since.
	sequencesOfACopy = 1 << 20
	// maxLead is far more than the intents of which one can be the first that arrives: an earlier one would not count any more.
	maxLead = 1 << 24
	// actWithin bounds an activity: none may keep the watch from continuing as new.
	actWithin = time.Minute
)

// office takes intents of checks. One of a run that is not known counts once that was seen to run.
type office struct {
	*core
	waiting  []api.HealthIntent
	checking bool
	taking   bool
	// doubts count how often it was found out in vain which checks run; tries and next are when that is tried again.
	doubts, tries int
	next          time.Time
}

// listen takes every message from the first moment on.
func (w *healthwatch) listen() error {
	if err := w.answer(); err != nil {
		return err
	}
	in := inbox.New(w.Ctx, w)
	inbox.ReceiveUpTo(in, api.SignalHealthIntent, maxIntent, w.office.heard)
	w.Unread = in.Unread
	in.Open(nil)
	return nil
}

// heard has an intent looked into.
func (o *office) heard(in api.HealthIntent) {
	if err := validate(in, o.Now()); err != nil {
		o.note("ignored an intent", err.Error())
		return
	}
	if k := o.find(in.Name); k != nil && k.Intent.RunID == in.RunID {
		o.settle(in)
		return
	}
	i := slices.IndexFunc(o.waiting, func(w api.HealthIntent) bool { return w.RunID == in.RunID && w.Name == in.Name })
	switch {
	case i >= 0:
		if in.Revision >= o.waiting[i].Revision {
			o.waiting[i] = in
		}
	case len(o.waiting) >= maxWaiting:
		o.note("left an intent of check "+in.Name+" for later", "too many wait to be looked up: it is repeated")
	default:
		o.waiting = append(o.waiting, in)
	}
}

func (o *office) isIdle() bool { return len(o.waiting) == 0 && !o.checking && len(o.state.Silent) == 0 }

// attend looks the checks up whose intents wait.
func (o *office) attend() {
	if o.checking || len(o.waiting) == 0 {
		return
	}
	var names []string
	for _, in := range o.waiting {
		names = append(names, in.Name)
	}
	slices.Sort(names)
	asked := slices.Clone(o.waiting)
	o.checking = true
	o.Does("checks", o.findChecks(fmt.Sprintf("see whether %d checks run", len(names)), slices.Compact(names)), func(f workflow.Future) {
		o.checking = false
		var running api.List[activity.RunningCheck]
		if err := f.Get(o.Ctx, &running); err != nil {
			o.note("checks could not be looked up", call.Cause(err))
			o.waiting = nil // they are repeated
			return
		}
		waiting := o.waiting
		o.waiting = nil
		for _, in := range waiting {
			known := slices.ContainsFunc(asked, func(a api.HealthIntent) bool { return a.Name == in.Name && a.RunID == in.RunID })
			switch {
			case !known:
				o.waiting = append(o.waiting, in)
			case slices.Contains(running, activity.RunningCheck{Name: in.Name, RunID: in.RunID}):
				o.settle(in)
			default:
				o.note("ignored an intent of check "+in.Name, "no check runs as run "+in.RunID)
			}
		}
	})
}

func (o *office) findChecks(summary string, names []string) workflow.Future {
	ctx := call.Within(call.Quick(o.Ctx, summary), actWithin)
	return workflow.ExecuteActivity(ctx, call.Health.FindChecks,
		activity.FindChecksInput{TaskQueue: workflow.GetInfo(o.Ctx).TaskQueueName, Names: names})
}

// settle takes an intent of a check that runs.
func (o *office) settle(in api.HealthIntent) {
	o.spoke(in.Name, in.RunID)
	k := o.find(in.Name)
	same := k != nil && k.Intent.RunID == in.RunID
	switch {
	case same && in.Revision < k.Intent.Revision:
		return // it was said before one that counts
	case same && in.Revision > k.Intent.Revision+maxLead:
		o.note("ignored an intent of check "+in.Name, fmt.Sprintf("revision %d does not follow %d", in.Revision, k.Intent.Revision))
		return
	case in.Gone:
		if same && o.drop(in.Name) {
			o.changed()
		}
		return
	case same && in.Revision == k.Intent.Revision:
		if in.Ask || k.Answered >= in.Revision {
			k.anew() // what it was told is lost
			o.changed()
		}
		return
	case k == nil && len(o.state.Checks) >= maxChecks:
		o.note("left out check "+in.Name, fmt.Sprintf("%d checks are watched for already", maxChecks))
		return
	case !same:
		o.drop(in.Name)
		k = &check{}
		o.state.Checks = append(o.state.Checks, k)
	}
	before := k.Intent
	k.Intent = in
	k.Intent.Ask = false
	o.sort()
	if in.Ask || !same || !looksTheSame(before, in) {
		k.anew()
	}
	o.changed()
}

// looksTheSame tells that what is known of nodes holds for both intents.
func looksTheSame(a, b api.HealthIntent) bool {
	return a.Selector == b.Selector && reflect.DeepEqual(a.Conditions, b.Conditions) && slices.Equal(a.GroupBy, b.GroupBy) &&
		slices.Equal(a.Templates, b.Templates)
}

// spoke notes that a check has said what it wants.
func (o *office) spoke(name, run string) {
	o.state.Silent = slices.DeleteFunc(o.state.Silent, func(s activity.RunningCheck) bool { return s.Name == name && s.RunID == run })
}

// lost takes that a check does not run.
func (o *office) lost(name string) {
	o.state.Silent = slices.DeleteFunc(o.state.Silent, func(s activity.RunningCheck) bool { return s.Name == name })
	k := o.find(name)
	if k == nil || k.Ghost {
		return
	}
	o.note("check "+name+" does not run any more", "it did not say that it ends")
	o.changed()
	if p := o.state.Permit; p.Check == name && p.RunID == k.Intent.RunID && !slices.Contains(k.Intent.HoldPermit, p.Node) {
		// It may have begun the remediation, and not said so any more.
		k.Intent.HoldPermit = append(slices.Clone(k.Intent.HoldPermit), p.Node)
	}
	if len(k.Intent.HoldPermit) == 0 {
		o.drop(name)
		return
	}
	k.Ghost, k.Refused = true, ""
	k.Intent.Remediating, k.Intent.WantPermit = k.Intent.HoldPermit, nil
	k.anew()
}

// doubt has it found out anew which checks run.
func (o *office) doubt() {
	o.state.Known, o.Dirty = false, true
	o.doubts++
	for _, k := range o.state.Checks {
		k.Sequence += sequencesOfACopy
		k.anew()
	}
}

const (
	// askAgain is how long checks have that do not say what they want, before it is looked whether they still run.
	askAgain = 10 * time.Minute
	// findsChecks is what fails where it cannot be found out which checks run.
	findsChecks = "it cannot be found out which health checks run"
	// lookAgain is how often it is looked which checks run: one that says nothing, and of which nothing is known here, would never
	// hear of its nodes again.
	lookAgain = time.Hour
)

// know has it found out which checks run, where that is not known or has not led anywhere.
func (o *office) know() {
	if o.state.Known && len(o.state.Silent) > 0 {
		due := o.state.Until.Add(askAgain)
		if o.Now().Before(due) {
			o.WakeAt(due, "see whether checks that say nothing still run")
			return
		}
		o.state.Known = false
	}
	due := o.state.FoundAt.Add(lookAgain)
	if !o.state.Known || !o.Now().Before(due) {
		o.take()
		return
	}
	o.WakeAt(due, "see which checks run")
}

// take finds out which checks run, and asks them what they want.
func (o *office) take() {
	if o.taking {
		return
	}
	if o.Now().Before(o.next) {
		o.WakeAt(o.next, "find out again which checks run")
		return
	}
	o.taking = true
	doubts := o.doubts
	o.Does("stock", o.findChecks("find the checks that run", nil), func(f workflow.Future) {
		o.taking = false
		var running api.List[activity.RunningCheck]
		if err := f.Get(o.Ctx, &running); err != nil {
			o.next = o.Now().Add(loop.Backoff(o.tries))
			o.fails(findsChecks, err, o.next)
			o.tries++
			return
		}
		o.Works(findsChecks)
		if doubts != o.doubts {
			return // it may be from before a reset
		}
		o.found(running)
	})
}

// found asks the checks that run what they want.
func (o *office) found(running []activity.RunningCheck) {
	o.state.Known, o.state.FoundAt, o.state.Until, o.tries = true, o.Now(), o.Now().Add(patience), 0
	o.state.Silent = nil
	for _, one := range running {
		if k := o.find(one.Name); k != nil && k.Intent.RunID == one.RunID && o.doubts == 0 {
			continue
		}
		if len(o.state.Silent) >= maxChecks {
			o.note("left out check "+one.Name, fmt.Sprintf("%d checks are watched for already", maxChecks))
			continue
		}
		o.state.Silent = append(o.state.Silent, one)
		o.Does("ask check "+one.Name, workflow.SignalExternalWorkflow(o.Ctx, api.HealthCheckID(o.cluster, one.Name), "", api.SignalHealthNews,
			api.HealthNews{RunID: one.RunID, Repeat: true}), func(workflow.Future) {})
	}
	if len(o.state.Silent) > 0 {
		o.WakeAt(o.state.Until, "wait for the word of checks")
	}
}

// pending says in words what has to be known before a control-plane node may be remediated; empty is nothing.
func (c *core) pending() string {
	switch {
	case !c.state.Known:
		return "finding out which checks run"
	case c.Now().Before(c.state.Until) && len(c.state.Silent) > 0:
		return "waiting for word of check " + c.state.Silent[0].Name
	default:
		return ""
	}
}

// validate tells why an intent makes no sense.
func validate(in api.HealthIntent, now time.Time) error {
	if err := in.Validate(now); err != nil {
		return fmt.Errorf("check %s: %w", bounds.Cut(in.Name, 60), err)
	}
	return nil
}

// Refused records a signal that cannot be read.
func (w *healthwatch) Refused(name string, _ api.Message, _ api.Outcome, why error) {
	w.note("ignored a signal "+name, why.Error())
}
