package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Stage is where a plan of strategy AllAtOnce is (KEP-4212, NodeMaintenanceStage).
type Stage string

// The stages. Idle touches nothing. Cordon makes the nodes unschedulable, Drain empties them too, and Complete gives them
// back: what Drydock did to them is undone, and no cordon of somebody else's.
const (
	Idle     Stage = "Idle"
	Cordon   Stage = "Cordon"
	Drain    Stage = "Drain"
	Complete Stage = "Complete"
)

// Stages are all of them, in their order.
var Stages = []Stage{Idle, Cordon, Drain, Complete}

// FirstStages are those in which a plan may begin.
var FirstStages = []Stage{Idle, Cordon, Drain}

// stageNames are the stages in words.
func stageNames(stages []Stage) []string {
	names := make([]string, len(stages))
	for i, s := range stages {
		names[i] = string(s)
	}
	return names
}

// Next are the stages that may follow (KEP-4212, Supported Stage Transitions): any later one, so that Cordon and Drain can be
// skipped, and never one before.
func (s Stage) Next() []Stage {
	return slices.Clone(Stages[slices.Index(Stages, s)+1:])
}

// To returns why a plan cannot go on from this stage to the next; nil if it can.
func (s Stage) To(next Stage) error {
	switch {
	case !slices.Contains(Stages, next):
		return fmt.Errorf("stage: %.40q is not one of %s", next, strings.Join(stageNames(Stages), ", "))
	case next == s:
		return fmt.Errorf("stage: it is %s already", s)
	case !slices.Contains(s.Next(), next):
		return fmt.Errorf("stage: %s comes before %s: the order is %s, and no plan goes back", next, s, strings.Join(stageNames(Stages), ", "))
	}
	return nil
}

// Started are the stages that begin when a plan goes on from one to another. Cordon is a part of Drain: it begins with Drain
// where the plan was idle.
func Started(from, to Stage) []Stage {
	if to == Drain && from == Idle {
		return []Stage{Cordon, Drain}
	}
	return []Stage{to}
}

// Holds reports whether a plan in this stage keeps its nodes out of service.
func (s Stage) Holds() bool { return s == Cordon || s == Drain }
