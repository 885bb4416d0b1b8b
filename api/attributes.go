package api

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
)

// SearchAttribute is one of type Keyword.
type SearchAttribute struct {
	Name string
	// Meaning is what a workflow has in it.
	Meaning string
}

// SearchAttributes lists the search attributes that Drydock registers. They are set only where the namespace has them.
var SearchAttributes []SearchAttribute

func attribute(name, meaning string) temporal.SearchAttributeKeyKeyword {
	SearchAttributes = append(SearchAttributes, SearchAttribute{name, meaning})
	return temporal.NewSearchAttributeKeyKeyword(name)
}

// The search attributes.
var (
	AttributeNode      = attribute("DrydockNode", "the node of a maintenance or a remediation")
	AttributeRequestor = attribute("DrydockRequestor", "the requestor of a maintenance, or of those that a plan or a health check begins")
	AttributePhase     = attribute("DrydockPhase", "the phase of a maintenance or a plan, where a list is worth filtering by it")
	AttributeCluster   = attribute("DrydockCluster", "the name of the cluster, where it has one")
	AttributeKind      = attribute("DrydockKind", "what the workflow is: `"+strings.Join(kinds, "`, `")+"`")
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

var kinds = []string{KindMaintenance, KindNotification, KindRecord, KindPlan, KindHealthCheck, KindRemediation}

// MemoConfigured is in the memo of a health check that a worker has started because its configuration has it.
const MemoConfigured = "drydockConfigured"

// MemoHealthCheck is where the memo of a health check has a HealthCheckMemo.
const MemoHealthCheck = "drydockHealthCheck"

// MemoBegun is in the memo of a maintenance that a worker has begun; its requestor says for what.
const MemoBegun = "drydockBegun"

// MemoNexus is in the memo of what a worker has started for a caller by Nexus: a digest of the request, a space, and NAMESPACE/WORKFLOW.
const MemoNexus = "drydockNexus"

// MemoPlanBegan is in the memo of a maintenance that a plan has begun: when that plan began.
const MemoPlanBegan = "drydockPlanBegan"

// PlanBegan is the MemoPlanBegan of a maintenance; zero if no plan has begun it.
func PlanBegan(memo *common.Memo) (began time.Time) {
	payload := memo.GetFields()[MemoPlanBegan]
	if payload == nil || converter.GetDefaultDataConverter().FromPayload(payload, &began) != nil {
		return time.Time{}
	}
	return began
}

// OriginByNexus is the MemoNexus of a workflow; empty if it was not started by Nexus.
func OriginByNexus(memo *common.Memo) (origin string) {
	payload := memo.GetFields()[MemoNexus]
	if payload == nil || converter.GetDefaultDataConverter().FromPayload(payload, &origin) != nil {
		return ""
	}
	return origin
}

// IdentityOfStarter is the identity that the starter of a workflow states, by its ID and the first event of its first run. A worker is
// named with what it began the maintenance for, which its own identity does not say.
func IdentityOfStarter(workflowID string, started *history.WorkflowExecutionStartedEventAttributes) string {
	identity := started.GetIdentity()
	if _, caller, _ := strings.Cut(OriginByNexus(started.GetMemo()), " "); caller != "" {
		return fmt.Sprintf("workflow %s (worker %s)", caller, identity)
	}
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
