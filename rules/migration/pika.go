package migration

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"drydock.dev/drydock/rules/notices"
)

// pika is NVIDIA's PIKA: its objects stay, drydock-bridge serves them, and Drydock is the scheduler.
type pika struct{ given Given }

var notifyMaintenances = schema.GroupVersionResource{Group: "ngn2.nvidia.com", Version: "v1alpha1", Resource: "notifymaintenances"}

func (pika) Lease() string { return LeaseOfPIKA }

func (pika) Reads() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{notifyMaintenances, leases}
}

// pikaFields are what becomes of the fields of a NotifyMaintenance, besides its node and ID.
var pikaFields = []field{
	{[]string{"maintenanceType"}, to("shown by the object alone: both types are served alike")},
	{[]string{"owner"}, to("owner")},
	{[]string{"additionalMessageChannels"}, without("messages go to Drydock's own channels (notify)")},
	{[]string{"metadataConfigmap"}, without("it is no part of Drydock's messages")},
}

func (p pika) Report(c Cluster) Report {
	r := Report{From: PIKA, Claims: p.Claims(c)}
	namespace := c.operator(&r, p.Lease(), operator{namespace: "pika"}).namespace
	objects := c.objects(&r, notifyMaintenances, "NotifyMaintenance")
	r.fields("NotifyMaintenance", objects, pikaFields)
	r.add(to("--pika-sla of the bridge"), "slaPeriod of notifyMaintenanceConfig.yaml", "")
	r.add(to("Drydock's slots and limits: stop your scheduler of maintenances"), "your scheduler", "")
	r.Take = []string{
		"sed 's/namespace: pika$/namespace: " + namespace + "/' deploy/kubernetes/pika/rbac.yaml | kubectl apply -f -",
		"kubectl apply -f deploy/kubernetes/pika/admission.yaml",
		"# Stop your scheduler of maintenances and PIKA's controller, and delete PIKA's ValidatingWebhookConfiguration.",
		"drydock-bridge --cluster NAME --lease-namespace drydock --pika " + namespace + " --pika-sla PERIOD",
		"# The bridge takes PIKA's lease once it is free, and goes on with each object where it stands.",
	}
	r.Back = []string{
		"# Wait until no object is past MaintenanceScheduled. Stop the bridge, and cancel what waits (drydock list, drydock cancel).",
		"kubectl delete -f deploy/kubernetes/pika/admission.yaml",
		"drydock migrate --from pika --back",
		"# Restore PIKA's webhook, and start its controller and your scheduler.",
	}
	return r
}

func (pika) Claims(c Cluster) (claims []Claim) {
	for i := range c.Objects[notifyMaintenances] {
		o := &c.Objects[notifyMaintenances][i]
		status := text(o.Object, "status", "maintenanceStatus")
		claim := Claim{
			Node: text(o.Object, "spec", "nodeObject"), For: named(o), requestor: text(o.Object, "spec", "maintenanceID"), Asked: o.GetCreationTimestamp().UTC(), State: status,
			Out: status != "" && status != string(notices.MaintenanceScheduled),
		}
		switch {
		case status == "":
			claim.State = "new"
		case claim.Out && len(o.GetFinalizers()) == 0:
			continue // it has ended, and only its object is left
		}
		claim.Becomes = "waits for a slot, in the order of creation"
		if claim.Out {
			claim.Becomes = "goes on there, after a slot of Drydock's, with its slaExpires"
			if at, err := time.Parse(time.RFC3339, text(o.Object, "status", "slaExpires")); err == nil {
				claim.Becomes += " " + at.UTC().Format(time.RFC3339)
			}
		}
		if o.GetDeletionTimestamp() != nil {
			claim.State, claim.Becomes = claim.State+", deleted", "the node is given back, and the object goes"
		}
		claims = append(claims, claim)
	}
	return claims
}

// Refusals go by Drydock's own limits: PIKA has none.
func (p pika) Refusals(c Cluster, asked []Claim) (map[string]string, error) {
	return slots{}.over(p.given.Limits).refusals(c, p.Claims(c), asked)
}
