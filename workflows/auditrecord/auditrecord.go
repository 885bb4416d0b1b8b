// Package auditrecord is the workflow that keeps the audit record of one maintenance, however long a sink is away.
package auditrecord

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/rules/record"
	"drydock/workflows/call"
)

// keepsTrying is how long an audit record is tried to be kept.
const keepsTrying = 30 * 24 * time.Hour

// AuditRecord gives an audit record to the configured sinks, and tries until all of them have it.
func AuditRecord(ctx workflow.Context, r record.Record) error {
	options := call.Within(call.Long(ctx, "keep the audit record of "+r.WorkflowID), keepsTrying)
	return workflow.ExecuteActivity(options, call.Deliveries.KeepRecord, r).Get(ctx, nil)
}
