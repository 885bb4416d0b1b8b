package record

import "fmt"

// PodMoves counts pods that drains evicted or deleted and that run elsewhere since: those of a controller, without DaemonSets and Jobs.
type PodMoves struct {
	Ended int `json:"ended"`
	// Again counts those of them that were younger than their plan: they have moved for it before, or came by a rollout or a scale-up.
	Again int `json:"again,omitempty"`
}

// Plus is the sum of both.
func (m PodMoves) Plus(more PodMoves) PodMoves {
	return PodMoves{Ended: m.Ended + more.Ended, Again: m.Again + more.Again}
}

// String says how many pods moved, and how often each; it is empty where none did.
func (m PodMoves) String() string {
	first := m.Ended - m.Again
	switch {
	case m.Ended == 0:
		return ""
	case first < 1:
		return fmt.Sprintf("%d moved, all younger than the plan", m.Ended)
	default:
		return fmt.Sprintf("%d moved, %.2f times each on average", first, float64(m.Ended)/float64(first))
	}
}
