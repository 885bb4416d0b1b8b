package maintenance

import "go.temporal.io/sdk/workflow"

// Named changes since v0.1.0: a run whose history is older goes on in the way it began. Those that end in a hyphen are of several messages
// or questions, whose names follow: what an earlier release has answered to one says nothing of the others.
const (
	// changeInput: a notBefore that was over at the start, and the requestor of the maintenances that plans share, are refused.
	// Before, the maintenance began at once, and the requestor was anybody's.
	changeInput = "validate-input"
	// changeMessages: consent and reschedule are known. Before, they were refused.
	changeMessages = "message-"
	// changeJudge: join, escalate, extend and skip-hook are judged by the policy, and skip-pod finds the pod. Before, they took effect at
	// once.
	changeJudge = "judge-"
	// changeAnswer: an update that is judged is answered after that. Before, it was answered at once.
	changeAnswer = "answer-once-judged"
	// changeConfirm: the scheduler is asked before a refused slot ends the maintenance, and the node is read before its deletion does;
	// a guard that finds the slot lost has it requested again. Before, anyone who could send a signal was believed, and a lost slot was
	// noted.
	changeConfirm = "confirm-"
	// changeCheckReleases: a maintenance that is not to be done again calls no hooks. Before, it was found out when the node was held.
	changeCheckReleases = "check-releases"
)

func changed(ctx workflow.Context, change string) bool {
	return workflow.GetVersion(ctx, change, workflow.DefaultVersion, 1) != workflow.DefaultVersion
}
