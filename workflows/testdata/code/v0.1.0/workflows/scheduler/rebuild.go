package scheduler

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/execution"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/schedule"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"encoding/json"
	"errors"
	"fmt"
	"go.temporal.io/sdk/workflow"
	"slices"
)

// queryChunk bounds the runs asked in one activity, whose answers have to fit into one payload.
const queryChunk = 200

// notRebuilt is what is said where a rebuild fails.
const notRebuilt = "it could not be found out who holds a slot"

// rebuilding is what a scheduler does before it grants anything, where it does not know who holds and who waits for a slot:
// when it begins, when it was reset, and when it meets a mark that it does not know.
type rebuilding struct {
	*scheduler
	// spoken are the runs that have said themselves what they hold or want.
	spoken map[string]bool
}

// run finds out who holds and who waits, before anything is granted: from the state of the scheduler
// that ran before, from the marks on nodes, and from the maintenances that run.
func (s rebuilding) run() error {
	doubts := s.doubts
	s.intake.asking()
	if err := s.takeOver(); err != nil {
		return err
	}
	s.previousRun = "" // what it knew is in this run's state now
	inventory, err := s.takeInventory()
	if err != nil {
		return err
	}
	if err := s.askMarked(inventory); err != nil {
		return err
	}
	if s.doubts != doubts {
		// What was found out may be from before a reset.
		clear(s.spoken)
		return s.run()
	}
	s.strays.doubtUnknown()
	s.addMarked(inventory)
	s.addStrays(inventory)
	s.rebuilt = true
	if len(s.ledger.holders)+len(s.ledger.pending) > 0 {
		s.decisions.record("", fmt.Sprintf("rebuilt: %d hold a slot, %d wait for one", len(s.ledger.holders), len(s.ledger.pending)), "it had to be found out anew")
	}
	s.addEnded(inventory)
	s.intake.admit(s.spoken)
	// A freeze of which nothing is known any more must not hold anybody for ever.
	s.controls.freezesChange(s.now())
	s.holdOrResume()
	return nil
}

// addStrays remembers the marks that are nobody's slot.
func (s rebuilding) addStrays(inventory execution.Inventory) {
	var foreign []api.StrayMark
	unknown := 0
	for _, mark := range inventory.Strays {
		switch {
		case mark.Kind != api.StrayUnknown:
			foreign = append(foreign, mark)
		case !s.ledger.expects(mark.Node, mark.RunID):
			unknown++
			s.strays.remember(mark)
		default:
			unknown++
		}
	}
	s.strays.sawForeign(foreign, inventory.StraysAll-unknown)
}

// addEnded takes back what those hold that do not run any more.
func (s rebuilding) addEnded(inventory execution.Inventory) {
	for _, orphan := range inventory.Ended {
		h, err := s.holderOf(orphan)
		if err != nil || s.strays.knows(orphan.Node, orphan.RunID) {
			continue
		}
		if known, ok := s.ledger.holderOfRun(h.Node, h.RunID); ok {
			h = known
		} else {
			s.ledger.hold(h)
		}
		s.reclaimer.reclaim(h, "its workflow does not run")
	}
}

// takeInventory asks all maintenances that run, and returns the first inventory, which has the marks.
func (s rebuilding) takeInventory() (first execution.Inventory, err error) {
	in := execution.InventoryInput{WorkflowType: api.NodeMaintenanceType, TaskQueue: workflow.GetInfo(s.ctx).TaskQueueName}
	ctx := call.Long(s.ctx, "find holders and running maintenances")
	for {
		var inventory execution.Inventory
		if err := workflow.ExecuteActivity(ctx, call.Executions.TakeInventory, in).Get(ctx, &inventory); err != nil {
			return first, fmt.Errorf("finding the holders: %w", err)
		}
		if len(in.From) == 0 {
			first = inventory
		}
		if err := s.askRunning(inventory.Running); err != nil {
			return first, err
		}
		if in.From = inventory.More; len(in.From) == 0 {
			return first, nil
		}
	}
}

// askRunning adds the maintenances that say of themselves that they hold or want a slot, and drops holders that do
// not run.
func (s rebuilding) askRunning(asked []execution.Run) error {
	for chunk := range slices.Chunk(asked, queryChunk) {
		answers, err := s.query(execution.QueryInput{Executions: chunk, Query: api.QuerySlot})
		if err != nil {
			return fmt.Errorf("asking running maintenances: %w", err)
		}
		for i, answer := range answers {
			if answer.Unanswered != "" {
				// One that cannot tell keeps the slot that its mark says it has, and holds up nobody else's.
				s.decisions.record("", "maintenance "+chunk[i].WorkflowID+" does not answer", answer.Unanswered)
			}
			var wanted api.SlotWanted
			if len(answer.Answer) > 0 && json.Unmarshal(answer.Answer, &wanted) == nil {
				s.addRunning(chunk[i], wanted)
			}
		}
	}
	return nil
}

// askMarked asks those that marks tell of and that visibility does not know yet.
func (s rebuilding) askMarked(inventory execution.Inventory) error {
	var unasked []execution.Run
	for _, marked := range inventory.Marked {
		if _, err := s.holderOf(marked); err == nil && !s.spoken[marked.RunID] {
			unasked = append(unasked, execution.Run{WorkflowID: marked.WorkflowID})
		}
	}
	return s.askRunning(unasked)
}

// addRunning takes a maintenance's own word, which is the truth, as long as it speaks for itself.
func (s rebuilding) addRunning(run execution.Run, w api.SlotWanted) {
	if w.Ended {
		return
	}
	if api.RunID(w.RunID) != nil {
		s.decisions.record("", "maintenance "+run.WorkflowID+" does not say who it is", w.RunID)
		return
	}
	if !w.Wants {
		s.spoken[w.RunID] = true
		s.intake.supersede(w.RunID) // it has given back what it had
		return
	}
	err := w.SlotRequest.Validate(s.cluster, s.now())
	if err == nil && run.WorkflowID != api.MaintenanceID(s.cluster, w.Node, w.Requestor) {
		err = errors.New("it speaks for another")
	}
	if err != nil {
		s.decisions.record("", "ignored what maintenance "+run.WorkflowID+" says of its slot", err.Error())
		return
	}
	s.spoken[w.RunID] = true
	if h, known := s.ledger.holder(w.ID); known {
		if w.GrantedAt == nil {
			// The scheduler that granted it may have ended before it could say so.
			s.outbox.granted(h)
		}
		return
	}
	if w.GrantedAt == nil {
		s.supersedeOthers(w.SlotRequest)
		s.intake.request(w.SlotRequest)
		return
	}
	s.intake.supersede(w.RunID)
	s.ledger.hold(api.Holder{
		Grant: schedule.Grant{RequestID: w.ID, Node: w.Node, Requestor: w.Requestor}, RunID: w.RunID, GrantedAt: *w.GrantedAt,
	})
}

// supersedeOthers frees all that a run had asked for but this: it says so itself, whatever came in which order.
func (s rebuilding) supersedeOthers(r api.SlotRequest) {
	for _, id := range s.ledger.requestsOf(r.RunID) {
		if id != r.ID {
			s.free(id)
		}
	}
}

// addMarked adds those that only their mark on a node tells of, because visibility lags. One that has said that it holds
// nothing is believed, and its mark left to whoever looks for the reason.
func (s rebuilding) addMarked(inventory execution.Inventory) {
	for _, marked := range inventory.Marked {
		h, err := s.holderOf(marked)
		switch {
		case err != nil:
			s.decisions.record("", "ignored the mark on "+marked.Node, err.Error())
		case s.ledger.expects(h.Node, h.RunID):
		case s.spoken[h.RunID]:
			s.strays.remember(api.StrayMark{
				Node: h.Node, Kind: api.StrayUnknown, WorkflowID: marked.WorkflowID, RunID: h.RunID, Requestor: h.Requestor, Since: marked.Since,
			})
		default:
			s.ledger.hold(h)
		}
	}
}

// holderOf makes a holder of a mark. The mark does not tell the request, but the first of a run is the likely one.
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

func (s rebuilding) query(in execution.QueryInput) ([]execution.Answered, error) {
	var answers []execution.Answered
	ctx := call.Long(s.ctx, fmt.Sprintf("query %s of %d workflows", in.Query, len(in.Executions)))
	err := workflow.ExecuteActivity(ctx, call.Executions.Query, in).Get(ctx, &answers)
	return answers, err
}
