package plan

import (
	"slices"

	"drydock/api"
)

// standing is the part of the status that is about the stages.
func (s *stages) standing() *api.PlanStages {
	return &api.PlanStages{
		Stage: s.Stage, Begun: slices.Clone(s.Begun), Tiers: s.tiers.Entries(), Tier: s.Tier, Drained: s.Drained,
		Nodes: counted(s.state.Nodes), Revision: s.Revision, Answered: s.Answered,
	}
}
