package scheduler

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"drydock/activities/execution"
	"drydock/api"
	"drydock/rules/schedule"
	"drydock/workflows/call"
)

// queryChunk bounds the runs asked in one activity, whose answers have to fit into one payload.
const queryChunk = 200

// rebuilding is what a scheduler does once, before it knows who holds and who waits for a slot.
type rebuilding struct{ *scheduler }

// run finds out who holds and who waits, before anything is granted: from the state of the scheduler
// that ran before, from the marks on nodes, and from the maintenances that run.
func (s rebuilding) run() error {
	if err := s.takeOver(); err != nil {
		return err
	}
	inventory, err := s.takeInventory()
	if err != nil {
		return err
	}
	s.addMarked(inventory)
	s.rebuilt, s.previousRun = true, ""
	if len(s.ledger.holders)+len(s.ledger.pending) > 0 {
		s.decisions.record("", fmt.Sprintf("rebuilt: %d hold a slot, %d wait for one", len(s.ledger.holders), len(s.ledger.pending)), "the scheduler was started anew")
	}
	for _, orphan := range inventory.Ended {
		h := holderOf(orphan)
		s.ledger.hold(h)
		s.reclaimer.reclaim(h, "its workflow does not run")
	}
	// A freeze of which nothing is known any more must not hold anybody for ever.
	s.holdOrResume()
	return nil
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
		if err := s.askRunning(inventory); err != nil {
			return first, err
		}
		if in.From = inventory.More; len(in.From) == 0 {
			return first, nil
		}
	}
}

// askRunning adds the maintenances that say of themselves that they hold or want a slot, and drops holders that do
// not run.
func (s rebuilding) askRunning(inventory execution.Inventory) error {
	asked := inventory.Running
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
				s.addRunning(wanted)
			}
		}
	}
	return nil
}

func (s rebuilding) addRunning(w api.SlotWanted) {
	if w.Ended {
		return
	}
	if !w.Wants {
		s.supersede(w.RunID) // it has given back what it had
		return
	}
	if h, known := s.ledger.holder(w.ID); known {
		if w.GrantedAt == nil {
			// The scheduler that granted it may have ended before it could say so.
			s.outbox.granted(h)
		}
		return
	}
	if w.GrantedAt == nil {
		s.request(w.SlotRequest)
		return
	}
	s.supersede(w.RunID)
	s.ledger.hold(api.Holder{
		Grant: schedule.Grant{RequestID: w.ID, Node: w.Node, Requestor: w.Requestor}, RunID: w.RunID, GrantedAt: *w.GrantedAt,
	})
}

// addMarked adds those that only their mark on a node tells of, because visibility lags.
func (s rebuilding) addMarked(inventory execution.Inventory) {
	for _, marked := range inventory.Marked {
		if !slices.ContainsFunc(s.ledger.holders, func(h api.Holder) bool { return h.Node == marked.Node && h.RunID == marked.RunID }) {
			s.ledger.hold(holderOf(marked))
		}
	}
}

// holderOf makes a holder of a mark. The mark does not tell the request, but the first of a run is the likely one.
func holderOf(m execution.MarkedHolder) api.Holder {
	return api.Holder{
		Grant: schedule.Grant{RequestID: m.RunID + "/1", Node: m.Node, Requestor: m.Requestor},
		RunID: m.RunID, GrantedAt: m.Since,
	}
}

func (s rebuilding) query(in execution.QueryInput) ([]execution.Answered, error) {
	var answers []execution.Answered
	ctx := call.Long(s.ctx, fmt.Sprintf("query %s of %d workflows", in.Query, len(in.Executions)))
	err := workflow.ExecuteActivity(ctx, call.Executions.Query, in).Get(ctx, &answers)
	return answers, err
}
