package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows/call"
)

// queryChunk bounds the runs asked in one activity, whose answers have to fit into one payload.
const queryChunk = 200

const notRebuilt = "it could not be found out who holds a slot"

// rebuilding is what a scheduler does before it grants anything, where it does not know who holds and who waits for a slot: when it
// begins, when it was reset, and when it meets a mark that it does not know.
type rebuilding struct {
	*scheduler
	// answered are the runs that have said themselves what they hold or want.
	answered map[string]bool
}

// run asks the scheduler that ran before, the marks on nodes, and the workflows that run.
func (s rebuilding) run() error {
	required := s.rebuildsRequired
	s.intake.before = len(s.intake.waiting)
	if err := s.takeOver(); err != nil {
		return err
	}
	s.PreviousRun = "" // what it knew is in this run's state now
	inventory, err := s.takeInventory()
	if err != nil {
		return err
	}
	if err := s.queryMarked(inventory); err != nil {
		return err
	}
	if s.rebuildsRequired != required {
		// What was found out may be from before a reset.
		clear(s.answered)
		return s.run()
	}
	before := slices.Clone(s.Strays)
	s.Strays = slices.DeleteFunc(s.Strays, isUnknown)
	s.addMarked(inventory)
	s.freezeIfRestored(inventory, before)
	s.addStrays(inventory)
	s.Rebuilt = true
	if len(s.Holders)+len(s.Pending) > 0 {
		s.decisions.record("", fmt.Sprintf("rebuilt: %d hold a slot, %d wait for one", len(s.Holders), len(s.Pending)), "it had to be found out anew")
	}
	s.reclaimEnded(inventory)
	s.intake.acceptWaiting(s.answered)
	// A freeze of which nothing is known any more must not hold anybody for ever.
	s.controls.freezesChange(s.now())
	s.holdOrResume()
	return nil
}

// takeOver restores what the run before decided: its limits and freezes must not be lost with it, nor a grant that has no mark on its node
// yet.
func (s rebuilding) takeOver() error {
	if s.PreviousRun == "" {
		return nil
	}
	for offset := 0; ; {
		answers, err := s.query(execution.QueryInput{
			Executions: []execution.Run{{WorkflowID: api.SchedulerID(s.cluster), RunID: s.PreviousRun}},
			Query:      api.QueryState, Args: json.RawMessage(asJSON(api.StateRequest{Offset: offset, Limit: queryChunk})),
		})
		if err != nil {
			return fmt.Errorf("asking the scheduler that ran before: %w", err)
		}
		if len(answers) == 1 && answers[0].Unanswered != "" {
			s.freezeUnanswered(answers[0].Unanswered)
			return nil
		}
		var before api.State
		if lost := len(answers) != 1 || answers[0].Gone || json.Unmarshal(answers[0].Answer, &before) != nil; lost {
			s.decisions.record("", "the state of the scheduler that ran before is lost", "limits and freezes are those of the configuration")
			return nil
		}
		if before.Rebuilding && before.PreviousRun != "" {
			// It ended before it had taken over what the run before it knew.
			s.PreviousRun = before.PreviousRun
			continue
		}
		if offset == 0 {
			s.Limits, s.Revision, s.Freezes, s.Decisions = before.Limits, before.Revision, before.Freezes, before.Decisions
			s.Limits.Limits = before.Limits.Limits.WithDefaults()
			for _, h := range before.Holders {
				s.dropKind(&h.Remediation, &h.Kind)
				if err := h.Validate(s.cluster); err != nil {
					s.decisions.record("", "ignored a holder that the scheduler before this one knew", err.Error())
				} else if !s.slots.knows(h.RequestID) {
					s.slots.hold(h)
				}
			}
		}
		for _, p := range before.Pending {
			s.request(p.SlotRequest)
		}
		if offset = before.NextOffset; offset == 0 {
			return nil
		}
	}
}

// freezeUnanswered stops all grants where an earlier scheduler exists but cannot say what its operators decided: to grant against a
// freeze or over a limit that they set would be worse than to wait for them.
func (s rebuilding) freezeUnanswered(why string) {
	s.decisions.record("", "the scheduler that ran before does not answer: no grants until somebody has looked", why)
	s.Freezes = append(s.Freezes, schedule.Freeze{
		By: s.PreviousRun, At: s.now(),
		Reason: "limits and freezes of the scheduler before this one cannot be read (" + why + "): check them (drydock limits), then drydock thaw --all",
	})
}

// takeInventory asks all that run and may hold a slot, and returns the first inventory, which has the marks.
func (s rebuilding) takeInventory() (first execution.Inventory, err error) {
	in := execution.InventoryInput{
		WorkflowType: api.NodeMaintenanceType, OtherTypes: []string{api.NodeRemediationType, api.ProfileTransitionType},
		TaskQueue: workflow.GetInfo(s.ctx).TaskQueueName,
	}
	ctx := call.Long(s.ctx, "find holders and running maintenances")
	for {
		var inventory execution.Inventory
		if err := workflow.ExecuteActivity(ctx, call.Executions.TakeInventory, in).Get(ctx, &inventory); err != nil {
			return first, fmt.Errorf("finding the holders: %w", err)
		}
		if len(in.From) == 0 {
			first = inventory
		}
		if err := s.queryRunning(inventory.Running); err != nil {
			return first, err
		}
		if in.From = inventory.More; len(in.From) == 0 {
			return first, nil
		}
	}
}

// queryRunning adds the workflows that say of themselves that they hold or want a slot, and drops holders that do not run.
func (s rebuilding) queryRunning(runs []execution.Run) error {
	for chunk := range slices.Chunk(runs, queryChunk) {
		answers, err := s.query(execution.QueryInput{Executions: chunk, Query: api.QuerySlot})
		if err != nil {
			return fmt.Errorf("asking those that run: %w", err)
		}
		for i, answer := range answers {
			if answer.Unanswered != "" {
				if err := s.addUnanswered(chunk[i], answer); err != nil {
					return err
				}
			}
			var wanted api.SlotWanted
			if len(answer.Answer) > 0 && json.Unmarshal(answer.Answer, &wanted) == nil {
				s.addRunning(chunk[i], wanted)
			}
		}
	}
	return nil
}

// addUnanswered notes a workflow that does not answer. A maintenance keeps the slot that its mark says it has, and holds up nobody else's.
// Workflows that mark no node are assumed to hold a slot until they answer; which slot, their run says, without which nothing is granted.
func (s rebuilding) addUnanswered(run execution.Run, answer execution.Answered) error {
	s.decisions.record("", "workflow "+run.WorkflowID+" does not answer", answer.Unanswered)
	h := api.Holder{RunID: answer.FirstRunID, GrantedAt: s.now(), Assumed: true}
	h.RequestID = answer.FirstRunID + "/1"
	if _, check, node, err := api.ParseRemediationID(run.WorkflowID); err == nil {
		h.Node, h.Requestor, h.Kind = node, api.RemediationRequestor(check), schedule.KindControlPlane
	} else if _, profile, node, err := api.ParseProfileTransitionID(run.WorkflowID); err == nil {
		h.Node, h.Requestor, h.Kind = node, api.ProfileRequestorPrefix+profile, schedule.KindProfile
	}
	if h.IsMarked() || !s.isUpgraded(silentHolders) {
		return nil
	}
	if err := h.Validate(s.cluster); err != nil {
		return fmt.Errorf("it is not known whether workflow %s holds a slot, which does not answer: %w", run.WorkflowID, err)
	}
	if !s.slots.holds(h.RequestID) {
		s.slots.free(h.RequestID, s.now()) // that it waits may be out of date
		s.slots.hold(h)
	}
	s.releases.verify(h.RequestID, nil) // it is asked again until it answers
	return nil
}

// queryMarked asks the maintenances that marks name and that visibility does not know yet.
func (s rebuilding) queryMarked(inventory execution.Inventory) error {
	var runs []execution.Run
	for _, marked := range inventory.Marked {
		if _, err := s.holderOf(marked); err == nil && !s.answered[marked.RunID] {
			runs = append(runs, execution.Run{WorkflowID: marked.WorkflowID})
		}
	}
	return s.queryRunning(runs)
}

// addRunning takes what a workflow says, which is the truth as long as it speaks for itself.
func (s rebuilding) addRunning(run execution.Run, w api.SlotWanted) {
	if w.Ended {
		return
	}
	if api.RunID(w.RunID) != nil {
		s.decisions.record("", "workflow "+run.WorkflowID+" does not say who it is", w.RunID)
		return
	}
	if !w.Wants {
		s.answered[w.RunID] = true
		s.supersede(w.RunID, "") // it has given back what it had
		return
	}
	err := w.SlotRequest.Validate(s.cluster, s.now())
	if err == nil && run.WorkflowID != w.WorkflowID(s.cluster) {
		err = errors.New("it speaks for another")
	}
	if err != nil {
		s.decisions.record("", "ignored what workflow "+run.WorkflowID+" says of its slot", err.Error())
		return
	}
	s.answered[w.RunID] = true
	known := s.slots.find(w.ID)
	if known != nil && known.Assumed {
		// What was assumed is known now: a slot for which it still has to wait is none.
		s.slots.drop(w.ID)
		s.watcher.forget(w.ID)
		known = nil
	}
	switch {
	case known != nil:
		known.Remediation, known.Kind = w.Remediation, w.Kind // neither 0.1.0 nor the mark says it, nor the gang
		s.dropKind(&known.Remediation, &known.Kind)
		if w.Gang != nil {
			known.Gang = w.Gang.Name
		}
		if w.GrantedAt == nil {
			s.outbox.sendGrant(*known) // the scheduler that granted it may have ended before it could say so
		}
	case w.GrantedAt == nil:
		s.supersede(w.RunID, w.ID)
		s.request(w.SlotRequest)
	default:
		s.supersede(w.RunID, "")
		h := holderOf(w.SlotRequest)
		s.dropKind(&h.Remediation, &h.Kind)
		h.GrantedAt = *w.GrantedAt
		s.slots.hold(h)
	}
}

func (s rebuilding) request(r api.SlotRequest) {
	if isLater(r.Request) && !s.isUpgraded(laterRequests) {
		r.Request = as010(r.Request)
	}
	s.intake.request(r)
}

// supersede frees all that a run had requested but one request.
func (s rebuilding) supersede(runID, but string) {
	for _, id := range s.slots.requestsOf(runID) {
		if id != but {
			s.free(id)
		}
	}
}

// addMarked adds the holders that only their mark on a node shows, because visibility lags. A maintenance that says that it holds nothing
// does not: its mark is left to people.
func (s rebuilding) addMarked(inventory execution.Inventory) {
	for _, marked := range inventory.Marked {
		h, err := s.holderOf(marked)
		switch {
		case err != nil:
			s.decisions.record("", "ignored the mark on "+marked.Node, err.Error())
		case s.slots.expects(h.Node, h.RunID):
		case s.answered[h.RunID]:
			s.strays.remember(api.StrayMark{
				Node: h.Node, Kind: api.StrayUnknown, WorkflowID: marked.WorkflowID, RunID: h.RunID, Requestor: h.Requestor, Since: marked.Since,
			})
		default:
			s.slots.hold(h)
		}
	}
}

func (s rebuilding) addStrays(inventory execution.Inventory) {
	var foreign []api.StrayMark
	for _, mark := range inventory.Strays {
		if !isUnknown(mark) {
			foreign = append(foreign, mark)
		} else if !s.slots.expects(mark.Node, mark.RunID) {
			s.strays.remember(mark)
		}
	}
	unknown := len(inventory.Strays) - len(foreign)
	s.strays.setForeign(foreign, inventory.StraysAll-unknown)
}

func (s rebuilding) reclaimEnded(inventory execution.Inventory) {
	for _, orphan := range inventory.Ended {
		h, err := s.holderOf(orphan)
		if err != nil || s.strays.knows(orphan.Node, orphan.RunID) {
			continue
		}
		if known, holds := s.slots.holderOfRun(h.Node, h.RunID); holds {
			h = known
		} else {
			s.slots.hold(h)
		}
		s.reclaimer.reclaim(h, "its workflow does not run")
	}
}

// holderOf makes a holder of a mark. The mark does not name the request, but the first of a run is the likely one.
func (s rebuilding) holderOf(m execution.MarkedHolder) (api.Holder, error) {
	h := api.Holder{
		Grant: schedule.Grant{RequestID: m.RunID + "/1", Node: m.Node, Requestor: m.Requestor},
		RunID: m.RunID, GrantedAt: m.Since,
	}
	err := h.Validate(s.cluster)
	if err == nil && m.WorkflowID != api.MaintenanceID(s.cluster, m.Node, m.Requestor) {
		err = fmt.Errorf("workflow %s is not that of a maintenance of the node by %s", m.WorkflowID, m.Requestor)
	}
	return h, err
}

func (s rebuilding) query(in execution.QueryInput) (answers []execution.Answered, err error) {
	ctx := call.Long(s.ctx, fmt.Sprintf("query %s of %d workflows", in.Query, len(in.Executions)))
	err = workflow.ExecuteActivity(ctx, call.Executions.Query, in).Get(ctx, &answers)
	return answers, err
}
