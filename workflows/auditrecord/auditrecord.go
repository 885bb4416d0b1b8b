// Package auditrecord is the workflow that keeps the audit record of one maintenance, however long a sink is away.
package auditrecord

import (
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/inbox"
)

// keepsTrying is how long the workflow tries to write the record.
const keepsTrying = 30 * 24 * time.Hour

// AuditRecord writes the record of a maintenance to the configured sinks when the maintenance has ended, and tries until all sinks have it. Its
// input is only an api.Reference: what happened is read from the maintenance itself. It can be started by hand for a maintenance that
// was terminated.
func AuditRecord(ctx workflow.Context, input converter.RawValue) error {
	var ref api.Reference
	if err := spec.DecodeStrict(inbox.Payload(input), &ref); err != nil {
		return inbox.InvalidSpec(err)
	}
	options := call.Within(call.Long(ctx, "keep the audit record of "+bounds.Cut(ref.WorkflowID, 200)), keepsTrying)
	err := workflow.ExecuteActivity(options, call.Deliveries.KeepRecord, ref).Get(ctx, nil)
	for _, name := range workflow.GetUnhandledSignalNames(ctx) { // api.SignalOwn, which has had its effect
		workflow.GetSignalChannel(ctx, name).ReceiveAsync(nil)
	}
	return err
}

// Summary is the summary of the workflow that keeps a record.
func Summary(ref api.Reference) string {
	return "keeps the audit record of " + bounds.Cut(ref.WorkflowID, 200)
}
