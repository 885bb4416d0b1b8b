package tell

import (
	"slices"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/starter/invocation"
)

// noun is a part of a maintenance that has commands of its own.
type noun struct{ name, short, long string }

var nouns = []noun{
	{"work", "Record what the work on a Ready node comes to", `Record what the work on a Ready node comes to. "drydock done" and "drydock fail" end it.`},
	{"drain", "Help a drain that does not end", `Help a drain that does not end. To drain a node: "drydock start NODE", which cordons it, drains it and holds it.

"drydock escalate" takes the next rung of the drain's escalation, and "drydock consent" lets it lose pods or data.`},
	{"validation", "Say whether a node may return to production", `Say whether a node may return to production, where its validation waits for somebody or has failed.`},
	{"hook", "End a hook that a maintenance waits for", `End a hook that a maintenance waits for, or go on without it.`},
}

// asksFirst is the help of the commands that do not end what is somebody else's by a slip.
const asksFirst = `If the maintenance is neither for you nor started by you, it asks first; --yes answers yes, and is
needed where nobody is there to give one.`

// What to do where a message is refused.
const (
	waitForIt = `Wait for it with "PROGRAM watch NODE".`
	seeStatus = `"PROGRAM status NODE" says what it waits for.`
)

// rows are the commands, in the order in which the help lists them.
func rows() []row {
	return slices.Concat(workRows(), holdRows(), drainRows(), decisionRows(), recordRows())
}

func workRows() []row {
	return []row{{
		use: "done NODE", form: done{}, next: waitForIt, ends: api.MsgDone, shared: true, awaits: api.Completed,
		whose: "who is done (env " + invocation.EnvRequestor + ", default you, or the only one)",
		short: "Mark the work on a node done, so that it is put back",
		long: `Say that the work on a node is done.

The node has to be Ready, or RequestorFailed after its repair. If several requestors share the maintenance, the
node is put back when all of them are done. Without --wait the command returns when the maintenance has taken note;
with --wait it waits for the end of the maintenance, when the node is back in service, and fails if it is not.

With --requestor plans it puts one node back before the plans of strategy all-at-once that share its maintenance are
completed: they go on without it.

` + asksFirst,
		example: `  drydock done worker-01
  drydock done worker-01 --wait --timeout 10m
  drydock done worker-01 --requestor network-team`,
	}, {
		use: "fail NODE", message: api.MsgFailed, form: failed{}, next: `To undo the maintenance: "PROGRAM cancel NODE".`, ends: "fail", shared: true,
		short: "Mark the work on a node failed, so that it stays out of service",
		long: `Say that the work on a node has failed.

A Ready node becomes RequestorFailed: it stays cordoned and keeps its slot until somebody decides. Then "drydock retry"
makes it Ready for another try, "drydock done" puts it back, and "drydock cancel --release" gives it back as it is.

` + asksFirst,
		example: `  drydock fail worker-01 --comment "firmware update stopped at 40%"`,
	}, {
		use: "retry NODE", form: simple{},
		short: "Make a node whose work has failed Ready again, or validate it again",
		long: `Make a RequestorFailed node Ready again, with a new ready timeout. Nothing changes on the node, which stayed out of
service. When the other try has worked, say "drydock done".

A node whose validation has failed is validated again; where a hook before the release failed, the hooks are called again.`,
		example: `  drydock retry worker-01 --comment "cable replaced"`,
	}}
}

// holdRows are about who holds the node, and for how long.
func holdRows() []row {
	return []row{{
		use: "cancel NODE", form: &cancel{}, next: `"PROGRAM cancel NODE --release" gives the node back as it is.`,
		ends: "cancel --release", asks: true, awaits: api.Cancelled,
		short: "Cancel a maintenance, and undo it while the node is not Ready yet",
		long: `Cancel a maintenance.

Before the node is Ready everything is undone and the maintenance ends Cancelled. A Ready node may be half worked on: it
becomes RequestorFailed and stays out of service with its slot until somebody decides. With --release a node that was
Ready is given back as it is, and the maintenance ends Cancelled. With --wait the command waits for the end.

It asks before a Ready node becomes RequestorFailed, and with --release where the maintenance is neither for you nor
started by you. --yes answers yes, and is needed where nobody is there to give one.`,
		example: `  drydock cancel worker-01 --comment "change postponed"
  drydock cancel worker-01 --release --wait`,
	}, {
		use: "extend NODE", form: &extend{},
		short: "Hold a Ready node for longer",
		long: `Move the end of a Ready node's ready timeout to --for from now, if that is later than it is.

Without --for it is the maintenance's own ready timeout, counted from now.`,
		example: `  drydock extend worker-01 --for 2h --comment "BIOS takes longer"`,
	}, {
		noun: "work", use: "begin NODE", message: api.MsgStarted, form: started{}, next: waitForIt,
		short: "Record that the work on a Ready node has begun",
		long: `Record that the work on a Ready node has begun. It changes nothing but the record, where auditors look for it;
exec and rollout send it by themselves.`,
		example: `  drydock work begin worker-01`,
	}, {
		noun: "drain", use: "done NODE", message: api.MsgDrained, form: simple{}, next: waitForIt,
		short: "Declare a node with drain mode external empty",
		long: `Say that a node is empty, where somebody else than Drydock drains it: a maintenance with --drain-mode external waits
for this and then becomes Ready.`,
		example: `  drydock drain done worker-01`,
	}, {
		use: "join NODE", form: &membership{}, next: `Start one of your own: "PROGRAM start NODE".`,
		whose: "who joins (env " + invocation.EnvRequestor + ", default you)",
		short: "Share somebody else's maintenance of a node",
		long: `Share a maintenance that runs: the node is put back only when you too have said "drydock done".

One drain serves both, where two maintenances of one node would run one after the other.`,
		example: `  drydock join worker-01 --comment "swapping the NIC while it is down"
  drydock join worker-01 --requestor network-team --of ops`,
	}, {
		use: "leave NODE", form: &membership{}, next: `To end it: "PROGRAM done NODE", or cancel.`,
		whose: "who leaves (env " + invocation.EnvRequestor + ", default you)",
		short: "Stop sharing somebody else's maintenance of a node",
		long: `No longer share a maintenance that you joined: it does not wait for you any more.

Leaving is for those who have done nothing to the node; who has, says "drydock done".`,
		example: `  drydock leave worker-01
  drydock leave worker-01 --requestor network-team --of ops`,
	}}
}

func drainRows() []row {
	return []row{{
		use: "escalate NODE --comment WHY", form: &escalate{}, asks: true, why: "missing --comment: it is recorded with the rung",
		next:  `Name a rung with --do: notify, bypassBudget, kill, giveBack, fail. "PROGRAM status NODE" says what it waits for.`,
		short: "Take the next rung of a drain's escalation now, or another one",
		long: `Take the next rung of the escalation of a Draining node now, without waiting for its time, or the rung that --do
names, which need not be in the maintenance's plan. "drydock status" shows which rungs were taken and which one is next.

  notify        say on the node that it does not empty
  bypassBudget  delete the pods that disruption budgets protect
  kill          delete pods without their grace period, whatever their budgets say
  giveBack      put the node back into service and try again later
  fail          end the maintenance as Failed

No rung consents to the loss of pods without a controller or of emptyDir data: that is "drydock consent", or
"drydock drain skip" for a pod that is to stay.

All but notify are asked about first; --yes answers yes, and is needed where nobody is there to give one.`,
		example: `  drydock escalate worker-01 --comment "change window ends at 18:00"
  drydock escalate worker-01 --do bypassBudget --comment "team db agrees, INC-4711"
  drydock escalate worker-01 --do kill --yes --comment "the node is on fire"`,
	}, {
		noun: "drain", use: "skip NODE POD", message: api.MsgSkipPod, form: skipPod{}, next: seeStatus,
		short: "Leave a pod on a Draining node: neither evict it nor wait for it",
		long: `Leave a pod on a Draining node. The drain neither evicts it nor waits for it, so that the node becomes Ready with the
pod still on it: whatever is then done to the node is done to the pod too. It cannot be taken back.

POD is NAMESPACE/NAME. The name alone is enough for a pod that "drydock status" lists as a blocker.`,
		example: `  drydock drain skip worker-01 batch/crawler-0 --comment "may be lost, says team search"
  drydock drain skip worker-01 crawler-0`,
	}, {
		use: "consent NODE (--force | --delete-emptydir-data) --comment WHY", form: &consent{}, asks: true,
		why: "missing --comment: it is recorded with the consent", next: seeStatus,
		short: "Let a drain under way lose pods or data that it was not allowed to",
		long: `Let the drain of a Draining node lose what "drydock start" was not told that it may: pods that no controller re-creates
(--force), the data in emptyDir volumes (--delete-emptydir-data), or both. "drydock status" shows which consent a blocked
pod lacks.

It holds for the pods of --pod, or for all pods of the node. Budgets are obeyed all the same. It is asked about first;
--yes answers yes. It cannot be taken back.`,
		example: `  drydock consent worker-01 --pod batch/crawler-0 --force --comment "may be lost, says team search"
  drydock consent worker-01 --delete-emptydir-data --comment "caches only, INC-4711" --yes`,
	}, {
		noun: "drain", use: "retry NODE", message: api.MsgRetryNow, form: simple{}, next: seeStatus,
		short: "End a pause: retry evictions, or ask for the next slot, now",
		long: `End the pause that a maintenance is in. Of a Draining node, evictions that were refused are tried again at once. A node
that was given back, because it did not empty, asks for its next slot at once.

It is about Drydock's own attempts. For another try at your work on a RequestorFailed node say "drydock retry NODE".`,
		example: `  drydock drain retry worker-01 --comment "the budget is mended"`,
	}}
}

// decisionRows are about whether and when a maintenance begins.
func decisionRows() []row {
	return []row{{
		use: "approve NODE", form: simple{},
		short: "Approve a maintenance that waits for approval",
		long: `Approve a maintenance that was asked for with approval. Only then does it ask for a slot; until then nothing has been
done to its node.`,
		example: `  drydock approve worker-01 --comment "window agreed with team search"`,
	}, {
		use: "deny NODE", form: simple{},
		short:   "Deny a maintenance that waits for approval, which ends it",
		long:    `Deny a maintenance that was asked for with approval. It ends Cancelled, and nothing has been done to its node.`,
		example: `  drydock deny worker-01 --comment "not during the sale"`,
	}, {
		use: "reschedule NODE --not-before TIME", form: &reschedule{},
		short: "Move the time before which a maintenance does not begin",
		long: `Move the time before which a maintenance does not begin, for as long as it waits for its time or for approval. Who was
told the old time is told the new one. With --not-before 0s it begins at once.`,
		example: `  drydock reschedule worker-01 --not-before 2026-03-01T22:00:00Z --comment "the window moved"
  drydock reschedule worker-01 --not-before 48h`,
	}}
}

// recordRows are words about validations and hooks, and notes.
func recordRows() []row {
	return []row{{
		noun: "validation", use: "pass NODE --comment WHY", message: api.MsgValidated, form: simple{}, why: "say with --comment why the node is good: it is recorded",
		next: seeStatus, ends: "validation pass",
		short: "Declare a node validated: it may return to production",
		long: `Say that a node is good: for a maintenance whose validation waits for somebody's word, and for one whose validation
has failed, which is overruled by it. Who said so and why is on record.

` + asksFirst,
		example: `  drydock validation pass worker-01 --comment "burn-in passed, run 8812"`,
	}, {
		noun: "validation", use: "fail NODE", message: api.MsgValidationFailed, form: simple{}, next: seeStatus,
		short: "Declare a node's validation failed: it stays out of service",
		long: `Say that a node is not good, for a maintenance whose validation waits for somebody's word. The node stays out of
service with its slot until somebody says "drydock retry", "drydock validation pass" or "drydock cancel --release".`,
		example: `  drydock validation fail worker-01 --comment "GPU 3 throttles"`,
	}, {
		noun: "hook", use: "done NODE HOOK", message: api.MsgHookDone, form: &hookDone{}, next: seeStatus,
		short: "Mark a hook that waits for a signal done, or failed",
		long: `Say that a hook of kind signal, which a maintenance waits for, is done or has failed. Whether the maintenance goes on
after one that failed is a matter of the worker's configuration (hooks.NAME.onFailure).

Work of kind signal is told the same, by its name: done brings the node back, --failed makes it RequestorFailed.`,
		example: `  drydock hook done worker-01 storage-moved
  drydock hook done worker-01 storage-moved --failed --comment "rebuild runs"`,
	}, {
		noun: "hook", use: "skip NODE HOOK", message: api.MsgSkipHook, form: &hook{}, next: seeStatus,
		short: "Go on without a hook that a maintenance waits for",
		long: `Go on without a hook that a maintenance waits for. What it has begun is not undone, and its closing is called all the
same. Who skipped it and why is on record.`,
		example: `  drydock hook skip worker-01 silence-alerts --comment "Alertmanager is down, on-call knows"`,
	}, {
		use: "note NODE --comment TEXT", form: simple{}, why: "missing --comment: it is what goes on record",
		short: "Put a comment on record",
		long: `Put a comment on a maintenance's record, in any phase: what was found, which part was replaced, a ticket. The status shows
it, and the audit record keeps it with who said it and when. Nothing else changes.`,
		example: `  drydock note worker-01 --comment "DIMM B2 replaced, INC-4711"`,
	}, {
		use: "report-to NODE WORKFLOW:NAME", message: api.MsgReportTo, form: &reportTo{}, next: seeStatus,
		short: "Have a maintenance report to a workflow of yours",
		long: `Have a maintenance signal a workflow of the same namespace: now, when the node becomes Ready or RequestorFailed, when it
no longer is, and when the maintenance ends. The signal's payload has the node, the phase, and the run that answers should
name. "drydock start --signal" asks for it from the beginning.

A maintenance reports to one workflow. If that is another one, it goes on unless --replace is set.`,
		example: `  drydock report-to worker-01 firmware-rollout:node-report
  drydock report-to worker-01 firmware-rollout-2:node-report --replace`,
	}}
}
