package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/activities/account"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/record"
)

const (
	// awaitEndFor is how long a maintenance that is about to end is waited for before another attempt.
	awaitEndFor = 5 * time.Second
	// retryStep and retryMost are by how much the pause between attempts grows, and to what: each of them asks the
	// maintenance anew.
	retryStep = 5 * time.Second
	retryMost = 10 * time.Minute
)

// KeepRecord reads what happened to a maintenance, a plan or a remediation that has ended, and gives the record to every sink; those that have it
// are remembered between attempts, as is the proof of what happened. Errors: NotAMaintenance; Undeliverable, where this worker has no sink.
func (n *Activities) KeepRecord(ctx context.Context, ref api.Reference) error {
	if len(n.Sinks.Names()) == 0 {
		return undeliverable(errors.New("no sink of audit records is configured (audit)"))
	}
	var done []string
	proof := account.NewProof(&n.self)
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &done, &proof); err != nil {
			activity.GetLogger(ctx).Warn("an audit record may be written twice", "error", err)
		}
	}
	heartbeats := heartbeat.Start(ctx, done, proof)
	defer heartbeats.Stop()
	kept, err := n.recordOf(ctx, ref, &proof)
	if err != nil {
		return later(ctx, err)
	}
	heartbeats.Show(ctx, done, proof)
	written, err := n.Sinks.Write(ctx, kept, done)
	heartbeats.Show(ctx, written, proof)
	return later(ctx, err)
}

// recordOf reads the record of a maintenance, a plan or a remediation that has ended.
func (n *Activities) recordOf(ctx context.Context, ref api.Reference, proof *account.Proof) (record.Record, error) {
	switch {
	case account.IsPlan(ref):
		return account.RecordOfPlan(ctx, n.Temporal, ref, awaitEndFor, proof)
	case account.IsRemediation(ref):
		return account.RecordOfRemediation(ctx, n.Temporal, ref, awaitEndFor, proof)
	}
	a, err := account.Of(ctx, n.Temporal, ref, awaitEndFor)
	if err == nil && a.Closed == nil {
		err = fmt.Errorf("maintenance %s has not ended yet: it is %s", ref.WorkflowID, a.Status.Phase)
	}
	if err == nil {
		err = a.Prove(ctx, n.Temporal, ref, proof)
	}
	if err != nil {
		return record.Record{}, err
	}
	n.addOutcomes(ctx, ref, &a)
	return a.Record(), nil
}

// later is an error whose next attempt comes the later, the more there were.
func later(ctx context.Context, err error) error {
	if err == nil || temporal.IsApplicationError(err) {
		return err
	}
	attempt := activity.GetInfo(ctx).Attempt
	return temporal.NewApplicationErrorWithOptions(err.Error(), "NotRecorded", temporal.ApplicationErrorOptions{
		NextRetryDelay: min(time.Duration(attempt)*retryStep, retryMost), Cause: err,
	})
}
