package health

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	rules "drydock.dev/drydock/rules/health"
)

// LookEvery is how often a watch tries again to look at what it could not look at.
const LookEvery = 5 * time.Second

const (
	// How often each of the things around nodes is checked.
	signsEvery     = LookEvery
	templatesEvery = 15 * time.Second
	runsEvery      = 20 * time.Second
	peersEvery     = 20 * time.Second
	machinesEvery  = time.Minute
	// lookWithin bounds a look: what does not answer in time is as it was.
	lookWithin = 10 * time.Second
	// knownFor is for how long an answer counts: what a worker knew before it had no watch for a while is out of date.
	knownFor = time.Minute
	// tick is the interval between checks for what is due.
	tick = time.Second
	// forgetAfter is when nothing is remembered any more that nobody asks for.
	forgetAfter = 10 * time.Minute
)

// surroundings are what checks depend on beside their nodes. The checks of a worker share them: whichever finds that something is due looks
// for all.
type surroundings struct {
	// looking is held during a look.
	looking sync.Mutex

	mu sync.Mutex
	// looked is when each thing was looked at last, lookedAround when the latest look at what all checks share was over.
	looked       map[string]time.Time
	lookedAround time.Time
	now          snapshot
}

// snapshot is what is known of what is around the nodes. Callers get copies.
type snapshot struct {
	// version counts the changes.
	version   int
	upgrading string
	machines  machineChecks
	templates map[rules.TemplateRef]templateState
	// answered is when each of the looks succeeded last.
	answered map[string]time.Time
	// denied are the looks that the worker's account lacks a permission for, with why.
	denied map[string]string
	// peers are all checks of the cluster, the oldest first; peersVersion is since which version.
	peers        []peer
	peersVersion int
}

// The looks, by what they find out.
const (
	upgradeLook  = "whether the cluster is being upgraded"
	machinesLook = "which nodes MachineHealthChecks take care of"
	peersLook    = "which other health checks run"
)

// knows reports whether the answer of a look counts.
func (s snapshot) knows(look string, now time.Time) bool { return now.Sub(s.answered[look]) < knownFor }

// maxDenied bounds what is reported of looks that are denied, in bytes.
const maxDenied = 500

// deniedText says in words what may not be looked at; empty is nothing.
func (s snapshot) deniedText() string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(s.denied)) {
		all = append(all, s.denied[what])
	}
	return bounds.Cut(strings.Join(all, "; "), maxDenied)
}

// latest is what is known.
func (s *surroundings) latest() snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// set makes something known that has changed.
func (s *surroundings) set(change func(*snapshot)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.version++
	change(&s.now)
}

// deny notes the permission that is missing to look at something; an empty reason says that none is.
func (s *surroundings) deny(what, why string) {
	if s.latest().denied[what] == why {
		return
	}
	s.set(func(now *snapshot) {
		denied := maps.Clone(now.denied)
		if denied == nil {
			denied = map[string]string{}
		}
		if denied[what] = why; why == "" {
			delete(denied, what)
		}
		now.denied = denied
	})
}

// answer notes that a look has succeeded.
func (s *surroundings) answer(look string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.now.knows(look, now) {
		s.now.version++
	}
	answered := maps.Clone(s.now.answered)
	if answered == nil {
		answered = map[string]time.Time{}
	}
	answered[look] = now
	s.now.answered = answered
}

// isDue reports whether it is time to look at something again, and notes that this is done.
func (s *surroundings) isDue(what string, every time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, before := s.looked[what]; before && time.Since(at) < every {
		return false
	}
	maps.DeleteFunc(s.looked, func(_ string, at time.Time) bool { return time.Since(at) > forgetAfter })
	if s.looked == nil {
		s.looked = map[string]time.Time{}
	}
	s.looked[what] = time.Now()
	return true
}

// undone has something looked at again by the next check.
func (s *surroundings) undone(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.looked, what)
}

// lookFirst looks at what this worker has not looked at lately, so that a watch does not report before.
func (a *Activities) lookFirst(ctx context.Context, in WatchInput) {
	s := &a.surroundings
	if !s.isRecent() {
		a.lookTogether(ctx)
	}
	for _, ref := range in.Intent.Templates {
		if !s.wasLookedAt(lookOf(ref)) {
			a.lookAtTemplate(ctx, ref)
		}
	}
}

// lookTogether waits for the look of another watch, or looks itself where there is none.
func (a *Activities) lookTogether(ctx context.Context) {
	s := &a.surroundings
	s.looking.Lock()
	defer s.looking.Unlock()
	if !s.isRecent() {
		a.lookAround(ctx)
	}
}

// isRecent reports whether a watch of this worker has looked around lately.
func (s *surroundings) isRecent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.lookedAround) < knownFor
}

func (s *surroundings) wasLookedAt(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, was := s.looked[what]
	return was
}

// lookAgain looks at what is due, unless another watch does.
func (a *Activities) lookAgain(ctx context.Context) {
	if s := &a.surroundings; s.looking.TryLock() {
		defer s.looking.Unlock()
		a.lookAround(ctx)
	}
}

// lookAround looks at what is due of what all checks share. What cannot be found out is as it was: a health check neither stops nor begins
// for want of an answer. It is called with looking held.
func (a *Activities) lookAround(ctx context.Context) {
	s := &a.surroundings
	if s.isDue("signs", signsEvery) {
		a.lookFor(ctx, "signs", upgradeLook, a.lookForUpgrade)
		if !a.Settings.IgnoreMachineHealthChecks {
			a.lookFor(ctx, "signs", machinesLook, a.lookForMachineChecks)
		}
	}
	if s.isDue("peers", peersEvery) {
		a.lookFor(ctx, "peers", peersLook, a.lookForPeers)
	}
	if ctx.Err() == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lookedAround = time.Now()
	}
}

func (a *Activities) lookFor(ctx context.Context, what, text string, find func(context.Context) error) {
	within, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	a.looked(ctx, what, text, find(within))
}

// looked takes what came of a look. One whose watch has ended meanwhile is left to another watch.
func (a *Activities) looked(ctx context.Context, what, text string, err error) {
	err = failure.Translate(ctx, a.Objects.Kube(), err)
	if ctx.Err() != nil {
		a.surroundings.undone(what)
		return
	}
	denied := ""
	if err != nil {
		activity.GetLogger(ctx).Warn("not known: "+text, "error", err)
	} else {
		a.surroundings.answer(text)
	}
	var missing *temporal.ApplicationError
	if errors.As(err, &missing) && missing.Type() == api.ErrorMissingPermission {
		denied = missing.Message()
	}
	a.surroundings.deny(text, denied)
}

func (a *Activities) lookForUpgrade(ctx context.Context) error {
	upgrading, err := a.clusterUpgrade(ctx)
	if err == nil && upgrading != a.surroundings.latest().upgrading {
		a.surroundings.set(func(s *snapshot) { s.upgrading = upgrading })
	}
	return err
}

func (a *Activities) lookForMachineChecks(ctx context.Context) error {
	known := a.surroundings.latest().machines
	machines, err := a.machineChecks(ctx, known, a.surroundings.isDue("machines", machinesEvery))
	if err == nil && machines.digest != known.digest {
		a.surroundings.set(func(s *snapshot) { s.machines = machines })
	}
	return err
}

// lookOf names the look at a template.
func lookOf(ref rules.TemplateRef) string { return "template " + ref.APIVersion + " " + refOf(ref) }

// lookAtTemplate looks at a template.
func (a *Activities) lookAtTemplate(ctx context.Context, ref rules.TemplateRef) {
	s, look := &a.surroundings, lookOf(ref)
	if !s.isDue(look, templatesEvery) {
		return
	}
	within, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	_, found, err := a.readTemplate(within, ref)
	switch {
	case ctx.Err() != nil:
		s.undone(look)
	case err != nil:
		activity.GetLogger(ctx).Warn("a remediation template cannot be read", "template", ref.Name, "error", err)
	default:
		s.setTemplate(ref, found)
	}
}

func (s *surroundings) setTemplate(ref rules.TemplateRef, found problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, before := time.Now(), s.now.templates[ref]
	if !before.isKnown(now) || found != before.problem {
		s.now.version++
	}
	templates := maps.Clone(s.now.templates)
	if templates == nil {
		templates = map[rules.TemplateRef]templateState{}
	}
	maps.DeleteFunc(templates, func(_ rules.TemplateRef, t templateState) bool { return now.Sub(t.at) > forgetAfter })
	templates[ref] = templateState{problem: found, at: now}
	s.now.templates = templates
}
