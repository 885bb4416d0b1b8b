package plan

import (
	"time"

	"go.temporal.io/sdk/workflow"

	planactivity "drydock/activities/plan"
	"drydock/api"
	"drydock/rules/rollout"
	"drydock/workflows/call"
)

// tell sends the plan's intent where it is due. In Idle it is that nothing is held, and is said to who asks.
func (s *stages) tell() {
	idle := s.Stage == rollout.Idle
	if s.sending || !s.Asked && (idle || s.Sent == s.Revision && s.now().Before(s.Next)) {
		return
	}
	shared, err := s.spec.SharedInput(s.now())
	if err != nil {
		s.stop(api.PlanAborted, err.Error()) // it was decoded: this cannot be
		return
	}
	intent := api.PlanIntent{
		Name: s.name, RunID: s.runID, CreatedAt: s.state.CreatedAt, Revision: s.Revision, Stage: s.Stage,
		Tiers: s.tiers.Entries(), Nodes: named(s.state.Nodes), Maintenance: shared,
	}
	if idle {
		intent.Revision, intent.Tiers, intent.Nodes, intent.Maintenance = max(s.Revision, 1), nil, nil, nil
	}
	s.sending, s.Asked = true, false
	future := workflow.ExecuteActivity(call.Pausing(call.Quick(s.ctx, "tell what plan "+s.name+" intends: "+string(s.Stage)), time.Minute),
		call.Plans.SendIntent, planactivity.IntentInput{Lockstep: api.LockstepID(s.cluster), Intent: intent})
	workflow.GoNamed(s.ctx, "intent", func(ctx workflow.Context) {
		err := future.Get(ctx, nil)
		s.sending, s.dirty = false, true
		if err != nil {
			workflow.GetLogger(ctx).Error("telling the lockstep", "error", err)
		}
		if !idle {
			s.sent(intent.Revision, s.now())
		}
	})
}

// named are the names of the nodes that the plan wants, or has and has not given back.
func named(nodes []rollout.Node) []string {
	names := make([]string, 0, len(nodes))
	for i := range nodes {
		if n := &nodes[i]; n.State != rollout.Gone {
			names = append(names, n.Name)
		}
	}
	return names
}
