package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/schedule"
)

// inForceAfter is how long events of the time before a change of limits may still come to the judge.
const inForceAfter = 2 * orderedAfter

// controls changes the scheduler's limits and freezes, and knows which limits may be in force.
type controls struct {
	temporal client.Client
	journal  *journal
	watcher  *watcher
	dice     *rand.Rand

	mu sync.Mutex
	// may are the limits that may be in force: one, where that is known. ever are all there were.
	may, ever []limits
	changes   int
	// replaced: the scheduler was terminated or reset, so that older limits may come back.
	replaced bool
	// knownAt is the number of changes at which it became known which limits are in force.
	knownAt int
}

func (c *controls) update(ctx context.Context, name string, payload any, did, detail string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	handle, err := c.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: api.SchedulerID(""), UpdateName: name, Args: []any{payload}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(ctx, nil)
	}
	c.journal.did(Entry{Did: did, Workflow: api.SchedulerID(""), Detail: detail}, err)
	return err
}

// setLimits changes the limits within what a fleet of this size bears.
func (c *controls) setLimits(ctx context.Context) {
	to := limits{parallel: 2 + c.dice.IntN(9), unavailable: 6 + c.dice.IntN(11)}
	c.mu.Lock()
	before := c.may
	c.suppose(append([]limits{to}, before...))
	c.ever = append(c.ever, to)
	c.mu.Unlock()
	err := c.update(ctx, api.UpdateSetLimits, api.SetLimits{By: "operator", Comment: "soak", Limits: schedule.Limits{
		MaxParallel: schedule.Count(to.parallel), MaxUnavailable: schedule.Count(to.unavailable),
		Groups: []schedule.Group{{Name: "zone", GroupBy: []string{"topology.kubernetes.io/zone"}, MaxParallel: schedule.Count(zoneLimit)}},
	}}, "set limits", fmt.Sprintf("maxParallel %d, maxUnavailable %d", to.parallel, to.unavailable))
	if err == nil {
		c.know(to)
	}
}

// setWrongLimits asks for limits that must be refused.
func (c *controls) setWrongLimits(ctx context.Context) {
	wrong := pick(c.dice, []any{
		map[string]any{"by": "operator", "limits": map[string]any{"maxParallel": 0}},
		map[string]any{"by": "operator", "limits": map[string]any{"maxParallel": -3}},
		map[string]any{"by": "operator", "limits": map[string]any{"maxParallel": 200, "maxUnavailable": "unlimited"}},
		map[string]any{"by": "operator", "limits": map[string]any{"maxParallel": 200, "groups": []any{map[string]any{"name": "a"}}}},
		map[string]any{"by": "operator", "limits": map[string]any{"maxParallel": 200}, "ifRevision": 1000000},
		map[string]any{"limits": "all"}, "nonsense",
	})
	if err := c.update(ctx, api.UpdateSetLimits, wrong, "set wrong limits", fmt.Sprint(wrong)); err == nil {
		c.journal.violated(Violation{At: time.Now(), Rule: ruleLimits, What: fmt.Sprintf("wrong limits were accepted: %v", wrong)})
	}
}

// suppose tells the judge which limits may be in force; the caller has the lock.
func (c *controls) suppose(may []limits) {
	c.may = may
	c.changes++
	var parallel, unavailable []int
	for _, l := range may {
		parallel, unavailable = append(parallel, l.parallel), append(unavailable, l.unavailable)
	}
	c.watcher.limits(parallel, unavailable)
}

// know notes that these limits are in force, and none other.
func (c *controls) know(now limits) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes == c.knownAt && now == c.may[0] {
		return // the judge is about to know it
	}
	c.replaced = false
	c.suppose(append([]limits{now}, c.may...))
	c.knownAt = c.changes
	change := c.changes
	// What happened before that is judged a little later.
	time.AfterFunc(inForceAfter, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.changes == change {
			c.suppose([]limits{now})
		}
	})
}

// doubt notes that the scheduler begins anew: what it goes on with is known when it says so.
func (c *controls) doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replaced = true
	c.suppose(append(append([]limits{}, c.may...), c.ever...))
}

// certain reports whether it is known which limits are in force.
func (c *controls) certain() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.may) == 1
}

func (c *controls) state(ctx context.Context) (api.State, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return world.Ask[api.State](ctx, c.temporal, api.SchedulerID(""), api.QueryState, api.StateRequest{Limit: 100})
}

// confirm asks the scheduler for its limits where they are in doubt.
func (c *controls) confirm(ctx context.Context) {
	if c.certain() {
		return
	}
	c.mu.Lock()
	before := c.changes
	c.mu.Unlock()
	state, err := c.state(ctx)
	if err != nil || state.Rebuilding || state.PreviousRun != "" {
		return
	}
	now, ok := limitsOf(state)
	c.mu.Lock()
	changed, known, replaced, latest := c.changes != before, slices.Contains(c.ever, now), c.replaced, c.ever[len(c.ever)-1]
	c.mu.Unlock()
	switch {
	case changed:
	case !ok || !known:
		c.journal.violated(Violation{At: time.Now(), Rule: ruleLimits, What: fmt.Sprintf("limits that nobody set are in force: %+v", state.Limits)})
	default:
		if replaced && now != latest {
			c.journal.did(Entry{Did: "limits came back", Detail: fmt.Sprintf("%+v after the scheduler began anew, the latest asked for are %+v; %s", now, latest, decisions(state))}, nil)
		}
		c.know(now)
	}
}

// limitsOf reads the limits in force; they are numbers, since only such are set.
func limitsOf(state api.State) (l limits, ok bool) {
	_, err := fmt.Sscan(state.Limits.MaxParallel.String(), &l.parallel)
	_, err2 := fmt.Sscan(state.Limits.MaxUnavailable.String(), &l.unavailable)
	return l, errors.Join(err, err2) == nil
}

func decisions(state api.State) string {
	var said []string
	for _, d := range last(state.Decisions, 5) {
		said = append(said, d.What)
	}
	return strings.Join(said, "; ")
}

// freeze stops grants, or running maintenances too.
func (c *controls) freeze(ctx context.Context, running bool) {
	by := pick(c.dice, []string{"alice", "bob"})
	_ = c.update(ctx, api.UpdateFreeze, api.FreezeRequest{By: by, Reason: "soak", Running: running}, "freeze", fmt.Sprintf("by %s, running %v", by, running)) //nolint:errcheck // it is in the journal
}

// thaw ends a freeze, or all of them.
func (c *controls) thaw(ctx context.Context, all bool) {
	by := pick(c.dice, []string{"alice", "bob"})
	_ = c.update(ctx, api.UpdateThaw, api.ThawRequest{By: by, All: all}, "thaw", fmt.Sprintf("by %s, all %v", by, all)) //nolint:errcheck // it is in the journal
}
