package scheduler

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/execution"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/schedule"
	"encoding/json"
	"fmt"
)

// takeOver restores what the run before decided: its limits and freezes must not be lost with it, nor a grant that
// has no mark on its node yet.
func (s rebuilding) takeOver() error {
	if s.previousRun == "" {
		return nil
	}
	for offset := 0; ; {
		args, err := json.Marshal(api.StateRequest{Offset: offset, Limit: queryChunk})
		if err != nil {
			return err
		}
		answers, err := s.query(execution.QueryInput{
			Executions: []execution.Run{{WorkflowID: api.SchedulerID(s.cluster), RunID: s.previousRun}},
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
			s.decisions.record("", "the state of the scheduler that ran before is lost", "limits and freezes are those of the configuration")
			return nil
		}
		if before.Rebuilding && before.PreviousRun != "" {
			// It ended before it had taken over what the run before it knew.
			s.previousRun = before.PreviousRun
			continue
		}
		if offset == 0 {
			s.controls.limits, s.controls.freezes, s.decisions.entries = before.Limits, before.Freezes, before.Decisions
			s.controls.limits.Limits = before.Limits.Limits.WithDefaults()
			s.controls.revision = before.Revision
			s.holdAll(before.Holders)
		}
		for _, p := range before.Pending {
			s.intake.request(p.SlotRequest)
		}
		if offset = before.NextOffset; offset == 0 {
			return nil
		}
	}
}

// holdAll takes over the holders that a scheduler knew.
func (s rebuilding) holdAll(holders []api.Holder) {
	for _, h := range holders {
		if err := h.Validate(s.cluster); err != nil {
			s.decisions.record("", "ignored a holder that the scheduler before this one knew", err.Error())
		} else if !s.ledger.knows(h.RequestID) {
			s.ledger.hold(h)
		}
	}
}

// distrust stops all grants where an earlier scheduler exists but cannot say what its operators decided: to grant
// against a freeze or over a limit that they set would be worse than to wait for them.
func (s rebuilding) distrust(why string) {
	s.decisions.record("", "the scheduler that ran before does not answer: no grants until somebody has looked", why)
	s.controls.freezes = append(s.controls.freezes, schedule.Freeze{
		By: s.previousRun, At: s.now(),
		Reason: "limits and freezes of the scheduler before this one cannot be read (" + why + "): check them (drydock limits), then drydock thaw --all",
	})
}
