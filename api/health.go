package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/spec"
)

// Workflow types of health checks.
const (
	// HealthCheckType is one check: it decides which of its nodes are remediated, and when.
	HealthCheckType = "HealthCheck"
	// NodeRemediationType is one remediation of a node by a check.
	NodeRemediationType = "NodeRemediation"
)

const (
	healthCheckPrefix = "health-check"
	remediationPrefix = "node-remediation"
	// remediationRequestor begins the requestor of the maintenances that remediate nodes.
	remediationRequestor = "health-"
)

// HealthCheckID is the workflow ID of a health check.
func HealthCheckID(cluster, name string) string {
	return inCluster(cluster, healthCheckPrefix+"/"+name)
}

// ParseHealthCheckID is the inverse of HealthCheckID; it refuses IDs of anything else.
func ParseHealthCheckID(id string) (cluster, name string, err error) {
	parts := strings.Split(id, "/")
	if len(parts) == 3 && spec.ClusterName(parts[0]) == nil {
		cluster, parts = parts[0], parts[1:]
	}
	if len(parts) != 2 || parts[0] != healthCheckPrefix || health.CheckName(parts[1]) != nil {
		return "", "", fmt.Errorf("workflow ID %.300q is not of the form [<cluster>/]%s/<name>", id, healthCheckPrefix)
	}
	return cluster, parts[1], nil
}

// RemediationID is the workflow ID of the remediation of node by a check.
func RemediationID(cluster, check, node string) string {
	return inCluster(cluster, strings.Join([]string{remediationPrefix, check, node}, "/"))
}

// ParseRemediationID is the inverse of RemediationID; it refuses IDs of anything else.
func ParseRemediationID(id string) (cluster, check, node string, err error) {
	parts := strings.Split(id, "/")
	if len(parts) == 4 && spec.ClusterName(parts[0]) == nil {
		cluster, parts = parts[0], parts[1:]
	}
	if len(parts) != 3 || parts[0] != remediationPrefix || health.CheckName(parts[1]) != nil || spec.NodeName(parts[2]) != nil {
		return "", "", "", fmt.Errorf("workflow ID %.600q is not of the form [<cluster>/]%s/<check>/<node>", id, remediationPrefix)
	}
	return cluster, parts[1], parts[2], nil
}

// LeaseHolderPrefix begins the holder of the leases of nodes that checks remediate, as medik8s has it; the check's name follows.
const LeaseHolderPrefix = "NodeHealthCheck-"

// RemediationRequestor is the requestor of the maintenances by which a check remediates nodes.
func RemediationRequestor(check string) string { return remediationRequestor + check }

// Signals between a health check and its remediations.
const (
	SignalRemediationOrder    = "remediation-order"
	SignalRemediationProgress = "remediation-progress"
)

// QueryExplain asks a health check for all that is to be said of a node: an ExplainRequest, answered by a HealthExplanation.
const QueryExplain = "explain"

// HealthMessage is the payload of pause, which keeps anything new from beginning until the same By resumes, of resume, and of
// remove, which ends the check and is refused while it remediates. Run is the check's first run; empty is any.
type HealthMessage struct {
	Message
	Run string `json:"run,omitempty"`
}

// ResumeHealth withdraws the pause of By, or with Of that of somebody else; with All those of everybody.
type ResumeHealth struct {
	Message
	Of  string `json:"of,omitempty"`
	All bool   `json:"all,omitempty"`
	Run string `json:"run,omitempty"`
}

// ConfigureHealth replaces the spec of a check. While it remediates, selector, templates and steps have to stay as they are.
type ConfigureHealth struct {
	Message
	Spec json.RawMessage `json:"spec"`
	Run  string          `json:"run,omitempty"`
}

// ConfirmHealthy says that a recovered node is healthy, whatever the check's healthyDelay. By and Comment have to be there.
type ConfirmHealthy struct {
	Message
	Node string `json:"node"`
	Run  string `json:"run,omitempty"`
}

// RemediationOrder is a check's order to one of its remediations, repeated until a RemediationProgress has its revision.
type RemediationOrder struct {
	// RunID is the remediation's first run; empty is any.
	RunID string `json:"runId,omitempty"`
	Check string `json:"check"`
	// CheckRunID is the first run of the check's chain: a remediation answers the one that has sent its latest order.
	CheckRunID string `json:"checkRunId"`
	// Report asks for a RemediationProgress whether or not something changed; one with revision 0 only asks.
	Report bool `json:"report,omitempty"`
	health.Order
}

// RemediationProgress is what a remediation reports to its check.
type RemediationProgress = health.Progress

// RemediationInput begins a NodeRemediation. Node and Check are those of its workflow ID.
type RemediationInput struct {
	Check string `json:"check"`
	// CheckRunID is the first run of the check's chain.
	CheckRunID   string `json:"checkRunId"`
	Node         string `json:"node"`
	UID          string `json:"uid,omitempty"`
	ControlPlane bool   `json:"controlPlane,omitempty"`
	// Steps are all of the check's, and Step is the index of the one to begin with.
	Steps []health.Remediation `json:"steps"`
	Step  int                  `json:"step,omitempty"`
	// Since is since when the node is ill, and Why says in words what it has.
	Since time.Time `json:"since"`
	Why   string    `json:"why,omitempty"`
	// Revision is that of the order that began it.
	Revision int `json:"revision"`
	// Owner is the NodeHealthCheck object with the check's name; nil if there is none.
	Owner *HealthCheckOwner `json:"owner,omitempty"`
	// Conditions are the check's: a remediation whose check is gone looks at the node by itself. Etcd is the check's too.
	Conditions []health.UnhealthyCondition `json:"conditions,omitempty"`
	Etcd       *health.EtcdQuestion        `json:"etcd,omitempty"`
	// Audited: a record of it is to be kept.
	Audited bool `json:"audited,omitempty"`
	// Resume: an earlier remediation of the node has ended without a word. This one takes up Left, what it had begun, and begins
	// nothing before it has an order.
	Resume bool               `json:"resume,omitempty"`
	Left   []health.StepState `json:"left,omitempty"`
}

// HealthCheckOwner is a NodeHealthCheck object that owns remediation objects.
type HealthCheckOwner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// RemediationStatus is the answer to the status query of a remediation.
type RemediationStatus struct {
	Check      string `json:"check"`
	Node       string `json:"node"`
	WorkflowID string `json:"workflowId"`
	// RunID is the first run of the remediation's chain.
	RunID string    `json:"runId"`
	Since time.Time `json:"since"`
	Why   string    `json:"why,omitempty"`
	// Steps are those to be carried out; Progress.Steps say how they stand.
	Steps    []health.Remediation `json:"steps"`
	Progress health.Progress      `json:"progress"`
	Order    health.Order         `json:"order"`
	// Slot is the slot of a control-plane node that it holds or asks for.
	Slot *SlotStatus `json:"slot,omitempty"`
	// Lease is the node's lease while the remediation holds it, as namespace/name.
	Lease string `json:"lease,omitempty"`
	// Orphaned is since when its check does not answer.
	Orphaned *time.Time `json:"orphaned,omitempty"`
	// Troubles are what fails and is tried again.
	Troubles []Trouble `json:"troubles,omitempty"`
}

// HealthStatusRequest selects a page of a check's nodes that are not healthy, those under remediation first. The zero value
// is the first page.
type HealthStatusRequest struct {
	Offset int `json:"offset,omitempty"`
	// Limit is how many at most; 0 is 100, and no page has more than 1000.
	Limit int `json:"limit,omitempty"`
}

// HealthStatus is the answer to the status query of a health check.
type HealthStatus struct {
	Name       string `json:"name"`
	WorkflowID string `json:"workflowId"`
	// RunID is the first run of the check's chain.
	RunID     string      `json:"runId"`
	CreatedAt time.Time   `json:"createdAt"`
	Spec      health.Spec `json:"spec"`
	health.Status
	// WaitingFor says in words what the check has to know before it decides anything; empty is nothing.
	WaitingFor string `json:"waitingFor,omitempty"`
	// Troubles are what fails and is tried again.
	Troubles []Trouble `json:"troubles,omitempty"`
	// Events are the latest, Messages the latest that arrived, with what became of each.
	Events   []HealthEvent `json:"events,omitempty"`
	Messages []Received    `json:"messages,omitempty"`
}

// HealthEvent is an event of a check and when it was.
type HealthEvent struct {
	At time.Time `json:"at"`
	health.Event
}

// HealthExplanation is the answer to the explain query of a health check.
type HealthExplanation = health.Explanation

// ExplainRequest names the node.
type ExplainRequest struct {
	Node string `json:"node"`
}

// HealthCheckMemo is what lists of workflows show of a health check, under MemoHealthCheck.
type HealthCheckMemo struct {
	// Selector is a label selector as text.
	Selector  string    `json:"selector"`
	CreatedAt time.Time `json:"createdAt"`
}
