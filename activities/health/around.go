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

const (
	// How often is looked at what is not a node: what stops all remediations, what they are made of, what waits, and what runs.
	signsEvery     = 5 * time.Second
	templatesEvery = 15 * time.Second
	permitsEvery   = 15 * time.Second
	runsEvery      = 20 * time.Second
	machinesEvery  = time.Minute
	// lookWithin bounds one look: what does not answer in time is as it was.
	lookWithin = 20 * time.Second
	// tick is how often is looked at whether something is due.
	tick = time.Second
)

// surroundings are what a watch knows beside the nodes. They are values: whoever has one may keep it.
type surroundings struct {
	upgrading string
	machines  machineChecks
	templates map[rules.TemplateRef]templateState
	permits   map[permitKey]permitState
	// ended are the workflow IDs that were not running twice in a row.
	ended map[string]bool
	// denied are the looks that the worker's account lacks a permission for, with why.
	denied map[string]string
}

// maxDenied bounds what is told of looks that are denied, in bytes.
const maxDenied = 500

// deniedText says in words what may not be looked at; empty is nothing.
func (s surroundings) deniedText() string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(s.denied)) {
		all = append(all, s.denied[what])
	}
	return bounds.Cut(strings.Join(all, "; "), maxDenied)
}

// watches are those that run on this worker, by workflow. A new one ends the one before, which the server tells of its cancellation
// only with a heartbeat, and goes on with what that knew: a watch is begun anew with all that it tells.
type watches struct {
	mu      sync.Mutex
	running map[string]*around
}

var errSuperseded = errors.New("another watch has begun")

// begin takes over from the watch before.
func (w *watches) begin(ctx context.Context, workflow string) (context.Context, *around, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running == nil {
		w.running = map[string]*around{}
	}
	mine := &around{cancel: cancel, changed: make(chan struct{}, 1), looked: map[string]time.Time{}, missing: map[string]int{}}
	if before := w.running[workflow]; before != nil {
		before.cancel(errSuperseded)
		before.looking.Lock() // its last look is over
		mine.now, mine.looked, mine.missing = before.latest(), before.looked, before.missing
		before.looking.Unlock()
	}
	w.running[workflow] = mine
	return ctx, mine, func() { cancel(nil) }
}

// around looks at what is around the nodes, for one watch.
type around struct {
	cancel  context.CancelCauseFunc
	changed chan struct{}

	// looking guards what only a look uses.
	looking sync.Mutex
	// looked is when what was looked at last; missing counts the looks in a row at which a workflow did not run.
	looked  map[string]time.Time
	missing map[string]int

	mu  sync.Mutex
	now surroundings
}

// latest is what is known.
func (r *around) latest() surroundings {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// set makes something known.
func (r *around) set(change func(*surroundings)) {
	r.mu.Lock()
	change(&r.now)
	r.mu.Unlock()
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// deny notes the permission that is missing to look at something; an empty reason says that none is.
func (r *around) deny(what, why string) {
	if r.latest().denied[what] == why {
		return
	}
	r.set(func(s *surroundings) {
		denied := maps.Clone(s.denied)
		if denied == nil {
			denied = map[string]string{}
		}
		if denied[what] = why; why == "" {
			delete(denied, what)
		}
		s.denied = denied
	})
}

// isDue tells whether it is time to look at something again, and notes that it is done.
func (r *around) isDue(what string, every time.Duration) bool {
	if at, before := r.looked[what]; before && time.Since(at) < every {
		return false
	}
	r.looked[what] = time.Now()
	return true
}

// keepLooking looks for as long as ctx lives.
func (l lookout) keepLooking(ctx context.Context, r *around, in WatchInput) {
	for {
		select {
		case <-time.After(tick):
			l.lookAround(ctx, r, in)
		case <-ctx.Done():
			return
		}
	}
}

// lookAround looks at what is due. What cannot be told is as it was: a health check neither stops nor begins for want of an answer.
func (l lookout) lookAround(ctx context.Context, r *around, in WatchInput) {
	r.looking.Lock()
	defer r.looking.Unlock()
	if ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	warn := func(what string, err error) {
		if ctx.Err() != nil {
			return
		}
		denied := ""
		if err = failure.Translate(ctx, l.Objects.Kube(), err); err != nil {
			activity.GetLogger(ctx).Warn("not known: "+what, "error", err)
		}
		var missing *temporal.ApplicationError
		if errors.As(err, &missing) && missing.Type() == api.ErrorMissingPermission {
			denied = missing.Message()
		}
		r.deny(what, denied)
	}
	if r.isDue("signs", signsEvery) {
		upgrading, err := l.clusterUpgrade(ctx)
		if warn("whether the cluster is being upgraded", err); err == nil && upgrading != r.latest().upgrading {
			r.set(func(s *surroundings) { s.upgrading = upgrading })
		}
		if !l.Settings.IgnoreMachineHealthChecks {
			machines, err := l.machineChecks(ctx, r.latest().machines, r.isDue("machines", machinesEvery))
			if warn("which nodes MachineHealthChecks take care of", err); err == nil && machines.digest != r.latest().machines.digest {
				r.set(func(s *surroundings) { s.machines = machines })
			}
		}
	}
	l.lookAtTemplates(ctx, r, in)
	l.lookAtPermits(ctx, r, in)
	if r.isDue("runs", runsEvery) {
		warn("which health checks and remediations run", l.lookAtRuns(ctx, r, in))
	}
}

// lookAtTemplates looks for the templates of all checks.
func (l lookout) lookAtTemplates(ctx context.Context, r *around, in WatchInput) {
	known := r.latest().templates
	templates := map[rules.TemplateRef]templateState{}
	changed := false
	for _, check := range in.Checks {
		for _, ref := range check.Intent.Templates {
			state, before := known[ref]
			if _, done := templates[ref]; done {
				continue
			}
			if !before || time.Since(state.at) >= templatesEvery {
				_, now, err := l.readTemplate(ctx, ref)
				if err != nil {
					activity.GetLogger(ctx).Warn("a remediation template cannot be read", "template", ref.Name, "error", err)
					now = state.problem
				}
				changed = changed || now != state.problem
				state = templateState{problem: now, at: time.Now()}
			}
			templates[ref] = state
		}
	}
	if changed {
		r.set(func(s *surroundings) { s.templates = templates })
		return
	}
	r.mu.Lock()
	r.now.templates = templates
	r.mu.Unlock()
}

// lookAtPermits asks about the control-plane nodes that wait.
func (l lookout) lookAtPermits(ctx context.Context, r *around, in WatchInput) {
	known := r.latest().permits
	permits := map[permitKey]permitState{}
	changed := false
	for _, asked := range in.Permits {
		key := permitKey{asked.Check, asked.Node}
		state, before := known[key]
		if !before || time.Since(state.at) >= permitsEvery {
			answer, err := l.mayLose(ctx, asked.Node, asked.Etcd)
			if err != nil {
				answer = Permitted{Why: "whether etcd can lose the node is not known: " + err.Error()}
			}
			changed = changed || !before || answer != state.Permitted
			state = permitState{Permitted: answer, at: time.Now()}
		}
		permits[key] = state
	}
	set := func(s *surroundings) { s.permits = maps.Clone(permits) }
	if changed {
		r.set(set)
		return
	}
	r.mu.Lock()
	set(&r.now)
	r.mu.Unlock()
}
