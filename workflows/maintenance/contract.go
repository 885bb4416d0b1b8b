package maintenance

import (
	_ "embed"

	"drydock.dev/drydock/workflows/handover"
)

//go:embed v0.1.0.txt
var fieldsOf010 string

// contract is what 0.1.0 takes as a maintenance's state. A field that is not among these has it stand still, unless 0.1.0
// does without.
var contract = handover.Contract{
	Fields: handover.ParseFields(fieldsOf010),
	Dispensable: []string{
		// Who began it and who sent what, for people, records and rules of a policy, of which 0.1.0 has the principals of approvals.
		"prepared.starter", "status.starter", "status.createdAt", "status.messages.[].identity", "status.approval.identity",
		// The search attribute for the kind of a workflow.
		"prepared.kinds",
		// The Kubernetes object that shows the maintenance. The bridge reads what 0.1.0 does not tell it.
		"status.spec.object",
		// The workflow that it reports to, which asks again and is answered after the next upgrade.
		"status.spec.reportTo", "status.reportsTo", "status.requestors.[].doneId", "reports",
		// When a responder of an EvictionRequest expects to end.
		"status.drain.blockers.[].expectedBy",
		// What a drain counts more.
		"status.drain.deleted", "status.drain.staying", "status.earlierDrains.deleted",
		// The label that keeps remediators away. 0.1.0 leaves it on every node that it gives back, whichever maintenance held it.
		"hold.prior.excluded",
	},
	Values: map[string][]string{"at": {
		"begin", "approval", "preflight", "notice", stepRestart, "backOff", "slot", "beforeCordon", "cordon", "waitForPods", "drain",
		"afterDrain", "ready", "validation", "beforeRelease",
	}},
	// 0.1.0 begins to drain, and finds no time of the cordon: it panics before it does anything.
	Standstill: `{"at":"drain","status":{"phase":"Pending"},"prepared":{},"why":"this maintenance needs a newer release of Drydock: see docs/tasks/upgrade.md"}`,
}
