// Package auditrecord is the workflow that keeps the audit record of one maintenance, however long a sink is away.
package auditrecord

import (
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/bounds"
	"drydock/rules/spec"
	"drydock/workflows/call"
	"drydock/workflows/inbox"
)

// keepsTrying is how long an audit record is tried to be kept, once it is asked for.
const keepsTrying = 30 * 24 * time.Hour

// AuditRecord has the record of a maintenance written to the configured sinks when that has ended, and tries until all of
// them have it. Its input is an api.Reference and no more: what happened is read from the maintenance itself. Whoever has
// terminated a maintenance can start it by hand.
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

// maxIDs bounds the workflow IDs under which Begin tries to start a record.
const maxIDs = 2

// Summary says what keeps a record for a workflow.
func Summary(ref api.Reference) string {
	return "keeps the audit record of " + bounds.Cut(ref.WorkflowID, 200)
}

// Begin has the record of a workflow kept by one that reads it from there and outlives it. Somebody who has taken its ID must not
// suppress the record: another is tried, and occupied told why.
func Begin(ctx workflow.Context, id, summary string, ref api.Reference, attributes []temporal.SearchAttributeUpdate, occupied func(id string, why error)) {
	options := call.Child(id, summary)
	options.WorkflowIDReusePolicy = enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	if len(attributes) > 0 {
		options.TypedSearchAttributes = temporal.NewSearchAttributes(attributes...)
	}
	for n := 1; n <= maxIDs; n++ {
		try := api.FurtherID(id, n)
		options.WorkflowID = try
		child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, options), api.AuditRecordType, ref)
		err := child.GetChildWorkflowExecution().Get(ctx, nil)
		if err == nil {
			return
		}
		occupied(try, err)
	}
}
