package nodework

import (
	"context"
	"sync"
)

// Roller works on many nodes, a few at a time.
type Roller struct {
	Nodes           []string
	Parallel        int
	ContinueOnError bool
	// Abandon ends when no further node is to be begun and those that are not Ready are to be given up.
	Abandon context.Context
	// Work does one node; its context is abandon, or ends earlier because another node has failed.
	Work func(abandon context.Context, node string) Outcome
}

// Run returns an outcome for every node, in their order. A node is begun only when there is a place for it, so that
// no more nodes are out of service than are worked on.
func (r Roller) Run() []Outcome {
	ctx, stop := context.WithCancelCause(r.Abandon)
	defer stop(nil)
	outcomes := make([]Outcome, len(r.Nodes))
	places := make(chan struct{}, r.Parallel)
	var all sync.WaitGroup
	for i, node := range r.Nodes {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			outcomes[i] = Outcome{Node: node, Result: resultNotStarted, Note: whyAbandoned(ctx)}
			continue
		}
		all.Go(func() {
			outcomes[i] = r.Work(ctx, node)
			if outcomes[i].Result == ResultFailed && !r.ContinueOnError {
				// Before the place is free: nobody may take it now.
				stop(errSiblingFailed)
			}
			<-places
		})
	}
	all.Wait()
	return outcomes
}
