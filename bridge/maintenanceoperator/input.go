package maintenanceoperator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"drydock.dev/drydock/bridge/maintenanceoperator/objects"
	"drydock.dev/drydock/bridge/mirror"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/spec"
)

// inputOf is the maintenance that an object asks for. It does what maintenance-operator would: there is no preflight, the drain goes on until
// the node is empty, the requestor holds the node until the object is deleted, and a node that is replaced ends the maintenance. Settings is
// a JSON merge patch that changes this. An object that maintenance-operator had begun with goes before others, and its cordon is taken over.
// Nothing is drained for one that was Ready, because its requestor works on the node, nor for one that is deleted.
func inputOf(o *objects.NodeMaintenance, settings json.RawMessage) (client.Input, spec.Maintenance, error) {
	given := client.Input{
		"node": o.Spec.NodeName, "requestor": o.Spec.RequestorID, "cordon": o.Spec.Cordons(),
		"preflight": spec.PreflightOff, "readyTimeout": "0s", "onNodeReplaced": "end", "drain": drainOf(cmp.Or(o.Spec.DrainSpec, &objects.DrainSpec{})),
	}
	reason := reasonOf(o)
	begun := reason != "" && reason != objects.Pending
	if begun {
		given["priority"] = begunFirst
	}
	drains := o.DeletionTimestamp.IsZero() && reason != objects.Ready && reason != objects.RequestorFailed
	if wait := o.Spec.WaitForPodCompletion; wait != nil && drains {
		given["waitForPodCompletion"] = spec.WaitForPods{PodSelector: wait.PodSelector, Timeout: spec.Duration(time.Duration(wait.TimeoutSeconds) * time.Second)}
	}
	input, err := mirror.Merged(given, settings)
	if err != nil {
		return nil, spec.Maintenance{}, fmt.Errorf("--maintenance-operator-input: %w", err)
	}
	if !drains || o.Spec.DrainSpec == nil {
		input["drain"] = map[string]any{"mode": spec.ModeNone}
	}
	input["object"] = spec.Object{Resource: objects.Resource, Namespace: o.Namespace, Name: o.Name, UID: string(o.UID), Cordoned: begun && isCordoned(o)}
	asked, err := input.Decode()
	if err != nil {
		return nil, asked, err
	}
	return input, asked, asked.Reserved()
}

// begunFirst is the priority of what maintenance-operator has begun with.
const begunFirst = 1000

func drainOf(d *objects.DrainSpec) map[string]any {
	drain := map[string]any{
		"mode": spec.ModeEvict, "podSelector": d.PodSelector, "force": d.Force, "deleteEmptyDir": d.DeleteEmptyDir, "escalation": []spec.Rung{},
		"protectedFor": "0s",
	}
	if len(d.PodEvictionFilters) > 0 {
		drain["podEvictionFilters"] = d.PodEvictionFilters
	}
	return drain
}
