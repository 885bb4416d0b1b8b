package api

import (
	"slices"
	"time"

	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/record"
)

// DrainProgress is how far a drain, or a wait for pods, has come: the heartbeat details of the activity, and in the
// status of a maintenance the last that is known.
type DrainProgress struct {
	At time.Time `json:"at"`
	// Total counts the pods the drain was about so far, Evicted those it evicted, Deleted those it deleted past their
	// budgets or killed, Remaining those still there.
	Total     int `json:"total"`
	Evicted   int `json:"evicted"`
	Deleted   int `json:"deleted,omitempty"`
	Remaining int `json:"remaining"`
	// Terminating counts the remaining pods that are on their way out.
	Terminating int `json:"terminating,omitempty"`
	// Direct counts the pods for which nobody answered an EvictionRequest (drain.via) and that are evicted directly,
	// DirectWhy says why the last of them is.
	Direct    int    `json:"direct,omitempty"`
	DirectWhy string `json:"directWhy,omitempty"`
	// Moves counts those that move; only where a plan began the maintenance.
	Moves record.PodMoves `json:"moves,omitzero"`
	// Pods are the first of those that were evicted or deleted, MorePods counts the rest.
	Pods     []EndedPod `json:"pods,omitempty"`
	MorePods int        `json:"morePods,omitempty"`
	// Skipped counts pods that stay: those of DaemonSets, static pods, and pods that were not selected.
	Skipped int `json:"skipped,omitempty"`
	// Staying counts them by why they stay: DaemonSet, StaticPod, Skipped, OwnPod (of a Job of
	// Drydock's own) or NotSelected.
	Staying map[string]int `json:"staying,omitempty"`
	// Stays are the first of the pods that a tier is about and that stay all the same, and why.
	Stays []Blocker `json:"stays,omitempty"`
	// Tier and Tiers say which tier of how many is drained, Targets which pods that are (KEP-4212, drainTargets).
	Tier    int               `json:"tier,omitempty"`
	Tiers   int               `json:"tiers,omitempty"`
	Targets []drainplan.Entry `json:"targets,omitempty"`
	// Blockers are the first of those that keep the node from being empty; Reasons counts all of them by reason.
	Blockers []Blocker      `json:"blockers,omitempty"`
	Reasons  map[string]int `json:"reasons,omitempty"`
	// MoreBlockers counts the blockers beyond those listed.
	MoreBlockers int `json:"moreBlockers,omitempty"`
}

// Looked reports whether a drain has looked at its node: before that it knows of no pods, and not that there are none.
func (p DrainProgress) Looked() bool {
	return !p.At.IsZero() || p.Total+p.Ended()+p.Skipped+len(p.Blockers) > 0
}

// Ended counts the pods that were evicted or deleted.
func (p DrainProgress) Ended() int { return p.Evicted + p.Deleted }

// What a progress lists at most.
const (
	maxPods     = 300
	maxBlockers = 20
	maxBudgets  = 5
	maxTargets  = 50
)

// Bound cuts what a progress lists to what fits into a status: one that did not come from a drain may list anything.
func (p *DrainProgress) Bound() {
	bounds.Fit(p)
	p.Pods = p.Pods[:min(len(p.Pods), maxPods)]
	p.Stays = boundBlockers(p.Stays)
	p.Targets = p.Targets[:min(len(p.Targets), maxTargets)]
	if extra := len(p.Blockers) - maxBlockers; extra > 0 {
		p.MoreBlockers += extra
	}
	p.Blockers = boundBlockers(p.Blockers)
}

func boundBlockers(all []Blocker) []Blocker {
	all = slices.Clone(all[:min(len(all), maxBlockers)])
	for i := range all {
		all[i].Budgets = all[i].Budgets[:min(len(all[i].Budgets), maxBudgets)]
	}
	return all
}

// EndedPod is a pod, "namespace/name", that a drain told to end. How is evicted, deleted or killed.
type EndedPod struct {
	Pod string    `json:"pod"`
	At  time.Time `json:"at"`
	How string    `json:"how"`
}

// Blocker is a pod that keeps a node from being empty, and why.
type Blocker struct {
	Pod string `json:"pod"`
	// Reason is one word for programs, Message says what would unblock it.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Budget is the first budget that refuses, Budgets are all that select the pod.
	Budget  string        `json:"budget,omitempty"`
	Budgets []BudgetState `json:"budgets,omitempty"`
	// Owner is who re-creates the pod, "Kind name"; empty for a bare pod.
	Owner string    `json:"owner,omitempty"`
	Since time.Time `json:"since"`
	// ExpectedBy is when the responder of an EvictionRequest expects to have the pod gone, if it says so.
	ExpectedBy time.Time `json:"expectedBy,omitzero"`
}

// Reasons of blockers by which it is decided what a person can do.
const (
	// ReasonDisruptionBudget and ReasonSeveralBudgets: budgets refuse the pod's eviction.
	ReasonDisruptionBudget = "DisruptionBudget"
	ReasonSeveralBudgets   = "SeveralBudgets"
	// ReasonDoNotDisrupt: the pod is left alone until a time that is known.
	ReasonDoNotDisrupt = "DoNotDisrupt"
	// ReasonEvictionRequested: the responder of an EvictionRequest acts on the pod.
	ReasonEvictionRequested = "EvictionRequested"
	// ReasonVolumeAttached: it is a volume, volume/NAME, and no pod.
	ReasonVolumeAttached = "VolumeAttached"
)

// BudgetState are the numbers of a PodDisruptionBudget.
type BudgetState struct {
	Name    string `json:"name"`
	Allowed int32  `json:"allowed"`
	Healthy int32  `json:"healthy"`
	Desired int32  `json:"desired"`
	Pods    int32  `json:"pods"`
	// Impossible: no disruption can ever be allowed as the budget is written.
	Impossible bool `json:"impossible,omitempty"`
}
