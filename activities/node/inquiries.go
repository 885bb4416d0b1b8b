package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
)

// inquireWithin bounds one question to a scheduler.
const inquireWithin = 20 * time.Second

// AskSlot asks the scheduler whether a slot is held, and which freezes hold its holder.
func (n *Activities) AskSlot(ctx context.Context, slot Slot) (api.SlotHeld, error) {
	answer, err := n.inquiries.ask(ctx, n.Temporal, slot)
	if err != nil {
		return api.SlotHeld{}, fmt.Errorf("asking the scheduler for slot %s: %w", slot.RequestID, err)
	}
	return answer, nil
}

// inquiries puts the questions of a worker to a scheduler one at a time, each for all who wait by then: a server keeps
// one query while a workflow task runs, and refuses further ones for seconds.
type inquiries struct {
	mu sync.Mutex
	// waiting are the questions that were not put yet. A scheduler that is in the map has somebody who puts them.
	waiting map[string][]inquiry
}

type inquiry struct {
	requestID string
	answer    chan<- answered
}

type answered struct {
	slot api.SlotHeld
	err  error
}

// ask returns an answer that was given after it was called.
func (i *inquiries) ask(ctx context.Context, temporal client.Client, slot Slot) (api.SlotHeld, error) {
	answer := make(chan answered, 1)
	i.add(temporal, slot.Scheduler, inquiry{slot.RequestID, answer})
	select {
	case got := <-answer:
		return got.slot, got.err
	case <-ctx.Done():
		return api.SlotHeld{}, ctx.Err()
	}
}

func (i *inquiries) add(temporal client.Client, scheduler string, one inquiry) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.waiting == nil {
		i.waiting = map[string][]inquiry{}
	}
	_, attended := i.waiting[scheduler]
	i.waiting[scheduler] = append(i.waiting[scheduler], one)
	if !attended {
		go i.put(temporal, scheduler)
	}
}

// put puts questions until none waits.
func (i *inquiries) put(temporal client.Client, scheduler string) {
	for batch := i.next(scheduler); len(batch) > 0; batch = i.next(scheduler) {
		held, err := query(temporal, scheduler, batch)
		for _, one := range batch {
			one.answer <- answered{held.Of(one.requestID), err}
		}
	}
}

// next takes the questions to put now; where there are none, nobody puts them any more.
func (i *inquiries) next(scheduler string) []inquiry {
	i.mu.Lock()
	defer i.mu.Unlock()
	batch := i.waiting[scheduler]
	if len(batch) == 0 {
		delete(i.waiting, scheduler)
		return nil
	}
	n := min(len(batch), api.MaxSlotsAsked)
	i.waiting[scheduler] = batch[n:]
	return batch[:n]
}

// query asks on behalf of all in the batch: the end of one of their activities does not end it for the others.
func query(temporal client.Client, scheduler string, batch []inquiry) (held api.SlotsHeld, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), inquireWithin)
	defer cancel()
	var question api.SlotQuestion
	for _, one := range batch {
		question.RequestIDs = append(question.RequestIDs, one.requestID)
	}
	value, err := temporal.QueryWorkflow(ctx, scheduler, "", api.QuerySlotsHeld, question)
	if err != nil {
		return held, err
	}
	return held, value.Get(&held)
}
