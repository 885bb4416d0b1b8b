package checks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/activities/heldnode"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/validation"
)

// WorkInput is about one work of the worker's configuration.
type WorkInput struct {
	Work    string         `json:"work"`
	Subject checks.Subject `json:"subject"`
	// Kind is that of the work when the maintenance named it, Job the Job in which it was begun, as WorkBegun has it: it is
	// that one which is looked after, whatever the configuration says of the work by now.
	Kind validation.Kind `json:"kind,omitempty"`
	Job  string          `json:"job,omitempty"`
	// Key is the same whenever the work is looked for: it is begun once under each.
	Key string `json:"key"`
	// NewBootID: the node is to be restarted, BootIDBefore is the boot ID that it had.
	NewBootID    bool   `json:"newBootID,omitempty"`
	BootIDBefore string `json:"bootIDBefore,omitempty"`
	// For is how long the end is waited for, from when the activity was scheduled.
	For period.Duration `json:"for,omitzero"`
	// Find: BeginWork only finds what was begun.
	Find bool `json:"find,omitempty"`
}

// About implements caller.Input.
func (in WorkInput) About() caller.Subject { return about(in.Subject) }

func (in WorkInput) call() checks.WorkCall {
	return checks.WorkCall{Work: in.Work, Kind: in.Kind, Begun: in.Job, Key: in.Key, Subject: in.Subject}
}

// WorkBegun is a work that was begun: the name of its Job, where it has one, and the node's boot ID before.
type WorkBegun struct {
	Job    string `json:"job,omitempty"`
	BootID string `json:"bootID,omitempty"`
}

// WorkEnded is how a work ended: Message says so in words, Output is an excerpt of what it wrote.
type WorkEnded struct {
	OK      bool   `json:"ok"`
	Message string `json:"message"`
	Output  string `json:"output,omitempty"`
}

// BeginWork notes the node's boot ID and creates the work's Job, or finds the one of its key. It must not be tried for
// longer than a Job that has ended is kept. Errors: HookFailed, MissingPermission.
func (c *Activities) BeginWork(ctx context.Context, in WorkInput) (WorkBegun, error) {
	if in.Find {
		return c.findWork(ctx, in)
	}
	node, err := c.held(ctx, in)
	if err != nil {
		return WorkBegun{}, err
	}
	bootID := node.Status.NodeInfo.BootID
	if in.NewBootID && bootID == "" {
		return WorkBegun{}, temporal.NewNonRetryableApplicationError(
			"the node shows no boot ID (status.nodeInfo.bootID), so that nobody could tell whether it was restarted", api.ErrorHookFailed, nil)
	}
	if in.Subject, err = checks.Describe(ctx, c.Client, in.Subject); err != nil {
		return WorkBegun{}, failure.Translate(ctx, c.Client, err)
	}
	begun, err := c.Runner.BeginWork(ctx, in.call(), bootID)
	if err == nil && begun.Name != "" {
		err = c.stillWanted(ctx, in)
	}
	return WorkBegun{Job: begun.Name, BootID: begun.Note}, c.ofWork(ctx, err)
}

// stillWanted ends what was begun for a maintenance that has ended meanwhile: its release may have searched for its Jobs
// before this one was there.
func (c *Activities) stillWanted(ctx context.Context, in WorkInput) error {
	id := activity.GetInfo(ctx).WorkflowExecution.ID
	found, err := execution.Namespace{}.FateOf(ctx, c.Temporal, execution.HolderRef{WorkflowID: id, RunID: in.Subject.RunID})
	if err != nil || found.Fate == execution.Alive {
		return err
	}
	if err := c.Runner.EndWork(ctx, in.call()); err != nil {
		return err
	}
	return temporal.NewNonRetryableApplicationError("the maintenance does not run any more: "+found.Status, api.ErrorHookFailed, nil)
}

// findWork finds the Job of a beginning whose outcome is not known.
func (c *Activities) findWork(ctx context.Context, in WorkInput) (WorkBegun, error) {
	begun, found, err := c.Runner.FindWork(ctx, in.call())
	if err == nil && !found {
		return WorkBegun{}, temporal.NewNonRetryableApplicationError("nothing was begun", api.ErrorHookFailed, nil)
	}
	return WorkBegun{Job: begun.Name, BootID: begun.Note}, c.ofWork(ctx, err)
}

// held is the node, which must be the calling maintenance's. A mark that somebody took off, and a node that is re-created,
// come back: those errors are tried again.
func (c *Activities) held(ctx context.Context, in WorkInput) (node *corev1.Node, err error) {
	caller := heldnode.CallerOf(ctx, in.Subject.RunID)
	err = heldnode.Acting{Client: c.Client, Temporal: c.Temporal}.Do(ctx, in.Subject.Node, caller, func() error {
		if node, err = c.Client.CoreV1().Nodes().Get(ctx, in.Subject.Node, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("reading node %s: %w", in.Subject.Node, err)
		}
		mark, err := k8s.MarkOf(node)
		if err != nil {
			return err
		}
		return mark.Allows(caller)
	})
	if err == nil || k8s.Denied(ctx, c.Client, err) {
		return node, failure.Translate(ctx, c.Client, err)
	}
	return nil, temporal.NewApplicationError(err.Error(), "")
}

// ofWork sorts the errors of works: a wrong configuration is not healed by another try.
func (c *Activities) ofWork(ctx context.Context, err error) error {
	if errors.Is(err, checks.ErrMisconfigured) {
		return temporal.NewNonRetryableApplicationError(err.Error(), api.ErrorHookFailed, nil)
	}
	return failure.OrCause(ctx, failure.Translate(ctx, c.Client, err))
}

// called is what an attempt leaves to the next: a hook that has agreed to restart the node is not called again.
type called struct {
	Called bool   `json:"called"`
	Output string `json:"output,omitempty"`
}

// AwaitWork waits for the end of a work that was begun, or calls the one that has no beginning. It never begins one.
// Errors: HookFailed, MissingPermission, WorkerStopping.
func (c *Activities) AwaitWork(ctx context.Context, in WorkInput) (WorkEnded, error) {
	var before called
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &before); err != nil {
			activity.GetLogger(ctx).Warn("what an earlier attempt called is not known", "error", err)
		}
	}
	ctx, heartbeats, stop := heartbeat.WithDetails(ctx, before)
	defer stop()
	if in.NewBootID {
		r := &restart{Activities: c, in: in, called: before, heartbeats: heartbeats}
		ended, err := r.await(ctx)
		return ended, c.ofWork(ctx, err)
	}
	ended, err := c.awaitEnd(ctx, in)
	return ended, c.ofWork(ctx, err)
}

// until is when nobody waits any more.
func (in WorkInput) until(ctx context.Context) time.Time {
	return activity.GetInfo(ctx).ScheduledTime.Add(in.For.Std())
}

// awaitEnd waits for the work's own end.
func (c *Activities) awaitEnd(ctx context.Context, in WorkInput) (WorkEnded, error) {
	subject, err := c.subjectOf(ctx, in)
	if err != nil {
		return WorkEnded{}, err
	}
	waiting, cancel := context.WithDeadline(ctx, in.until(ctx))
	defer cancel()
	in.Subject = subject
	state, err := c.Runner.AwaitWork(waiting, in.call())
	if err != nil && ctx.Err() == nil && waiting.Err() != nil {
		// Nobody waits any more for what goes on by itself: where it stands says more than that.
		if now, known, failed := c.Runner.LookAtWork(ctx, in.call()); known || failed != nil {
			state, err = now, failed
		}
	}
	if err != nil {
		return WorkEnded{}, err
	}
	if !state.Ended {
		state.Message += fmt.Sprintf(" within %s", in.For)
		state, err = c.endOverdue(ctx, in, state)
	}
	return WorkEnded{OK: state.OK, Message: state.Message, Output: state.Output}, err
}

// endOverdue ends what has not ended in its time: the next attempt must not find it at work.
func (c *Activities) endOverdue(ctx context.Context, in WorkInput, state checks.State) (checks.State, error) {
	state.Message += " and was deleted"
	return state, c.Runner.EndWork(ctx, in.call())
}

// subjectOf is the maintenance as a check or hook sees it. What has no beginning is called now: the node must be held for that.
func (c *Activities) subjectOf(ctx context.Context, in WorkInput) (checks.Subject, error) {
	if _, known, err := c.Runner.LookAtWork(ctx, in.call()); err != nil || known {
		return in.Subject, err
	}
	if _, err := c.held(ctx, in); err != nil {
		return in.Subject, err
	}
	return checks.Describe(ctx, c.Client, in.Subject)
}

const (
	// lookEvery is the time between two looks at a node that is to be restarted.
	lookEvery = 2 * time.Second
	// endsWithin is how long the Job of a node that was restarted may take to notice that it has ended.
	endsWithin = 20 * time.Second
)

// restart is the wait for a node's restart. Whatever becomes of the Job, success is the node's.
type restart struct {
	*Activities
	called
	in         WorkInput
	heartbeats *heartbeat.Loop
	// refused is why the last call did not go well.
	refused error
}

func (r *restart) await(ctx context.Context) (WorkEnded, error) {
	for until := r.in.until(ctx); ; {
		found, restarted, err := r.look(ctx)
		switch {
		case err != nil:
			return WorkEnded{}, err
		case restarted:
			return r.tidy(ctx, found)
		case !time.Now().Before(until):
			return r.overdue(ctx, found)
		}
		if r.refused = r.call(ctx); errors.Is(r.refused, checks.ErrMisconfigured) {
			return WorkEnded{}, r.refused
		}
		if err := pauseUntil(ctx, time.Now().Add(lookEvery)); err != nil {
			return WorkEnded{}, err
		}
	}
}

// look returns what the node shows, in words, and whether it was restarted and is Ready.
func (r *restart) look(ctx context.Context) (found string, restarted bool, err error) {
	node, err := r.Client.CoreV1().Nodes().Get(ctx, r.in.Subject.Node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "the node is not there", false, nil
	case err != nil:
		return "", false, fmt.Errorf("reading node %s: %w", r.in.Subject.Node, err)
	}
	now, ready := node.Status.NodeInfo.BootID, false
	for _, c := range node.Status.Conditions {
		ready = ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}
	switch {
	case now == "" || now == r.in.BootIDBefore:
		return "the node was not restarted: its boot ID is " + r.in.BootIDBefore + " as before", false, nil
	case !ready:
		return "the node was restarted and is not Ready", false, nil
	default:
		return fmt.Sprintf("the node was restarted and is Ready (boot ID %s, before %s)", now, r.in.BootIDBefore), true, nil
	}
}

// call calls what has no beginning of its own, until it agrees.
func (r *restart) call(ctx context.Context) error {
	if r.Called {
		return nil
	}
	if _, known, err := r.Runner.LookAtWork(ctx, r.in.call()); err != nil || known {
		r.Called = known
		return err
	}
	subject, err := r.subjectOf(ctx, r.in)
	if err != nil {
		return err
	}
	in := r.in
	in.Subject = subject
	state, err := r.Runner.AwaitWork(ctx, in.call())
	if err != nil {
		return err
	}
	r.called = called{Called: true, Output: state.Output}
	r.heartbeats.Show(ctx, r.called)
	return nil
}

// tidy ends a Job that has not noticed that its node was restarted: it could restart the node again, once that is back in
// production.
func (r *restart) tidy(ctx context.Context, found string) (WorkEnded, error) {
	for until := time.Now().Add(endsWithin); ; {
		state, known, err := r.Runner.LookAtWork(ctx, r.in.call())
		switch {
		case err != nil:
			return WorkEnded{}, err
		case !known:
			return WorkEnded{OK: true, Message: found, Output: r.Output}, nil
		case state.Ended:
			return WorkEnded{OK: true, Message: found + "; " + state.Message, Output: state.Output}, nil
		case time.Now().After(until):
			state, err = r.endOverdue(ctx, r.in, state)
			return WorkEnded{OK: true, Message: found + "; " + state.Message, Output: state.Output}, err
		}
		if err := pauseUntil(ctx, time.Now().Add(lookEvery)); err != nil {
			return WorkEnded{}, err
		}
	}
}

// overdue is the failure of a node that was not restarted in time.
func (r *restart) overdue(ctx context.Context, found string) (WorkEnded, error) {
	state, known, err := r.Runner.LookAtWork(ctx, r.in.call())
	if err != nil {
		return WorkEnded{}, err
	}
	if known && !state.Ended {
		state, err = r.endOverdue(ctx, r.in, state)
	}
	ended := WorkEnded{Message: fmt.Sprintf("%s after %s", found, r.in.For), Output: r.Output}
	switch {
	case known:
		ended.Message, ended.Output = ended.Message+"; "+state.Message, state.Output
	case r.refused != nil:
		ended.Message += "; " + r.refused.Error()
	}
	return ended, err
}

// EndWork ends a work that nobody waits for any more, and returns once nothing of it runs.
func (c *Activities) EndWork(ctx context.Context, in WorkInput) error {
	return c.ofWork(ctx, c.Runner.EndWork(ctx, in.call()))
}
