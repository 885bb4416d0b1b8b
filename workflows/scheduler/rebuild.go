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

// rebuild finds out who holds and who waits for a slot, before anything is granted: from the state of the scheduler
// that ran before, from the marks on nodes, and from the maintenances that run.
func (s *scheduler) rebuild() error {
	if err := s.takeOver(); err != nil {
		return err
	}
	inventory, err := s.takeInventory()
	if err != nil {
		return err
	}
	s.addMarked(inventory)
	s.Rebuilt, s.PreviousRun = true, ""
	if len(s.Holders)+len(s.Pending) > 0 {
		s.decided("", fmt.Sprintf("rebuilt: %d hold a slot, %d wait for one", len(s.Holders), len(s.Pending)), "the scheduler was started anew")
	}
	for _, orphan := range inventory.Ended {
		h := holderOf(orphan)
		s.hold(h)
		s.reclaim(h, "its workflow does not run")
	}
	// A freeze of which nothing is known any more must not hold anybody for ever.
	s.holdOrResume()
	return nil
}

// takeInventory asks all maintenances that run, and returns the first inventory, which has the marks.
func (s *scheduler) takeInventory() (first execution.Inventory, err error) {
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

// takeOver restores what the run before decided: its limits and freezes must not be lost with it, nor a grant that
// has no mark on its node yet.
func (s *scheduler) takeOver() error {
	if s.PreviousRun == "" {
		return nil
	}
	for offset := 0; ; {
		args, err := json.Marshal(api.StateRequest{Offset: offset, Limit: queryChunk})
		if err != nil {
			return err
		}
		answers, err := s.query(execution.QueryInput{
			Executions: []execution.Run{{WorkflowID: api.SchedulerID(s.cluster), RunID: s.PreviousRun}},
			Query:      api.QueryState, Args: args,
		})
		if err != nil {
			return fmt.Errorf("asking the scheduler that ran before: %w", err)
		}
		if len(answers) == 1 && answers[0].Unanswered != "" {
			s.distrust(answers[0].Unanswered)
			return nil
		}
		var before api.State
		if lost := len(answers) != 1 || answers[0].Gone || json.Unmarshal(answers[0].Answer, &before) != nil; lost {
			s.decided("", "the state of the scheduler that ran before is lost", "limits and freezes are those of the configuration")
			return nil
		}
		if before.Rebuilding && before.PreviousRun != "" {
			// It ended before it had taken over what the run before it knew.
			s.PreviousRun = before.PreviousRun
			continue
		}
		if offset == 0 {
			s.Limits, s.Freezes, s.Decisions = before.Limits, before.Freezes, before.Decisions
			s.Limits.Limits = s.Limits.Limits.WithDefaults()
			s.Revision = before.Revision
			for _, h := range before.Holders {
				s.hold(h)
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

// distrust stops all grants where an earlier scheduler exists but cannot say what its operators decided: to grant
// against a freeze or over a limit that they set would be worse than to wait for them.
func (s *scheduler) distrust(why string) {
	s.decided("", "the scheduler that ran before does not answer: no grants until somebody has looked", why)
	s.Freezes = append(s.Freezes, schedule.Freeze{
		By: s.PreviousRun, At: workflow.Now(s.ctx),
		Reason: "limits and freezes of the scheduler before this one cannot be read (" + why + "): check them (drydock limits), then drydock thaw --all",
	})
}

// askRunning adds the maintenances that say of themselves that they hold or want a slot, and drops holders that do
// not run.
func (s *scheduler) askRunning(inventory execution.Inventory) error {
	asked := inventory.Running
	for chunk := range slices.Chunk(asked, queryChunk) {
		answers, err := s.query(execution.QueryInput{Executions: chunk, Query: api.QuerySlot})
		if err != nil {
			return fmt.Errorf("asking running maintenances: %w", err)
		}
		for i, answer := range answers {
			if answer.Unanswered != "" {
				// One that cannot tell keeps the slot that its mark says it has, and holds up nobody else's.
				s.decided("", "maintenance "+chunk[i].WorkflowID+" does not answer", answer.Unanswered)
			}
			var wanted api.SlotWanted
			if len(answer.Answer) > 0 && json.Unmarshal(answer.Answer, &wanted) == nil {
				s.addRunning(wanted)
			}
		}
	}
	return nil
}

func (s *scheduler) addRunning(w api.SlotWanted) {
	if w.Ended {
		return
	}
	if !w.Wants {
		s.supersede(w.RunID) // it has given back what it had
		return
	}
	if h, known := s.holder(w.ID); known {
		if w.GrantedAt == nil {
			// The scheduler that granted it may have ended before it could say so.
			s.signalHolder(h, api.SignalSlotGranted, api.SlotAnswer{RequestID: w.ID})
		}
		return
	}
	if w.GrantedAt == nil {
		s.request(w.SlotRequest)
		return
	}
	s.supersede(w.RunID)
	s.hold(api.Holder{
		Grant: schedule.Grant{RequestID: w.ID, Node: w.Node, Requestor: w.Requestor}, RunID: w.RunID, GrantedAt: *w.GrantedAt,
	})
}

// addMarked adds those that only their mark on a node tells of, because visibility lags.
func (s *scheduler) addMarked(inventory execution.Inventory) {
	for _, marked := range inventory.Marked {
		if !slices.ContainsFunc(s.Holders, func(h api.Holder) bool { return h.Node == marked.Node && h.RunID == marked.RunID }) {
			s.hold(holderOf(marked))
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

func (s *scheduler) query(in execution.QueryInput) ([]execution.Answered, error) {
	var answers []execution.Answered
	ctx := call.Long(s.ctx, fmt.Sprintf("query %s of %d workflows", in.Query, len(in.Executions)))
	err := workflow.ExecuteActivity(ctx, call.Executions.Query, in).Get(ctx, &answers)
	return answers, err
}
