// Package preflight decides what a drain of a node would meet: what becomes of each pod, and what would stop it.
package preflight

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/spec"
)

// Action is what a drain would do with a pod.
type Action string

// The actions. A refused pod stops the drain until somebody consents or removes it; a skipped one stays and does not.
const (
	Evict  Action = "evict"
	Delete Action = "delete"
	Skip   Action = "skip"
	Wait   Action = "wait"
	Refuse Action = "refuse"
)

// Code says in one word what a finding is about.
type Code string

// Codes of problems.
const (
	NodeMissing       Code = "NodeMissing"
	MissingPermission Code = "MissingPermission"
	MissingConsent    Code = "MissingConsent"
	OverlappingBudget Code = "OverlappingBudgets"
	ImpossibleBudget  Code = "ImpossibleBudget"
	NoRoom            Code = "NoRoom"
)

// Codes of warnings. Budgets that overlap or are impossible are warnings too where the escalation bypasses budgets, and
// so is a missing permission that a drain can do without.
const (
	BudgetRefuses   Code = "BudgetRefuses"
	Protected       Code = "Protected"
	ToleratesAll    Code = "ToleratesMaintenance"
	NodeNotReady    Code = "NodeNotReady"
	BoundToNode     Code = "BoundToNode"
	NotChecked      Code = "NotChecked"
	StaticPodWaited Code = "StaticPod"
)

// Bounds of a report, which has to fit in a Temporal payload: the first rows, and the count of the rest.
const (
	MaxPods     = 500
	MaxBudgets  = 200
	MaxFindings = 200
	maxText     = 600
)

// Report is what a drain of one node would meet, as the cluster was at one moment.
type Report struct {
	Node string    `json:"node"`
	At   time.Time `json:"at"`
	// Mode and Tiers are the drain's mode and, of a drain that has more than one, its tiers in their order.
	Mode  string            `json:"mode"`
	Tiers []drainplan.Entry `json:"tiers,omitempty"`
	// Escalation is what would be done when the node does not empty, the end of the SLA included.
	Escalation []spec.Rung `json:"escalation,omitempty"`
	// Counts counts all pods by action, Pods are the first of them.
	Counts   map[Action]int `json:"counts"`
	Pods     []Pod          `json:"pods"`
	MorePods int            `json:"morePods,omitempty"`
	// Budgets are those of the pods that would be evicted, or would be with somebody's consent.
	Budgets     []Budget `json:"budgets,omitempty"`
	MoreBudgets int      `json:"moreBudgets,omitempty"`
	// Room is absent if it was not looked at.
	Room *Room `json:"room,omitempty"`
	// Problems would stop the drain, Warnings may delay or surprise.
	Problems     []Finding `json:"problems"`
	MoreProblems int       `json:"moreProblems,omitempty"`
	Warnings     []Finding `json:"warnings,omitempty"`
	MoreWarnings int       `json:"moreWarnings,omitempty"`
}

// Pod is what would become of one pod.
type Pod struct {
	// Pod is "namespace/name".
	Pod string `json:"pod"`
	// Tier counts from 1; it is absent for a pod that no tier selects.
	Tier    int    `json:"tier,omitempty"`
	Action  Action `json:"action"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Budgets are the names of those that select the pod and would be asked.
	Budgets []string `json:"budgets,omitempty"`
}

// Budget is a PodDisruptionBudget of pods on the node, with its numbers.
type Budget struct {
	// Budget is "namespace/name".
	Budget  string `json:"budget"`
	Allowed int32  `json:"allowed"`
	Healthy int32  `json:"healthy"`
	Desired int32  `json:"desired"`
	Pods    int32  `json:"pods"`
	// OnNode counts the pods on the node that the budget would be asked about.
	OnNode int `json:"onNode"`
	// Impossible: as it is written it never allows a disruption.
	Impossible bool   `json:"impossible,omitempty"`
	Message    string `json:"message,omitempty"`
}

// Room says whether the pods that are created anew elsewhere fit on the other nodes.
type Room struct {
	// Nodes counts the nodes that were considered, Pods the pods that need a place.
	Nodes int `json:"nodes"`
	Pods  int `json:"pods"`
	// Unplaced are the pods for which there was none.
	Unplaced []Unplaced `json:"unplaced,omitempty"`
}

// Unplaced is a pod that fits on none of the other nodes.
type Unplaced struct {
	Pod     string `json:"pod"`
	Message string `json:"message"`
	// Bound: the pod asks for this very node, so it waits for it to return whatever room there is.
	Bound bool `json:"bound,omitempty"`
}

// Finding is one problem or warning.
type Finding struct {
	Code Code `json:"code"`
	// Object is what it is about: a pod, a budget, a permission or the node.
	Object  string `json:"object"`
	Message string `json:"message"`
}

// String is the finding as a sentence.
func (f Finding) String() string { return f.Object + ": " + f.Message }

// ProblemCount counts all problems, those beyond the listed included.
func (r Report) ProblemCount() int { return len(r.Problems) + r.MoreProblems }

// Has reports whether one of the listed problems is of the code.
func (r Report) Has(code Code) bool {
	for _, p := range r.Problems {
		if p.Code == code {
			return true
		}
	}
	return false
}

// Summary names the first n problems and counts the others; it is empty if there are none.
func (r Report) Summary(n int) string {
	var texts []string
	for _, p := range r.Problems[:min(n, len(r.Problems))] {
		texts = append(texts, p.String())
	}
	text := strings.Join(texts, "; ")
	if more := r.ProblemCount() - len(texts); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// Escalates says in words what would be done when the node does not empty; it is empty if nothing would.
func (r Report) Escalates() string {
	var texts []string
	for _, rung := range r.Escalation {
		what := rung.Do
		if what == spec.ExpireSLA {
			what = "the SLA is over"
		}
		texts = append(texts, fmt.Sprintf("after %s %s", period.Text(rung.After.Std()), what))
	}
	return strings.Join(texts, ", ")
}

func (r *Report) problem(f Finding) {
	if len(r.Problems) == MaxFindings {
		r.MoreProblems++
		return
	}
	r.Problems = append(r.Problems, bounded(f))
}

func (r *Report) warn(f Finding) {
	if len(r.Warnings) == MaxFindings {
		r.MoreWarnings++
		return
	}
	r.Warnings = append(r.Warnings, bounded(f))
}

func bounded(f Finding) Finding {
	f.Message = bounds.Cut(f.Message, maxText)
	return f
}
