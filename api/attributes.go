package api

import (
	"fmt"
	"strings"

	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/temporal"
)

// Search attributes, set only where the namespace has them.
var (
	AttributeNode      = temporal.NewSearchAttributeKeyKeyword("DrydockNode")
	AttributeRequestor = temporal.NewSearchAttributeKeyKeyword("DrydockRequestor")
	AttributePhase     = temporal.NewSearchAttributeKeyKeyword("DrydockPhase")
	AttributeCluster   = temporal.NewSearchAttributeKeyKeyword("DrydockCluster")
	// AttributeKind separates maintenances from the workflows that notify channels of them and keep their records;
	// see the kinds.
	AttributeKind = temporal.NewSearchAttributeKeyKeyword("DrydockKind")
)

// Kinds of workflows, by which a list of them is filtered.
const (
	KindMaintenance  = "maintenance"
	KindNotification = "notification"
	KindRecord       = "record"
	KindPlan         = "plan"
	KindHealthCheck  = "health-check"
	KindRemediation  = "remediation"
)

// SearchAttributes lists the search attributes Drydock registers, all of type Keyword.
var SearchAttributes = []temporal.SearchAttributeKeyKeyword{
	AttributeNode, AttributeRequestor, AttributePhase, AttributeCluster, AttributeKind,
}

// MemoConfigured is in the memo of a health check that a worker has started because its configuration has it.
const MemoConfigured = "drydockConfigured"

// MemoHealthCheck is where the memo of a health check has a HealthCheckMemo.
const MemoHealthCheck = "drydockHealthCheck"

// MemoBegun is in the memo of a maintenance that a worker has begun; its requestor says for what.
const MemoBegun = "drydockBegun"

// IdentityOfStarter is the identity that the starter of a workflow states, by its ID and the first event of its first run. A
// worker is named with what it began the maintenance for, which its own identity does not say.
func IdentityOfStarter(workflowID string, started *history.WorkflowExecutionStartedEventAttributes) string {
	identity := started.GetIdentity()
	if _, begun := started.GetMemo().GetFields()[MemoBegun]; !begun {
		return identity
	}
	_, _, requestor, err := ParseMaintenanceID(workflowID)
	if err != nil {
		return identity
	}
	return fmt.Sprintf("%s (worker %s)", beginner(requestor), identity)
}

// beginner is for what maintenances of a requestor are begun.
func beginner(requestor string) string {
	if check, is := strings.CutPrefix(requestor, remediationRequestor); is {
		return "health check " + check
	}
	if profile, is := strings.CutPrefix(requestor, ProfileRequestorPrefix); is {
		return "profile " + profile
	}
	return "the plans that share the node"
}
