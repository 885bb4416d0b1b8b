package cluster

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/rules/schedule"
)

// deletedAfter is after what time a holder that marks no node counts as deleted where the server does not find it: before that, its start
// may not be visible yet.
const deletedAfter = time.Minute

// holderPoll describes the holders' workflows, round after round, beside the watch: a server that answers slowly must not
// keep the watch from showing that it lives, nor an ended holder from being found.
type holderPoll struct {
	activities *Activities
	holders    []WatchedHolder
	// resting are the nodes of holders that are not polled at present, and are counted with the others by what the nodes show.
	resting []string
	nodes   nodesByGroup
	// found has a token once a holder was found ended.
	found chan struct{}

	mu    sync.Mutex
	ended []EndedHolder
}

// pollHolders polls for as long as ctx lives.
func (c *Activities) pollHolders(ctx context.Context, in WatchInput, grouper schedule.Grouper, nodes nodeGetter) *holderPoll {
	p := &holderPoll{activities: c, holders: in.Holders, found: make(chan struct{}, 1), nodes: nodesByGroup{grouper, nodes}}
	for _, k := range in.Known {
		if k.Until.IsZero() && !k.Stray {
			p.resting = append(p.resting, k.Node)
		}
	}
	if len(in.Holders) > 0 {
		go p.rounds(ctx)
	}
	return p
}

func (p *holderPoll) rounds(ctx context.Context) {
	for wait := describeFirst; pause(ctx, wait) == nil; wait = describeEvery {
		if err := p.round(ctx); err != nil && ctx.Err() == nil {
			activity.GetLogger(ctx).Warn("not every holder could be described", "error", err)
		}
	}
}

// round describes each holder's workflow once. It begins with a random one: a watch that is replaced every few seconds would otherwise
// describe only the first.
func (p *holderPoll) round(ctx context.Context) error {
	first := rand.IntN(len(p.holders))
	order := make([]WatchedHolder, 0, len(p.holders))
	order = append(append(order, p.holders[first:]...), p.holders[:first]...)
	refs := make([]execution.HolderRef, len(order))
	for i, h := range order {
		refs[i] = execution.HolderRef{WorkflowID: h.WorkflowID, RunID: h.RunID, Since: h.Since}
	}
	counts := counting{held: map[HeldIn]int{}, nodes: p.nodes}
	for _, node := range p.resting {
		counts.count(node, nil)
	}
	err := p.activities.Home.Fates(ctx, p.activities.Temporal, refs, func(i int, found execution.Found) {
		switch found.Fate {
		case execution.Ended:
			p.add(EndedHolder{WatchedHolder: order[i], Status: found.Status})
		case execution.Unknown:
			// Its execution was deleted. A maintenance's mark shows whether it may be touched.
			if order[i].Unmarked && time.Since(order[i].Since) > deletedAfter {
				p.add(EndedHolder{WatchedHolder: order[i], Status: found.Status})
			}
		case execution.Alive:
			if order[i].Unmarked {
				return // it is no maintenance
			}
			counts.count(order[i].Node, found.Described)
		}
	})
	if err == nil {
		p.activities.PhaseCounts.set(counts.held)
	}
	return err
}

func (p *holderPoll) add(h EndedHolder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = append(p.ended, h)
	select {
	case p.found <- struct{}{}:
	default:
	}
}

// take returns the holders found ended so far.
func (p *holderPoll) take() []EndedHolder {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}
