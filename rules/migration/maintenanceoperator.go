package migration

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"drydock.dev/drydock/rules/schedule"
)

// maintenanceOperator is NVIDIA's maintenance-operator: its objects stay, and drydock-bridge serves them.
type maintenanceOperator struct{ given Given }

var (
	nodeMaintenances = schema.GroupVersionResource{Group: "maintenance.nvidia.com", Version: "v1alpha1", Resource: "nodemaintenances"}
	operatorConfigs  = schema.GroupVersionResource{Group: "maintenance.nvidia.com", Version: "v1alpha1", Resource: "maintenanceoperatorconfigs"}
)

// unschedulableBefore is whether the node was cordoned before maintenance-operator cordoned it.
const unschedulableBefore = "maintenance.nvidia.com/node-initial-state.unschedulable"

func (maintenanceOperator) Lease() string { return LeaseOfMaintenanceOperator }

func (maintenanceOperator) Reads() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{nodeMaintenances, operatorConfigs, leases}
}

// config is the operator's configuration: the one called default in its namespace, which its lease tells.
func (m maintenanceOperator) config(c Cluster) *unstructured.Unstructured {
	l := c.lease(m.Lease())
	for i := range c.Objects[operatorConfigs] {
		if o := &c.Objects[operatorConfigs][i]; o.GetName() == "default" && (l == nil || l.GetNamespace() == o.GetNamespace()) {
			return o
		}
	}
	return nil
}

// operatorSettings are what becomes of the fields of a MaintenanceOperatorConfig.
var operatorSettings = []field{
	{[]string{"maxParallelOperations"}, to("drydock limits: maxParallel, set by the bridge when it changes; 0 or less is a freeze")},
	{[]string{"maxUnavailable"}, to("drydock limits: maxUnavailable; a percentage is rounded up, and there down")},
	{[]string{"maxNodeMaintenanceTimeSeconds"}, to("the bridge deletes objects that were Ready for longer")},
	{[]string{"logLevel"}, without("--log-level of drydock-bridge and drydock-worker")},
}

// requestFields are what becomes of the fields of a NodeMaintenance, besides its node and requestor.
var requestFields = []field{
	{[]string{"cordon"}, to("cordon")},
	{[]string{"waitForPodCompletion"}, to("waitForPodCompletion")},
	{[]string{"drainSpec"}, to("drain")},
	{[]string{"drainSpec", "timeoutSeconds"}, without("the drain goes on until the node is empty, as there, where each try has that time")},
	{[]string{"additionalRequestors"}, to("a deleted object that was Ready waits for them")},
}

func (m maintenanceOperator) Report(c Cluster) Report {
	r := Report{From: MaintenanceOperator, Claims: m.Claims(c)}
	is := c.operator(&r, m.Lease(), operator{"maintenance-operator", "maintenance-operator"})
	objects := c.objects(&r, nodeMaintenances, "NodeMaintenance")
	if config := m.config(c); config != nil {
		r.settings("MaintenanceOperatorConfig", config, operatorSettings)
	}
	r.fields("NodeMaintenance", objects, requestFields)
	if s := m.slots(c); s.unknown != nil {
		r.Problems = append(r.Problems, s.unknown.Error())
	}
	r.Take = []string{
		"sed 's/namespace: maintenance-operator$/namespace: " + is.namespace + "/' deploy/kubernetes/maintenance-operator/rbac.yaml | kubectl apply -f -",
		"drydock-bridge --cluster NAME --lease-namespace drydock --maintenance-operator " + is.namespace,
		"kubectl -n " + is.namespace + " scale deployment " + is.deployment + " --replicas 0",
		"kubectl delete validatingwebhookconfiguration maintenance-operator-validating-webhook --ignore-not-found",
		"# The bridge takes the operator's lease once it is free, and goes on with each object where it stands.",
	}
	r.Back = []string{
		"# Wait until no object is past Pending, or give their nodes back: drydock cancel NODE --release.",
		"# Stop the bridge. Cancel what still waits (drydock list, drydock cancel): it would take the nodes beside the operator.",
		"# Restore the operator's webhook.",
		"drydock migrate --from maintenance-operator --back",
		"kubectl -n " + is.namespace + " scale deployment " + is.deployment + " --replicas 1",
	}
	return r
}

func (maintenanceOperator) Claims(c Cluster) (claims []Claim) {
	for i := range c.Objects[nodeMaintenances] {
		o := &c.Objects[nodeMaintenances][i]
		reason, since := condition(o, "Ready")
		claim := Claim{
			Node: text(o.Object, "spec", "nodeName"), For: named(o), requestor: text(o.Object, "spec", "requestorID"), Asked: o.GetCreationTimestamp().UTC(), State: reason,
			Out: reason != "" && reason != "Pending",
		}
		if reason == "" {
			claim.State = "new"
		}
		if o.GetDeletionTimestamp() != nil {
			claim.State += ", deleted"
		}
		claim.Becomes = takenOver(o, reason, since)
		claims = append(claims, claim)
	}
	return claims
}

// takenOver is what the bridge makes of an object that the operator has begun with.
func takenOver(o *unstructured.Unstructured, reason string, since time.Time) string {
	before, recorded := o.GetAnnotations()[unschedulableBefore]
	cordon := "the node is schedulable again at the end"
	switch {
	case recorded && before == "true":
		cordon = "the cordon was somebody else's, and stays at the end"
	case !recorded:
		cordon = "the node is not cordoned yet"
	}
	switch {
	case o.GetDeletionTimestamp() != nil && reason != "" && reason != "Pending":
		return "the node is given back, and the object goes; " + cordon
	case reason == "" || reason == "Pending":
		return "waits for a slot, in the order of creation"
	case reason == "Ready":
		return fmt.Sprintf("stays Ready (since %s), nothing is drained; %s", since.UTC().Format(time.RFC3339), cordon)
	case reason == "RequestorFailed":
		return "stays failed until the requestor says otherwise; " + cordon
	case reason == "Draining":
		return "the drain starts again; " + cordon
	default:
		return "goes on there, after a slot of Drydock's; " + cordon
	}
}

func (m maintenanceOperator) Refusals(c Cluster, asked []Claim) (map[string]string, error) {
	return m.slots(c).refusals(c, m.Claims(c), asked)
}

// slots has the limits of the operator's configuration, as the bridge sets them.
func (m maintenanceOperator) slots(c Cluster) (s slots) {
	if config := m.config(c); config != nil {
		parallel, err := as[*intstr.IntOrString](config.Object, "spec", "maxParallelOperations")
		unavailable, unreadable := as[*intstr.IntOrString](config.Object, "spec", "maxUnavailable")
		if s.unknown = errors.Join(err, unreadable); s.unknown == nil {
			s.frozen, s.limits, s.unknown = OperatorLimits(parallel, unavailable)
		}
	}
	return s.over(m.given.Limits)
}

// OperatorLimits are the limits of a MaintenanceOperatorConfig. With maxParallelOperations of 0 or less maintenance-operator begins nothing;
// a maxUnavailable that is negative is no limit to it.
func OperatorLimits(parallel, unavailable *intstr.IntOrString) (frozen bool, limits schedule.Limits, err error) {
	limits.MaxParallel = schedule.Count(1)
	if parallel != nil {
		if frozen = parallel.Type == intstr.Int && parallel.IntVal <= 0; !frozen {
			if limits.MaxParallel, err = amountOf(parallel); err != nil {
				return false, limits, fmt.Errorf("spec.maxParallelOperations: %w", err)
			}
		}
	}
	if unavailable != nil && (unavailable.Type == intstr.String || unavailable.IntVal >= 0) {
		if limits.MaxUnavailable, err = amountOf(unavailable); err != nil {
			return false, limits, fmt.Errorf("spec.maxUnavailable: %w", err)
		}
	}
	return frozen, limits, nil
}

// amountOf is an amount; more than all nodes are all nodes.
func amountOf(n *intstr.IntOrString) (schedule.Amount, error) {
	if percent, is := strings.CutSuffix(n.StrVal, "%"); is && n.Type == intstr.String {
		if of, err := strconv.Atoi(percent); err == nil && of > 100 {
			return schedule.Percent(100), nil
		}
	}
	return schedule.ParseAmount(n.String())
}
