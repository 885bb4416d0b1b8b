package maintenance

import "go.temporal.io/sdk/workflow"

// Named changes: a run whose history is older goes on in the way it began.
const (
	// changePastNotBefore: a notBefore that was over when the maintenance was started is refused. Before, it began at once.
	changePastNotBefore = "refuse-past-not-before"
	// changeFindPod: a pod is looked for before it is skipped. Before, any name was taken.
	changeFindPod = "find-skipped-pod"
	// changeFindConsented: pods are looked for before the loss of them is consented to. Before, any name was taken.
	changeFindConsented = "find-consented-pods"
	// changeConsent and changeReschedule: these messages are known. Before, they were refused.
	changeConsent    = "message-consent"
	changeReschedule = "message-reschedule"
	// changeGuardLosesSlot: a node that is marked again without a slot is released, and the slot asked for anew. Before, it
	// was noted.
	changeGuardLosesSlot = "guard-loses-slot"
	// changeReservedRequestor: the requestor of the maintenances that plans share is refused to any other. Before, it was
	// anybody's.
	changeReservedRequestor = "reserve-requestor-plans"
	// changeConfirmRefusal: the scheduler is asked before a refused slot ends the maintenance, and changeConfirmMissing: the node is
	// looked for before its deletion does. Before, anyone who could send a signal was believed.
	changeConfirmRefusal = "confirm-slot-refused"
	changeConfirmMissing = "confirm-node-missing"
	// changeJudgedAnswer: an update that is judged is answered once that is over. Before, it was answered at once.
	changeJudgedAnswer = "answer-once-judged"
	// changeJudgeJoin, changeJudgeEscalate, changeJudgeExtend and changeJudgeSkipHook: the policy judges these messages. Before,
	// they had their effect at once.
	changeJudgeJoin     = "judge-join"
	changeJudgeEscalate = "judge-escalate"
	changeJudgeExtend   = "judge-extend"
	changeJudgeSkipHook = "judge-skip-hook"
)

// changed reports whether a run goes the way of a change.
func changed(ctx workflow.Context, change string) bool {
	return workflow.GetVersion(ctx, change, workflow.DefaultVersion, 1) != workflow.DefaultVersion
}
