package k8s

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s/kube"
)

// OutOfServiceTaint says that a node is off: Kubernetes deletes its pods without waiting for the kubelet, and detaches
// their volumes, so that both move elsewhere.
var OutOfServiceTaint = corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}

// OutOfService is how SetOutOfService left a node. Tainted: it has the taint. Foreign: the taint is somebody else's, and stays.
// Alive: its kubelet runs, and the taint is not there, or not any more.
type OutOfService struct{ Tainted, Foreign, Alive bool }

// SetOutOfService taints a node that the maintenance holds, and marks the taint as the holder's in the same patch; the
// release of the holder takes it off. It is idempotent. Errors: ErrNodeGone, ErrNotHolder, ErrOtherRun.
//
// A node whose kubelet came back must not keep the taint: its pods would lose volumes that they write to. A report of the
// kubelet's is a new version of the node, so that the patch does not apply. A renewal of its lease is another object's, and
// Kubernetes has no transaction over two: the lease is compared right before the patch and after it, and the taint goes at once
// where it has changed. What comes later than that, the caller has to look for as long as the taint is there (Silence.Broken).
func SetOutOfService(ctx context.Context, client kube.Interface, name string, c Caller, silence Silence) (OutOfService, error) {
	var is OutOfService
	err := changeHeld(ctx, client, name, func(node *corev1.Node, mark Mark) (nodePatch, map[string]*string, error) {
		is = OutOfService{Tainted: true}
		if err := mark.Allows(c); err != nil {
			return nil, nil, err
		}
		now, err := ReadKubeletLease(ctx, client, name)
		if err != nil {
			return nil, nil, err
		}
		if silence.brokenBy(node, now) {
			is = OutOfService{Alive: true}
			return nil, nil, nil
		}
		holder, patch := &mark.Holders[mark.index(c.WorkflowID, c.RunID)], nodePatch{}
		switch tainted := IsOutOfService(node); {
		case tainted && !mark.ownsOutOfService():
			is.Foreign = true
			return nil, nil, nil
		case tainted && holder.OutOfService:
			return nil, nil, nil
		case !tainted:
			patch["spec"] = map[string]any{"taints": append(slices.Clone(node.Spec.Taints), OutOfServiceTaint)}
		}
		holder.OutOfService = true
		annotations, err := mark.annotation()
		return patch, annotations, err
	})
	if err == nil && is.Tainted && !is.Foreign {
		is.Alive, err = silence.Broken(ctx, client, name)
	}
	if err != nil {
		return OutOfService{}, fmt.Errorf("tainting node %s as out of service: %w", name, err)
	}
	if !is.Alive {
		return is, nil
	}
	return OutOfService{Alive: true}, ClearOutOfService(ctx, client, name, c)
}

// ClearOutOfService takes the taint off that SetOutOfService has set for the holder. Errors: ErrNodeGone, ErrNotHolder,
// ErrOtherRun.
func ClearOutOfService(ctx context.Context, client kube.Interface, name string, c Caller) error {
	err := changeHeld(ctx, client, name, func(node *corev1.Node, mark Mark) (nodePatch, map[string]*string, error) {
		if err := mark.Allows(c); err != nil {
			return nil, nil, err
		}
		holder, patch := &mark.Holders[mark.index(c.WorkflowID, c.RunID)], nodePatch{}
		if !holder.OutOfService {
			return nil, nil, nil
		}
		if holder.OutOfService = false; !mark.ownsOutOfService() {
			patch.takeOutOfServiceOff(node)
		}
		annotations, err := mark.annotation()
		return patch, annotations, err
	})
	if err != nil {
		return fmt.Errorf("taking the taint out-of-service off node %s: %w", name, err)
	}
	return nil
}

// annotation is the mark as a patch writes it.
func (m Mark) annotation() (map[string]*string, error) {
	text, err := json.Marshal(m)
	return map[string]*string{api.HoldersAnnotation: new(string(text))}, err
}

// ownsOutOfService reports whether the taint is a holder's.
func (m Mark) ownsOutOfService() bool {
	return slices.ContainsFunc(m.Holders, func(h Holder) bool { return h.OutOfService })
}

// OwnsOutOfService reports whether the taint is the caller's.
func (m Mark) OwnsOutOfService(c Caller) bool {
	i := m.index(c.WorkflowID, c.RunID)
	return i >= 0 && m.Holders[i].OutOfService
}

// IsOutOfService reports whether a node has the taint, from Drydock or not.
func IsOutOfService(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, isOutOfServiceTaint)
}

func isOutOfServiceTaint(t corev1.Taint) bool { return t.MatchTaint(&OutOfServiceTaint) }

// takeOutOfServiceOff adds to a patch that the taint goes.
func (p nodePatch) takeOutOfServiceOff(node *corev1.Node) {
	if !IsOutOfService(node) {
		return
	}
	changes, _ := p["spec"].(map[string]any)
	if changes == nil {
		changes = map[string]any{}
	}
	changes["taints"] = slices.DeleteFunc(slices.Clone(node.Spec.Taints), isOutOfServiceTaint)
	p["spec"] = changes
}

// ToleratesOutOfService reports whether a pod stays on a node with OutOfServiceTaint, as static pods do.
func ToleratesOutOfService(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		switch {
		case t.Effect != "" && t.Effect != OutOfServiceTaint.Effect, t.Key != "" && t.Key != OutOfServiceTaint.Key:
			return false
		case t.Operator == corev1.TolerationOpExists:
			return true
		default:
			return t.Key == OutOfServiceTaint.Key && t.Value == OutOfServiceTaint.Value
		}
	})
}

// ExcludeLabel has medik8s' NodeHealthCheck and its remediators leave a node alone, where its value is ExcludedValue.
const (
	ExcludeLabel  = "remediation.medik8s.io/exclude-from-remediation"
	ExcludedValue = "true"
)

// Excluded is the label that Drydock has set.
type Excluded struct {
	// Prior is the value that it had before; nil if there was none.
	Prior *string `json:"prior,omitempty"`
}

// exclude adds the label to those that a patch writes, unless it is there already: then it is somebody else's.
func exclude(node *corev1.Node, labels map[string]*string) *Excluded {
	if node.Labels[ExcludeLabel] == ExcludedValue {
		return nil
	}
	labels[ExcludeLabel] = new(ExcludedValue)
	return &Excluded{Prior: valueOf(node.Labels, ExcludeLabel)}
}

// restore puts back what the label was before, unless somebody has changed it since.
func (e *Excluded) restore(node *corev1.Node, labels map[string]*string) {
	if e != nil && node.Labels[ExcludeLabel] == ExcludedValue {
		labels[ExcludeLabel] = e.Prior
	}
}

// ExclusionOf is the value of ExcludeLabel on a node as somebody else has set it: one that Drydock has set while it holds
// the node says nothing but that.
func ExclusionOf(node *corev1.Node, mark Mark) (value string, there bool) {
	value, there = node.Labels[ExcludeLabel]
	if mark.Excluded == nil || value != ExcludedValue {
		return value, there
	}
	if mark.Excluded.Prior == nil {
		return "", false
	}
	return *mark.Excluded.Prior, true
}
