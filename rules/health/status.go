package health

import "time"

// Status is how a check stands, with the fields of medik8s' NodeHealthCheckStatus and some beside them.
type Status struct {
	ObservedNodes int `json:"observedNodes"`
	// HealthyNodes match no unhealthy condition, and nothing of a remediation of theirs is left.
	HealthyNodes int `json:"healthyNodes"`
	// UnhealthyNodes are those whose condition's duration is over, or whose remediation goes on; a page of them.
	UnhealthyNodes []UnhealthyNode `json:"unhealthyNodes"`
	// InFlightRemediations are when the remediations of the nodes on the page began.
	InFlightRemediations map[string]time.Time `json:"inFlightRemediations,omitempty"`
	Conditions           []Condition          `json:"conditions,omitempty"`
	Phase                Phase                `json:"phase"`
	Reason               string               `json:"reason"`
	// LastUpdateTime is when the cluster was last seen.
	LastUpdateTime time.Time `json:"lastUpdateTime,omitzero"`

	// Counts beside them: MinHealthy is the number of healthy nodes from which on remediations begin, Soon of those that match
	// and whose duration is not over, Unhealthy of UnhealthyNodes on all pages, Remediating of those under remediation.
	MinHealthy  int `json:"minHealthy"`
	Soon        int `json:"soon,omitempty"`
	Unhealthy   int `json:"unhealthy,omitempty"`
	Remediating int `json:"remediating,omitempty"`
	// Groups are those with a threshold of their own that have a node which is not healthy.
	Groups []GroupStatus `json:"groups,omitempty"`
	Pauses []PauseStatus `json:"pauses,omitempty"`
	// Blocked says in words what keeps all remediations from beginning.
	Blocked   string `json:"blocked,omitempty"`
	Upgrading string `json:"upgrading,omitempty"`
	// Overlap names an older check that selects nodes of this check. Of each such node the check that has its lease takes care.
	Overlap string       `json:"overlap,omitempty"`
	Storm   *StormStatus `json:"storm,omitempty"`
	// NextWake is when the check decides again by itself.
	NextWake *time.Time `json:"nextWake,omitempty"`
	// NextOffset is where the next page of nodes begins, 0 after the last.
	NextOffset int `json:"nextOffset,omitempty"`
}

// Phase is where a check is, as medik8s has it.
type Phase string

// The phases; of several that hold, the first one counts.
const (
	PhaseDisabled    Phase = "Disabled"
	PhasePaused      Phase = "Paused"
	PhaseRemediating Phase = "Remediating"
	PhaseEnabled     Phase = "Enabled"
)

// Condition is one of the check's (metav1.Condition).
type Condition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"`
	Reason             string    `json:"reason"`
	Message            string    `json:"message"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
}

// The types of the conditions, and the reason of the latter two.
const (
	ConditionDisabled      = "Disabled"
	ConditionStorm         = "StormActive"
	ConditionStormCooldown = "StormCooldownActive"
	ReasonThreshold        = "HealthyNodeThresholdChange"
)

// UnhealthyNode is a node that is ill or under remediation.
type UnhealthyNode struct {
	Name         string              `json:"name"`
	Remediations []RemediationOfNode `json:"remediations,omitempty"`
	// ConditionsHealthyTimestamp is the latest recovery of a node whose remediation is not removed yet.
	ConditionsHealthyTimestamp *time.Time `json:"conditionsHealthyTimestamp,omitempty"`
	// HealthyDelayed: its remediation is kept by healthyDelay.
	HealthyDelayed *bool `json:"healthyDelayed,omitempty"`

	Group        string `json:"group,omitempty"`
	ControlPlane bool   `json:"controlPlane,omitempty"`
	// Ill says which condition the node has, and Since since when.
	Ill   string     `json:"ill,omitempty"`
	Since *time.Time `json:"since,omitempty"`
	// Step is the one at work, counted from 1, of Steps; 0 is none.
	Step  int `json:"step,omitempty"`
	Steps int `json:"steps,omitempty"`
	// Blocked says why no remediation, or no further step, begins, and Next what comes next, with its time where that is known.
	Blocked string     `json:"blocked,omitempty"`
	Next    string     `json:"next,omitempty"`
	NextAt  *time.Time `json:"nextAt,omitempty"`
}

// Shape is what of unhealthy nodes objects of Kubernetes show: none of the words, which change at each look.
func Shape(nodes []UnhealthyNode) (all []any) {
	for _, n := range nodes {
		all = append(all, []any{n.Name, n.Remediations, n.ConditionsHealthyTimestamp, n.HealthyDelayed})
	}
	return all
}

// RemediationOfNode is a remediation object, or a maintenance, of a node.
type RemediationOfNode struct {
	Resource     *Resource  `json:"resource,omitempty"`
	WorkflowID   string     `json:"workflowId,omitempty"`
	Started      time.Time  `json:"started"`
	TimedOut     *time.Time `json:"timedOut,omitempty"`
	TemplateName string     `json:"templateName,omitempty"`
	Succeeded    *bool      `json:"succeeded,omitempty"`
}

// GroupStatus is how a group with a threshold stands.
type GroupStatus struct {
	Group      string `json:"group"`
	Nodes      int    `json:"nodes"`
	Healthy    int    `json:"healthy"`
	MinHealthy int    `json:"minHealthy"`
	Blocked    bool   `json:"blocked,omitempty"`
}

// PauseStatus is a request that nothing new begins. At is zero of those in the spec.
type PauseStatus struct {
	By  string    `json:"by,omitempty"`
	Why string    `json:"why,omitempty"`
	At  time.Time `json:"at,omitzero"`
}

// StormStatus is a storm: Since is when the threshold was first not met, Cooldown when the cooldown began, Over when it ends;
// both are nil before.
type StormStatus struct {
	Since    time.Time  `json:"since"`
	Cooldown *time.Time `json:"cooldown,omitempty"`
	Over     *time.Time `json:"over,omitempty"`
}

// Explanation is all that is to be said of a node.
type Explanation struct {
	Node string `json:"node"`
	// Found: the check knows something of the node; a healthy one, and one that it does not select, it does not.
	Found bool `json:"found"`
	// State is healthy, soon, unhealthy, remediating, recovered, removing or left.
	State string `json:"state"`
	// Summary says all in a sentence or two.
	Summary    string             `json:"summary"`
	Conditions []ExplainCondition `json:"conditions,omitempty"`
	// Blocks are the reasons, in the order in which they are checked, why no remediation or further step begins.
	Blocks []string `json:"blocks,omitempty"`
	// Steps are the check's, with what became of each.
	Steps []ExplainStep `json:"steps,omitempty"`
	// Next says what comes next, At when, where that is known.
	Next string     `json:"next,omitempty"`
	At   *time.Time `json:"at,omitempty"`
}

// ExplainCondition is an unhealthy condition that a node has.
type ExplainCondition struct {
	Type     string    `json:"type"`
	Status   string    `json:"status"`
	Since    time.Time `json:"since"`
	Duration string    `json:"duration"`
	// IllAt is when the duration is over, and Over: it is.
	IllAt time.Time `json:"illAt"`
	Over  bool      `json:"over,omitempty"`
}

// ExplainStep is a step of the remediation.
type ExplainStep struct {
	// Step counts from 1.
	Step int    `json:"step"`
	What string `json:"what"`
	// Timeout is empty if there is none.
	Timeout string `json:"timeout,omitempty"`
	// State says in words how it stands.
	State string `json:"state"`
}
