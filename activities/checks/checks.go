// Package checks calls hooks, and looks whether a node may return to production.
package checks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/activities/reporting"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/rules/validation"
)

// Activities call hooks, and look whether a node may return to production.
type Activities struct {
	Client   kube.Interface
	Temporal client.Client
	Runner   *checks.Runner
}

// HookInput asks for a hook of the worker's configuration, or for its closing.
type HookInput struct {
	Hook    string         `json:"hook"`
	Cleanup bool           `json:"closing,omitempty"`
	Subject checks.Subject `json:"subject"`
	// Key is the same whenever the call is repeated.
	Key string `json:"key"`
}

// About implements caller.Input.
func (in HookInput) About() caller.Subject { return about(in.Subject) }

// about is the maintenance as hooks, checks and works see it, as its claim.
func about(s checks.Subject) caller.Subject {
	return caller.Subject{Node: s.Node, Requestor: s.Requestor, WorkflowID: s.WorkflowID, RunID: s.RunID}
}

// CallHook calls a hook once, and waits for its Job where it has one. Errors: HookFailed, WorkerStopping.
func (c *Activities) CallHook(ctx context.Context, in HookInput) (checks.Outcome, error) {
	ctx, stop := heartbeat.UntilWorkerStops(ctx)
	defer stop()
	subject, err := checks.Describe(ctx, c.Client, in.Subject)
	if err != nil {
		return checks.Outcome{}, failure.OrCause(ctx, failure.Translate(ctx, c.Client, err))
	}
	outcome, err := c.Runner.Hook(ctx, in.Hook, in.Cleanup, subject, in.Key)
	if errors.Is(err, checks.ErrMisconfigured) || errors.Is(err, checks.ErrJobFailed) {
		return checks.Outcome{}, temporal.NewNonRetryableApplicationError(err.Error(), api.ErrorHookFailed, nil)
	}
	return outcome, failure.OrCause(ctx, failure.Translate(ctx, c.Client, err))
}

// AbandonHook ends what is left of a hook that nobody waits for any more.
func (c *Activities) AbandonHook(ctx context.Context, in HookInput) error {
	return failure.Translate(ctx, c.Client, c.Runner.AbandonHook(ctx, in.Hook, in.Cleanup, in.Key))
}

// ValidateInput asks whether a node may return to production.
type ValidateInput struct {
	// Validation is what must hold; its Signal is the workflow's to wait for.
	Validation   validation.Validation `json:"validation"`
	BootIDBefore string                `json:"bootIDBefore,omitempty"`
	Subject      checks.Subject        `json:"subject"`
	// Key is one for each validation, by which its Jobs are found again.
	Key string `json:"key"`
	// BlockedSignal is the signal by which the workflow wants to hear what does not hold.
	BlockedSignal string `json:"blockedSignal"`
}

// About implements caller.Input.
func (in ValidateInput) About() caller.Subject { return about(in.Subject) }

// Validated is how a validation ended.
type Validated struct {
	State   validation.State    `json:"state"`
	Results []validation.Result `json:"results"`
}

// Validate looks again and again until all has held for long enough, or its deadline is over. It goes on where an
// earlier attempt stopped. Errors: MissingPermission, WorkerStopping.
func (c *Activities) Validate(ctx context.Context, in ValidateInput) (Validated, error) {
	progress := validation.Begin(in.Validation, time.Now())
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &progress); err != nil {
			activity.GetLogger(ctx).Warn("a validation begins anew", "error", err)
		}
	}
	ctx, heartbeats, stop := heartbeat.WithDetails(ctx, progress)
	defer stop()
	// Heartbeats carry the progress; only signals carry what blocks.
	tell := reporting.Reporter{Temporal: c.Temporal, Signal: in.BlockedSignal}
	since := map[string]time.Time{}
	for {
		report, err := c.lookAt(ctx, in)
		if err != nil {
			return Validated{}, failure.OrCause(ctx, failure.Translate(ctx, c.Client, err))
		}
		var state validation.State
		progress, state = progress.Observe(report, report.At)
		heartbeats.Show(ctx, progress)
		if state == validation.Passed || state == validation.Failed {
			c.abandon(context.WithoutCancel(ctx), in)
			return Validated{State: state, Results: report.Results}, nil
		}
		tell.Report(ctx, missing(report, since))
		if err := pauseUntil(ctx, progress.Next(in.Validation.Every, time.Now())); err != nil {
			return Validated{}, err
		}
	}
}

func (c *Activities) lookAt(ctx context.Context, in ValidateInput) (validation.Report, error) {
	facts, err := checks.Facts(ctx, c.Client, in.Subject.Node, in.Validation)
	if err != nil {
		return validation.Report{}, err
	}
	if len(in.Validation.Checks) > 0 {
		subject, err := checks.Describe(ctx, c.Client, in.Subject)
		if err != nil {
			return validation.Report{}, err
		}
		if facts.Checks, err = c.Runner.CheckAll(ctx, in.Validation.Checks, subject, in.Key); err != nil {
			return validation.Report{}, err
		}
	}
	facts.BootIDBefore = in.BootIDBefore
	return validation.Decide(in.Validation, facts, time.Now()), nil
}

// abandon ends the Jobs that a validation leaves behind.
func (c *Activities) abandon(ctx context.Context, in ValidateInput) {
	for _, name := range in.Validation.Checks {
		if err := c.Runner.AbandonCheck(ctx, name, in.Key); err != nil {
			activity.GetLogger(ctx).Warn("a check may have left a Job", "check", name, "error", err)
		}
	}
}

// AbandonChecks ends what is left of a validation that nobody waits for any more.
func (c *Activities) AbandonChecks(ctx context.Context, in ValidateInput) error {
	c.abandon(ctx, in)
	return nil
}

// missing is what does not hold, in the form in which a drain reports what blocks it.
func missing(report validation.Report, since map[string]time.Time) api.DrainProgress {
	p := api.DrainProgress{At: report.At, Reasons: map[string]int{}}
	for _, result := range report.Missing() {
		at, known := since[result.Name]
		if !known {
			at = report.At.Add(-reporting.BlockedAfter)
			since[result.Name] = at
		}
		p.Reasons["NotValidated"]++
		if len(p.Blockers) == reporting.MaxBlockers {
			p.MoreBlockers++
			continue
		}
		p.Blockers = append(p.Blockers, api.Blocker{Pod: result.Name, Reason: "NotValidated", Message: result.Message, Since: at})
	}
	return p
}

// pauseUntil waits for a time; the error is why the context ended.
func pauseUntil(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("interrupted: %w", context.Cause(ctx))
	}
}
