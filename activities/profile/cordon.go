package profile

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/bounds"
	rules "drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/trigger"
)

// cordon makes a node unschedulable, or schedulable. Where a maintenance holds the node, its cordon stays, and the mark remembers
// what the node is to be afterwards, and by whom.
func cordon(node *corev1.Node, unschedulable bool, by k8s.CordonedBy) {
	mark, err := k8s.MarkOf(node)
	if err == nil && mark.WantsCordon() {
		mark.Cordoned, mark.CordonedBy = !unschedulable, nil
		if !unschedulable {
			mark.CordonedBy = &by
		}
		if text, err := json.Marshal(mark); err == nil {
			node.Annotations[api.HoldersAnnotation] = string(text)
			return
		}
	}
	node.Spec.Unschedulable = unschedulable
}

// Bounds of what a transition answers of the maintenances that it leaves a node's cordon to.
const (
	maxLeftTo = 8
	maxRunID  = 100
)

// leftTo returns the first runs of the maintenances that are to uncordon a node because the triggers that a transition has carried
// out said so last. A mark that names the transition without them is forged.
func leftTo(config *rules.Config, carriedOut []string, node *corev1.Node, by k8s.CordonedBy) (runs []string) {
	uncordons := false
	for _, name := range carriedOut {
		found, _ := config.Trigger(name)
		if of, is := found.Of.(trigger.Eviction); is {
			uncordons = of.Action == trigger.Uncordon
		}
	}
	mark, err := k8s.MarkOf(node)
	if !uncordons || err != nil || !mark.Cordoned || mark.CordonedBy == nil || *mark.CordonedBy != by {
		return nil
	}
	for _, h := range mark.Holders[:min(len(mark.Holders), maxLeftTo)] {
		runs = append(runs, bounds.Cut(h.RunID, maxRunID))
	}
	return runs
}

// cordoner is the transition as the one who is named in a mark for what becomes of the cordon.
func (in CarryInput) cordoner(ctx context.Context) k8s.CordonedBy {
	return k8s.CordonedBy(in.caller(ctx))
}
