package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/workflows/record"
)

// keepRecord has the audit record kept by a workflow of its own: however long a sink is away, the node's next
// maintenance may begin.
func (m *maintenance) keepRecord() {
	if !m.audited {
		return
	}
	id := AuditRecordID(m.cluster, m.spec.Node, m.spec.Requestor, m.status.RunID)
	options := childOptions(id, "keeps the audit record of the "+m.summary())
	child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(m.life, options), AuditRecordType, m.auditRecord())
	if err := child.GetChildWorkflowExecution().Get(m.life, nil); err != nil {
		workflow.GetLogger(m.life).Error("the audit record is not kept", "error", err)
	}
}

func (m *maintenance) auditRecord() record.Record {
	r := RecordOf(m.status, m.cluster)
	r.NodeUID = m.heldUID
	return r
}

// keepsTrying is how long an audit record is tried to be kept.
const keepsTrying = 30 * 24 * time.Hour

// AuditRecord gives an audit record to the configured sinks, and tries until all of them have it.
func AuditRecord(ctx workflow.Context, r record.Record) error {
	options := within(long(ctx, "keep the audit record of "+r.WorkflowID), keepsTrying)
	return workflow.ExecuteActivity(options, notifier.KeepRecord, r).Get(ctx, nil)
}
