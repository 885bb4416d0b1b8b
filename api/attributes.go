package api

import (
	"go.temporal.io/sdk/temporal"
)

// Search attributes, set only where the namespace has them.
var (
	AttributeNode      = temporal.NewSearchAttributeKeyKeyword("DrydockNode")
	AttributeRequestor = temporal.NewSearchAttributeKeyKeyword("DrydockRequestor")
	AttributePhase     = temporal.NewSearchAttributeKeyKeyword("DrydockPhase")
	AttributeCluster   = temporal.NewSearchAttributeKeyKeyword("DrydockCluster")
	// AttributeKind tells maintenances from what tells of them and keeps their records; see the kinds.
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
