package execution

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"drydock.dev/drydock/activities/caller"
)

// Fate is what became of a holder's chain of runs.
type Fate string

// The fates.
const (
	Alive Fate = "alive"
	Ended Fate = "ended"
	// Unknown: there is no such workflow, and the mark is so young that it would have to be known.
	Unknown Fate = "unknown"
)

// HolderRef names a holder: its workflow, the first run of its chain, and since when it holds.
type HolderRef struct {
	WorkflowID string    `json:"workflowId"`
	RunID      string    `json:"runId"`
	Since      time.Time `json:"since"`
}

// Found is the fate of a holder, and in words why.
type Found struct {
	Fate   Fate   `json:"fate"`
	Status string `json:"status"`
	// Described is what the server says of the workflow; nil if it knows none.
	Described *workflowservice.DescribeWorkflowExecutionResponse `json:"-"`
}

// FateOf returns what became of a holder of this namespace. A reset and a continue-as-new go on with the chain; another
// chain under the same workflow ID shows that this one has closed.
func (n Namespace) FateOf(ctx context.Context, temporal client.Client, h HolderRef) (Found, error) {
	d, err := temporal.DescribeWorkflowExecution(ctx, h.WorkflowID, "")
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		if !h.Since.IsZero() && time.Since(h.Since) > n.Retention {
			return Found{Fate: Ended, Status: "not found, and older than what is kept"}, nil
		}
		return Found{Fate: Unknown, Status: "not found"}, nil
	}
	if err != nil {
		return Found{}, fmt.Errorf("describing workflow %s: %w", h.WorkflowID, err)
	}
	info := d.GetWorkflowExecutionInfo()
	switch status := info.GetStatus(); {
	case info.GetFirstRunId() != "" && info.GetFirstRunId() != h.RunID:
		return Found{Fate: Ended, Status: "followed by another", Described: d}, nil
	case status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return Found{Fate: Alive, Status: status.String(), Described: d}, nil
	default:
		return Found{Fate: Ended, Status: status.String(), Described: d}, nil
	}
}

// fatesAtOnce bounds the descriptions under way.
const fatesAtOnce = 16

// Fates asks for many holders at once, and calls report with each as soon as it is known, one at a time. It goes on after an
// error, and returns the first.
func (n Namespace) Fates(ctx context.Context, temporal client.Client, holders []HolderRef, report func(i int, found Found)) error {
	var group errgroup.Group
	var mu sync.Mutex
	group.SetLimit(fatesAtOnce)
	for i, h := range holders {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			found, err := n.FateOf(ctx, temporal, h)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				report(i, found)
			}
			return err
		})
	}
	return errors.Join(group.Wait(), ctx.Err())
}

// About implements caller.Input.
func (h HolderRef) About() caller.Subject { return caller.Subject{WorkflowID: h.WorkflowID} }

// AskFate returns what became of a holder, as an activity.
func (e *Activities) AskFate(ctx context.Context, h HolderRef) (Found, error) {
	return e.Home.FateOf(ctx, e.Temporal, h)
}
