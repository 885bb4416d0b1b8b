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

	"drydock/activities/failure"
	"drydock/api"
	"drydock/rules/bounds"
	rules "drydock/rules/health"
)

// LookEvery is how often a watch tries again to look at what it could not look at.
const LookEvery = 5 * time.Second

const (
	// How often each of the things around nodes is looked at.
	signsEvery     = LookEvery
	templatesEvery = 15 * time.Second
	runsEvery      = 20 * time.Second
	peersEvery     = 20 * time.Second
	machinesEvery  = time.Minute
	// lookWithin bounds a look: what does not answer in time is as it was.
	lookWithin = 20 * time.Second
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
	// looked is when each thing was looked at last.
	looked map[string]time.Time
	now    snapshot
}

// snapshot is what is known of the surroundings. It is a value: whoever has one may keep it.
type snapshot struct {
	// version counts the changes.
	version   int
	upgrading string
	machines  machineChecks
	templates map[rules.TemplateRef]templateState
	// denied are the looks that the worker's account lacks a permission for, with why.
	denied map[string]string
	// peers are all checks of the cluster, the oldest first; peersVersion is since which version.
	peers        []peer
	peersVersion int
}

// maxDenied bounds what is told of looks that are denied, in bytes.
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

// lookAround looks at what is due. What cannot be found out is as it was: a health check neither stops nor begins for want of an answer.
func (l lookout) lookAround(ctx context.Context, in WatchInput) {
	s := &l.surroundings
	s.looking.Lock()
	defer s.looking.Unlock()
	within, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	if s.isDue("signs", signsEvery) {
		l.looked(ctx, "signs", "whether the cluster is being upgraded", l.lookForUpgrade(within))
		if !l.Settings.IgnoreMachineHealthChecks {
			l.looked(ctx, "signs", "which nodes MachineHealthChecks take care of", l.lookForMachineChecks(within))
		}
	}
	if s.isDue("peers", peersEvery) {
		l.looked(ctx, "peers", "which other health checks run", l.lookForPeers(within))
	}
	l.lookAtTemplates(within, in)
}

// looked takes what came of a look. One whose watch has ended meanwhile is left to another watch.
func (l lookout) looked(ctx context.Context, what, text string, err error) {
	err = failure.Translate(ctx, l.Objects.Kube(), err)
	if ctx.Err() != nil {
		l.surroundings.undone(what)
		return
	}
	denied := ""
	if err != nil {
		activity.GetLogger(ctx).Warn("not known: "+text, "error", err)
	}
	var missing *temporal.ApplicationError
	if errors.As(err, &missing) && missing.Type() == api.ErrorMissingPermission {
		denied = missing.Message()
	}
	l.surroundings.deny(text, denied)
}

func (l lookout) lookForUpgrade(ctx context.Context) error {
	upgrading, err := l.clusterUpgrade(ctx)
	if err == nil && upgrading != l.surroundings.latest().upgrading {
		l.surroundings.set(func(s *snapshot) { s.upgrading = upgrading })
	}
	return err
}

func (l lookout) lookForMachineChecks(ctx context.Context) error {
	known := l.surroundings.latest().machines
	machines, err := l.machineChecks(ctx, known, l.surroundings.isDue("machines", machinesEvery))
	if err == nil && machines.digest != known.digest {
		l.surroundings.set(func(s *snapshot) { s.machines = machines })
	}
	return err
}

// lookAtTemplates looks for the templates of a check.
func (l lookout) lookAtTemplates(ctx context.Context, in WatchInput) {
	known := l.surroundings.latest().templates
	read, changed := map[rules.TemplateRef]templateState{}, 0
	for _, ref := range in.Intent.Templates {
		state, before := known[ref]
		if before && time.Since(state.at) < templatesEvery {
			continue
		}
		_, now, err := l.readTemplate(ctx, ref)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			activity.GetLogger(ctx).Warn("a remediation template cannot be read", "template", ref.Name, "error", err)
			now = state.problem
		}
		read[ref] = templateState{problem: now, at: time.Now()}
		if now != state.problem {
			changed = 1
		}
	}
	if len(read) == 0 {
		return
	}
	templates := maps.Clone(known)
	maps.DeleteFunc(templates, func(_ rules.TemplateRef, t templateState) bool { return time.Since(t.at) > forgetAfter })
	if templates == nil {
		templates = map[rules.TemplateRef]templateState{}
	}
	maps.Copy(templates, read)
	s := &l.surroundings
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.templates = templates
	s.now.version += changed
}
