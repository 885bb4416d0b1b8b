package cluster

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"drydock/activities/execution"
	"drydock/rules/schedule"
)

// deletedAfter is after what time a holder that marks no node counts as deleted where the server does not find it: before that, its start
// may not be visible yet.
const deletedAfter = time.Minute

// deaths looks after the holders' workflows, round after round, beside the watch: a server that answers slowly must not
// keep the watch from showing that it lives, nor a dead holder from being found.
type deaths struct {
	activities *Activities
	holders    []WatchedHolder
	// resting are the nodes of holders that are not looked after at present, and are counted with the others by what the
	// nodes show.
	resting []string
	nodes   nodesByGroup
	// found has a token once a holder was found dead.
	found chan struct{}

	mu    sync.Mutex
	ended []EndedHolder
}

// lookAfter looks after holders for as long as ctx lives.
func (c *Activities) lookAfter(ctx context.Context, in WatchInput, grouper schedule.Grouper, nodes nodeGetter) *deaths {
	d := &deaths{activities: c, holders: in.Holders, found: make(chan struct{}, 1), nodes: nodesByGroup{grouper, nodes}}
	for _, k := range in.Known {
		if k.Until.IsZero() && !k.Stray {
			d.resting = append(d.resting, k.Node)
		}
	}
	if len(in.Holders) > 0 {
		go d.rounds(ctx)
	}
	return d
}

func (d *deaths) rounds(ctx context.Context) {
	for wait := describeFirst; pause(ctx, wait) == nil; wait = describeEvery {
		if err := d.round(ctx); err != nil && ctx.Err() == nil {
			activity.GetLogger(ctx).Warn("not every holder could be looked after", "error", err)
		}
	}
}

// round asks after each holder once. It begins anywhere: a watch that is begun anew every few seconds would ask after the
// first of them only.
func (d *deaths) round(ctx context.Context) error {
	first := rand.IntN(len(d.holders))
	order := make([]WatchedHolder, 0, len(d.holders))
	order = append(append(order, d.holders[first:]...), d.holders[:first]...)
	refs := make([]execution.HolderRef, len(order))
	for i, h := range order {
		refs[i] = execution.HolderRef{WorkflowID: h.WorkflowID, RunID: h.RunID, Since: h.Since}
	}
	census := counting{held: map[HeldIn]int{}, nodes: d.nodes}
	for _, node := range d.resting {
		census.count(node, nil)
	}
	err := d.activities.Home.Fates(ctx, d.activities.Temporal, refs, func(i int, found execution.Found) {
		switch found.Fate {
		case execution.Ended:
			d.add(EndedHolder{WatchedHolder: order[i], Status: found.Status})
		case execution.Unknown:
			// Its execution was deleted. A maintenance's mark shows whether it may be touched.
			if order[i].Unmarked && time.Since(order[i].Since) > deletedAfter {
				d.add(EndedHolder{WatchedHolder: order[i], Status: found.Status})
			}
		case execution.Alive:
			if order[i].Unmarked {
				return // it is no maintenance
			}
			census.count(order[i].Node, found.Described)
		}
	})
	if err == nil {
		d.activities.Census.set(census.held)
	}
	return err
}

func (d *deaths) add(h EndedHolder) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = append(d.ended, h)
	select {
	case d.found <- struct{}{}:
	default:
	}
}

// take are those found dead so far.
func (d *deaths) take() []EndedHolder {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ended
}
