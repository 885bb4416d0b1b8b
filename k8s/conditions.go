package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/rules/bounds"
)

// The lifecycle conditions of a node (KEP-5683).
const (
	MaintenancePlanned    corev1.NodeConditionType = "MaintenancePlanned"
	MaintenanceInProgress corev1.NodeConditionType = "MaintenanceInProgress"
	DrainInProgress       corev1.NodeConditionType = "DrainInProgress"
	Drained               corev1.NodeConditionType = "Drained"
)

// All annotations of a node share 256 KiB, the holders' among them: a node that shows too much could not be held any more.
const (
	// maxClaims is how many maintenances a node shows before one that only waits for it is left out.
	maxClaims = 50
	// maxMessage is how long a condition's message may be as JSON, in bytes.
	maxMessage = 200
)

var lifecycleConditions = []corev1.NodeConditionType{MaintenancePlanned, MaintenanceInProgress, DrainInProgress, Drained}

// Condition is a lifecycle condition to show.
type Condition struct {
	Type    corev1.NodeConditionType `json:"type"`
	True    bool                     `json:"true"`
	Reason  string                   `json:"reason"`
	Message string                   `json:"message,omitempty"`
}

// Claim is what one maintenance shows in a node's status. Several may: one drains the node, and others wait for it. Each
// changes its own claim only, and the node shows what all of them say.
type Claim struct {
	WorkflowID string `json:"workflowId"`
	// RunID is the first run of the maintenance's chain.
	RunID string `json:"runId"`
	// Namespace is the ID of the Temporal namespace that the workflow lives in.
	Namespace  string      `json:"namespace,omitempty"`
	Since      time.Time   `json:"since"`
	Conditions []Condition `json:"conditions"`
}

// ClaimsOn reads who shows conditions on a node.
func ClaimsOn(node *corev1.Node) ([]Claim, error) {
	var claims []Claim
	text, ok := node.Annotations[api.ConditionsAnnotation]
	if !ok || strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &claims); err != nil {
		return nil, fmt.Errorf("annotation %s of node %s is not Drydock's: %w", api.ConditionsAnnotation, node.Name, err)
	}
	return claims, nil
}

func (c Claim) isOf(workflowID, runID string) bool {
	return c.WorkflowID == workflowID && c.RunID == runID
}

// onlyPlans reports whether a maintenance does not hold the node yet.
func (c Claim) onlyPlans() bool {
	return !slices.ContainsFunc(c.Conditions, func(c Condition) bool { return c.Type != MaintenancePlanned })
}

// without are the claims of all others than a maintenance.
func without(claims []Claim, workflowID, runID string) []Claim {
	return slices.DeleteFunc(slices.Clone(claims), func(c Claim) bool { return c.isOf(workflowID, runID) })
}

// shownBy is what a node shows of some claims: of each type the first that is True, or else the first.
func shownBy(claims []Claim) []Condition {
	var shown []Condition
	for _, kind := range lifecycleConditions {
		var one *Condition
		for _, claim := range claims {
			for i, c := range claim.Conditions {
				if c.Type == kind && (one == nil || c.True && !one.True) {
					one = &claim.Conditions[i]
				}
			}
		}
		if one != nil {
			shown = append(shown, *one)
		}
	}
	return shown
}

// ShowConditions sets what a maintenance shows in a node's status, and changes only what is not so already. Without
// conditions it takes the maintenance's own off. Where many wait for the node already, another that waits shows nothing.
// Errors: ErrNodeGone.
func ShowConditions(ctx context.Context, client kube.Interface, name string, claim Claim) error {
	claim.Conditions = slices.Clone(claim.Conditions)
	for i := range claim.Conditions {
		claim.Conditions[i].Message = bounds.Cut(claim.Conditions[i].Message, maxMessage)
	}
	return changeClaims(ctx, client, name, func(_ *corev1.Node, claims []Claim) (after []Claim, gone []corev1.NodeConditionType) {
		i := slices.IndexFunc(claims, func(c Claim) bool { return c.isOf(claim.WorkflowID, claim.RunID) })
		switch {
		case len(claim.Conditions) == 0:
			return without(claims, claim.WorkflowID, claim.RunID), nil
		case i < 0 && len(claims) >= maxClaims && claim.onlyPlans():
			return claims, nil
		case i < 0:
			return append(slices.Clone(claims), claim), nil
		}
		after = slices.Clone(claims)
		after[i].Conditions = claim.Conditions
		return after, nil
	})
}

// HideConditions takes off what a maintenance shows in a node's status. Shown says that it did show something: what nobody
// claims is its own then, though somebody removed the annotation. A node that is gone shows nothing. Another run of the
// maintenance that holds the node goes on showing it.
func HideConditions(ctx context.Context, client kube.Interface, name string, c Caller, shown bool) error {
	err := changeClaims(ctx, client, name, func(node *corev1.Node, claims []Claim) (after []Claim, gone []corev1.NodeConditionType) {
		if mark, err := MarkOf(node); err == nil && errors.Is(mark.Allows(c), ErrOtherRun) {
			return claims, nil
		}
		if _, claimed := node.Annotations[api.ConditionsAnnotation]; shown && !claimed {
			gone = lifecycleConditions
		}
		return without(claims, c.WorkflowID, c.RunID), gone
	})
	if errors.Is(err, ErrNodeGone) {
		return nil
	}
	return err
}

// changeClaims changes who shows which conditions on a node. It takes off the conditions that nobody claims any more, and those in gone.
func changeClaims(ctx context.Context, client kube.Interface, name string,
	change func(*corev1.Node, []Claim) (after []Claim, gone []corev1.NodeConditionType),
) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		before, err := ClaimsOn(node)
		if err != nil {
			return err
		}
		after, gone := change(node, before)
		for _, c := range shownBy(before) {
			gone = append(slices.Clone(gone), c.Type)
		}
		patch, err := claimsPatch(node, after, changedConditions(node, shownBy(after), gone, time.Now()))
		if err != nil || patch == nil {
			return err
		}
		_, err = client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
	if err != nil {
		return fmt.Errorf("conditions of node %s: %w", name, notFound(err))
	}
	return nil
}

// claimsPatch writes claims and conditions in one, for this very version of the node; it is nil if nothing changes.
func claimsPatch(node *corev1.Node, claims []Claim, changes []any) ([]byte, error) {
	var text *string
	if len(claims) > 0 {
		encoded, err := json.Marshal(claims)
		if err != nil {
			return nil, err
		}
		text = new(string(encoded))
	}
	old := valueOf(node.Annotations, api.ConditionsAnnotation)
	if len(changes) == 0 && (text == nil) == (old == nil) && (text == nil || *text == *old) {
		return nil, nil
	}
	patch := nodePatch{}
	if len(changes) > 0 {
		patch["status"] = map[string]any{"conditions": changes}
	}
	return patch.guarded(node, map[string]*string{api.ConditionsAnnotation: text}, nil)
}

// changedConditions are those that a node does not show as wanted, and of those that may be gone what it still shows.
func changedConditions(node *corev1.Node, wanted []Condition, gone []corev1.NodeConditionType, now time.Time) []any {
	have := map[corev1.NodeConditionType]corev1.NodeCondition{}
	for _, c := range node.Status.Conditions {
		have[c.Type] = c
	}
	var changes []any
	for _, kind := range lifecycleConditions {
		_, shown := have[kind]
		if shown && slices.Contains(gone, kind) && !slices.ContainsFunc(wanted, func(c Condition) bool { return c.Type == kind }) {
			changes = append(changes, map[string]any{"$patch": "delete", "type": kind})
		}
	}
	for _, want := range wanted {
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
