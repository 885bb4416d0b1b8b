package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/activities/nodeevent"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/checks/job"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/bounds"
)

// ReleaseInput asks for a maintenance's mark to be taken off a node.
type ReleaseInput struct {
	Node string `json:"node"`
	// WorkflowID is the holder's; empty is the calling workflow's. RunID is the holder's first run.
	WorkflowID string          `json:"workflowId,omitempty"`
	RunID      string          `json:"runId"`
	Event      nodeevent.Event `json:"event"`
	// HideConditions: the maintenance showed lifecycle conditions, which are taken off.
	HideConditions bool `json:"hideConditions,omitempty"`
	// WithdrawRequests withdraws the EvictionRequests that the run's drain left behind.
	WithdrawRequests bool `json:"withdrawRequests,omitempty"`
	// Orphan has it released only if the holder does not run any more. Error: HolderAlive.
	Orphan bool `json:"orphan,omitempty"`
	// Prior is what the maintenance remembers of the node, and decides what is put back. An orphan's is read from its history.
	Prior *Prior `json:"prior,omitempty"`
	// Then is sent as soon as the node is released; nil sends nothing.
	Then *Signal `json:"then,omitempty"`
	// Plan is the signal to the plan that the node is back, if it is; nil signals nobody.
	Plan *Signal `json:"plan,omitempty"`
}

// Signal is a signal to a workflow.
type Signal struct {
	WorkflowID string          `json:"workflowId"`
	Name       string          `json:"name"`
	Payload    json.RawMessage `json:"payload"`
}

// Released is what ReleaseNode found and did.
type Released struct {
	Gone    bool `json:"gone,omitempty"`
	Foreign bool `json:"foreign,omitempty"`
	// Stripped: the mark was gone, and what Drydock changed was put back all the same.
	Stripped   bool `json:"stripped,omitempty"`
	Uncordoned bool `json:"uncordoned,omitempty"`
	// ConditionsLeft: lifecycle conditions could not be taken off.
	ConditionsLeft bool `json:"conditionsLeft,omitempty"`
	// Differs is what the mark said otherwise than the maintenance remembers; empty if they agree.
	Differs      string   `json:"differs,omitempty"`
	OtherHolders []string `json:"otherHolders,omitempty"`
}

// ReleaseNode takes a holder's mark off a node, and with the last one puts back what Drydock changed; then it sends a
// signal, if asked to. What an orphan has left running on its node is ended before. A node that is gone, or that this holder
// does not hold, is a success. The maintenance's own memory says what to put back, also where somebody took the mark off; the
// mark is only compared. Errors: ForeignCaller, HolderAlive, MarkUnconfirmed, JobsRun, MissingPermission.
func (n *Activities) ReleaseNode(ctx context.Context, in ReleaseInput) (Released, error) {
	for _, signal := range []*Signal{in.Then, in.Plan} {
		if signal == nil {
			continue
		}
		if err := caller.MaySignal(ctx, signal.WorkflowID, signal.Name); err != nil {
			return Released{}, err // before anything is released
		}
	}
	holder := callerFor(ctx, in.WorkflowID, in.RunID)
	known := k8s.Known{
		Prior: in.Prior, Cordons: cordons{n.Temporal, in.Node, holder.RunID},
		GivenBack: n.Home.GivenBack(ctx, holder, string(in.Event.Reason)),
	}
	if in.Orphan {
		if err := n.endOrphan(ctx, in.Node, holder, &known); err != nil {
			return Released{}, failure.Translate(ctx, n.Client, err)
		}
	}
	var released k8s.Released
	err := n.acting().Do(ctx, in.Node, holder, func() (err error) {
		released, err = k8s.Release(ctx, n.Client, in.Node, holder, known)
		return err
	})
	if err == nil && released.Foreign && in.Prior != nil {
		released, err = n.releaseStripped(ctx, in, holder, known)
	}
	if err == nil && in.Orphan {
		err = n.endJobs(ctx, holder, false) // what was begun while the mark was being taken off
	}
	if err != nil {
		return Released{}, failure.Translate(ctx, n.Client, err)
	}
	if err := n.tellOf(ctx, in, released); err != nil {
		return Released{}, err
	}
	n.resumeMachine(ctx, in)
	conditionsLeft := false
	if (in.HideConditions || n.Conditions) && !released.Gone {
		// They must not keep a node out of service.
		if err := k8s.HideConditions(ctx, n.Client, in.Node, holder, in.HideConditions); err != nil {
			activity.GetLogger(ctx).Warn("conditions are left on the node", "node", in.Node, "error", err)
			conditionsLeft = true
		}
	}
	differs := n.record(ctx, in, released)
	if in.WithdrawRequests {
		// Only now: the mark is gone, so that a drain that still runs files none anew.
		requests := k8s.EvictionRequests{Client: n.Client, Node: in.Node, WorkflowID: holder.WorkflowID, RunID: holder.RunID}
		if err := requests.WithdrawLeft(ctx); err != nil {
			return Released{}, failure.Translate(ctx, n.Client, err)
		}
	}
	return Released{
		Gone: released.Gone, Foreign: released.Foreign, Stripped: released.Stripped, Uncordoned: released.Uncordoned,
		OtherHolders: released.OtherHolders, ConditionsLeft: conditionsLeft, Differs: differs,
	}, nil
}

// record makes the Events of a release, and says what the mark said otherwise than its maintenance remembers.
func (n *Activities) record(ctx context.Context, in ReleaseInput, released k8s.Released) (differs string) {
	if released.Gone || released.Foreign {
		return ""
	}
	n.Events.Record(ctx, in.Node, released.UID, in.Event)
	if differs = bounds.Cut(strings.Join(released.Differences, "; "), bounds.Text/2); differs != "" {
		n.Events.Record(ctx, in.Node, released.UID, nodeevent.Event{Reason: api.EventMarkDiffers, Warning: true, Key: in.Event.Key,
			Message: "the mark says otherwise than its maintenance remembers: " + differs})
	}
	return differs
}

// endOrphan ends what an orphan has left running on its node before the node is released. Errors: HolderAlive, MarkUnconfirmed,
// JobsRun.
func (n *Activities) endOrphan(ctx context.Context, node string, holder k8s.Caller, known *k8s.Known) error {
	held, err := n.orphaned(ctx, node, holder, known)
	var unconfirmed *temporal.ApplicationError
	switch {
	case err == nil:
		return n.endJobs(ctx, holder, held)
	case errors.As(err, &unconfirmed) && unconfirmed.Type() == api.ErrorMarkUnconfirmed:
		// The node stays as it is, and its slot goes to others: no Job of the holder, which has ended, may run on.
		return cmp.Or(n.endJobs(ctx, holder, true), err)
	}
	return err
}

// endJobs ends the Jobs that an orphan has left running on its node: nobody else does, and a Job that is about to restart the node must
// not find it in production. Where the orphan does not hold the node, a Job that cannot be ended is only logged. Errors: JobsRun.
func (n *Activities) endJobs(ctx context.Context, orphan k8s.Caller, held bool) error {
	if n.Jobs == nil {
		return nil
	}
	err := n.Jobs.End(ctx, orphan.WorkflowID, orphan.RunID)
	switch {
	case err != nil && !held && ctx.Err() == nil:
		activity.GetLogger(ctx).Warn("Jobs of a maintenance that has ended may still run", "workflow", orphan.WorkflowID, "error", err)
		return nil
	case errors.Is(err, job.ErrStillRuns):
		return temporal.NewNonRetryableApplicationError(err.Error(), api.ErrorJobsRun, nil)
	}
	return err
}

// About implements caller.Input.
func (in ReleaseInput) About() caller.Subject {
	s := caller.Subject{Node: in.Node, WorkflowID: in.WorkflowID, RunID: in.RunID, Alive: in.WorkflowID != "" && !in.Orphan}
	if in.Plan != nil {
		s.Parent = in.Plan.WorkflowID
	}
	return s
}

// tellOf sends the signals that follow a release. The next node's turn is a matter of them: they go before the Event, and not
// by way of the workflow.
func (n *Activities) tellOf(ctx context.Context, in ReleaseInput, released k8s.Released) error {
	var sending sync.WaitGroup
	defer sending.Wait()
	if in.Plan != nil && !released.Gone {
		sending.Go(func() {
			// A plan that does not get it learns of the end from the server.
			if err := caller.Signal(ctx, n.Temporal, in.Plan.WorkflowID, "", in.Plan.Name, in.Plan.Payload); err != nil {
				activity.GetLogger(ctx).Info("the plan did not get a signal", "plan", in.Plan.WorkflowID, "error", err)
			}
		})
	}
	if in.Then == nil {
		return nil
	}
	if err := caller.Signal(ctx, n.Temporal, in.Then.WorkflowID, "", in.Then.Name, in.Then.Payload); err != nil {
		return fmt.Errorf("signalling %s to %s: %w", in.Then.Name, in.Then.WorkflowID, err)
	}
	return nil
}

// releaseStripped puts back what Drydock changed on a node whose mark is gone. The mark does not fence it: only the run that
// acts may.
func (n *Activities) releaseStripped(ctx context.Context, in ReleaseInput, caller k8s.Caller, known k8s.Known) (k8s.Released, error) {
	switch err := n.acting().IsCurrent(ctx, caller); {
	case errors.Is(err, k8s.ErrNotHolder):
		return k8s.Released{Foreign: true}, nil
	case err != nil:
		return k8s.Released{}, err
	}
	known.Stripped = true
	return k8s.Release(ctx, n.Client, in.Node, caller, known)
}

// orphaned refuses to release a node whose holder runs: it may have been reset since somebody found that it had ended.
// It reports whether the node carries the holder's mark, and reads from the holder's history what is to be put back: where the history
// does not say that the holder holds the node, anybody may have written the mark. Errors: HolderAlive, MarkUnconfirmed.
func (n *Activities) orphaned(ctx context.Context, name string, holder k8s.Caller, known *k8s.Known) (held bool, err error) {
	node, err := n.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	mark, err := k8s.MarkOf(node)
	if err != nil {
		return false, err
	}
	for _, h := range mark.Holders {
		if h.WorkflowID != holder.WorkflowID || h.RunID != holder.RunID {
			continue
		}
		found, err := n.Home.FateOf(ctx, n.Temporal, execution.HolderRef{WorkflowID: h.WorkflowID, RunID: h.RunID, Since: h.Since})
		switch {
		case err != nil:
			return false, err
		case found.Fate != execution.Ended || !n.Home.Owns(h):
			return false, temporal.NewNonRetryableApplicationError(
				fmt.Sprintf("node %s: its holder %s is not known to have ended (%s)", name, h.WorkflowID, found.Status), api.ErrorHolderAlive, nil)
		}
		m, err := remembers(ctx, n.Temporal, k8s.CordonedBy{WorkflowID: h.WorkflowID, RunID: h.RunID, Run: h.Run}, name, node.UID, nil)
		if err != nil {
			return false, err
		}
		if m.Released || m.Prior == nil && !m.Began {
			return false, temporal.NewNonRetryableApplicationError(
				fmt.Sprintf("node %s: the history of %s does not say that it holds the node, and its mark is not carried out: "+
					"look at the node, then: drydock doctor --fix", name, h.WorkflowID), api.ErrorMarkUnconfirmed, nil)
		}
		known.Prior, held = m.Prior, true
	}
	return held, nil
}
