package starter

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"drydock/rules/period"
)

// roller works on many nodes, a few at a time.
type roller struct {
	nodes           []string
	parallel        int
	continueOnError bool
	// abandon ends when no further node is to be begun and those that are not Ready are to be given up.
	abandon context.Context
	// work does one node; its context is abandon, or ends earlier because another node has failed.
	work func(abandon context.Context, node string) outcome
}

// run returns an outcome for every node, in their order. A node is begun only when there is a place for it, so that
// no more nodes are out of service than are worked on.
func (r roller) run() []outcome {
	ctx, stop := context.WithCancelCause(r.abandon)
	defer stop(nil)
	outcomes := make([]outcome, len(r.nodes))
	places := make(chan struct{}, r.parallel)
	var all sync.WaitGroup
	for i, node := range r.nodes {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			outcomes[i] = outcome{Node: node, Result: resultNotStarted, Note: whyAbandoned(ctx)}
			continue
		}
		all.Go(func() {
			outcomes[i] = r.work(ctx, node)
			if outcomes[i].Result == resultFailed && !r.continueOnError {
				// Before the place is free: nobody may take it now.
				stop(errSiblingFailed)
			}
			<-places
		})
	}
	all.Wait()
	return outcomes
}

// rolloutCode is the exit code of a rollout.
func rolloutCode(outcomes []outcome) int {
	code := exitOK
	for _, o := range outcomes {
		switch o.Result {
		case resultFailed:
			return exitFailed
		case resultCancelled, resultNotStarted:
			code = exitCancelled
		}
	}
	return code
}

func renderOutcomes(w io.Writer, outcomes []outcome) {
	fmt.Fprintln(w)
	r := newRows(w, "NODE", "RESULT", "DURATION", "EXIT STATUS", "NOTE")
	counts := map[result]int{}
	for _, o := range outcomes {
		counts[o.Result]++
		duration, status := "-", "-"
		if o.duration > 0 {
			duration = period.Age(o.duration.Round(time.Second))
		}
		if o.ExitStatus != nil {
			status = fmt.Sprint(*o.ExitStatus)
		}
		note, _, _ := strings.Cut(o.Note, "\n")
		r.add(o.Node, string(o.Result), duration, status, note)
	}
	r.done()
	var parts []string
	for _, kind := range []result{resultDone, resultFailed, resultCancelled, resultNotStarted, resultSkipped} {
		if counts[kind] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
		}
	}
	fmt.Fprintf(w, "\n%s: %s\n", plural(len(outcomes), "node"), strings.Join(parts, ", "))
}
