package maintenance

import (
	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/record"
	"drydock/workflows/call"
)

// keepRecord has the audit record kept by a workflow of its own: however long a sink is away, the node's next
// maintenance may begin.
func (m *maintenance) keepRecord() {
	if !m.audited {
		return
	}
	id := api.AuditRecordID(m.cluster, m.spec.Node, m.spec.Requestor, m.status.RunID)
	options := call.Child(id, "keeps the audit record of the "+m.summary())
	child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(m.life, options), api.AuditRecordType, m.auditRecord())
	if err := child.GetChildWorkflowExecution().Get(m.life, nil); err != nil {
		workflow.GetLogger(m.life).Error("the audit record is not kept", "error", err)
	}
}

func (m *maintenance) auditRecord() record.Record {
	r := api.RecordOf(m.status, m.cluster)
	r.NodeUID = m.heldUID
	return r
}
