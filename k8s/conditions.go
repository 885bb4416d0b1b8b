package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// The lifecycle conditions of a node (KEP-5683).
const (
	MaintenancePlanned    corev1.NodeConditionType = "MaintenancePlanned"
	MaintenanceInProgress corev1.NodeConditionType = "MaintenanceInProgress"
	DrainInProgress       corev1.NodeConditionType = "DrainInProgress"
	Drained               corev1.NodeConditionType = "Drained"
)

var lifecycleConditions = []corev1.NodeConditionType{MaintenancePlanned, MaintenanceInProgress, DrainInProgress, Drained}

// Condition is a lifecycle condition to show.
type Condition struct {
	Type    corev1.NodeConditionType `json:"type"`
	True    bool                     `json:"true"`
	Reason  string                   `json:"reason"`
	Message string                   `json:"message,omitempty"`
}

// ShowConditions sets lifecycle conditions in a node's status, and changes only those that are not so already. With none
// it takes all of them off. Errors: ErrNodeGone.
func ShowConditions(ctx context.Context, client kubernetes.Interface, name string, conditions []Condition) error {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("conditions of node %s: %w", name, notFound(err))
	}
	changes := changedConditions(node, conditions, time.Now())
	if len(changes) == 0 {
		return nil
	}
	// The UID keeps the patch from meeting a node that has taken the place of this one.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": node.UID}, "status": map[string]any{"conditions": changes},
	})
	if err != nil {
		return err
	}
	if _, err := client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("conditions of node %s: %w", name, notFound(err))
	}
	return nil
}

func changedConditions(node *corev1.Node, conditions []Condition, now time.Time) []any {
	have := map[corev1.NodeConditionType]corev1.NodeCondition{}
	for _, c := range node.Status.Conditions {
		have[c.Type] = c
	}
	var changes []any
	if len(conditions) == 0 {
		for _, shown := range lifecycleConditions {
			if _, ok := have[shown]; ok {
				changes = append(changes, map[string]any{"$patch": "delete", "type": shown})
			}
		}
		return changes
	}
	for _, want := range conditions {
		status := corev1.ConditionFalse
		if want.True {
			status = corev1.ConditionTrue
		}
		old, shown := have[want.Type]
		if shown && old.Status == status && old.Reason == want.Reason && old.Message == want.Message {
			continue
		}
		transition := metav1.NewTime(now)
		if shown && old.Status == status {
			transition = old.LastTransitionTime
		}
		changes = append(changes, corev1.NodeCondition{
			Type: want.Type, Status: status, Reason: want.Reason, Message: want.Message,
			LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: transition,
		})
	}
	return changes
}

// HideConditions takes the lifecycle conditions off a node that a maintenance alone holds.
func HideConditions(ctx context.Context, client kubernetes.Interface, name string, c Caller) error {
	node, mark, err := getMarked(ctx, client, name)
	if errors.Is(err, ErrNodeGone) {
		return nil
	}
	if err != nil || mark.Allows(c) != nil || len(mark.Holders) > 1 || !showsConditions(node) {
		return err
	}
	return ShowConditions(ctx, client, name, nil)
}

// showsConditions tells whether a node has any lifecycle condition.
func showsConditions(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return slices.Contains(lifecycleConditions, c.Type)
	})
}
