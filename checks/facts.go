package checks

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/rules/validation"
)

// page is how many objects one request lists.
const page = 500

// Facts reads a node, as far as a validation asks: at the Node object, the DaemonSets and their pods. The boot ID at
// the cordon, the answers of named checks and the signal are the caller's to add.
func Facts(ctx context.Context, client kube.Interface, node string, v validation.Validation) (validation.Facts, error) {
	facts := validation.Facts{Node: validation.Node{Name: node}}
	object, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		facts.Node.Missing = true
		return facts, nil
	}
	if err != nil {
		return facts, fmt.Errorf("reading node %s: %w", node, err)
	}
	facts.Node.BootID = object.Status.NodeInfo.BootID
	for _, c := range object.Status.Conditions {
		if v.LooksAt(string(c.Type)) {
			facts.Node.Conditions = append(facts.Node.Conditions, validation.NodeCondition{
				Type: string(c.Type), Status: string(c.Status), Since: c.LastTransitionTime.UTC(), Message: outbound.Excerpt(nil, c.Message, MaxExcerpt),
			})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object.Status.Allocatable)) {
		if slices.ContainsFunc(v.Allocatable, func(wanted validation.Resource) bool { return wanted.Matches(string(name)) }) {
			amount := object.Status.Allocatable[name]
			facts.Node.Allocatable = append(facts.Node.Allocatable, validation.Amount{Resource: string(name), Quantity: amount.String()})
		}
	}
	if v.DaemonSets != "" {
		facts.DaemonSets, err = daemonSets(ctx, client, object, v.DaemonSets)
	}
	return facts, err
}

// Describe fills in what a Node object says of a subject; nothing where the node does not exist.
func Describe(ctx context.Context, client kube.Interface, s Subject) (Subject, error) {
	node, err := client.CoreV1().Nodes().Get(ctx, s.Node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("reading node %s: %w", s.Node, err)
	}
	return s.Of(node), nil
}

// Of fills in what a Node object says of a subject.
func (s Subject) Of(node *corev1.Node) Subject {
	s.Node, s.ProviderID = node.Name, node.Spec.ProviderID
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			s.InternalIP = a.Address
			break
		}
	}
	return s
}

func daemonSets(ctx context.Context, client kube.Interface, node *corev1.Node, text string) (validation.DaemonSets, error) {
	var found validation.DaemonSets
	selector := labels.Everything()
	if text != validation.AllDaemonSets {
		var err error
		if selector, err = labels.Parse(text); err != nil {
			return found, fmt.Errorf("daemonSets: %w", err)
		}
	}
	pods, err := k8s.PodsOn(ctx, client, node.Name)
	if err != nil {
		return found, err
	}
	o := metav1.ListOptions{LabelSelector: selector.String(), Limit: page}
	for {
		list, err := client.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, o)
		if err != nil {
			return found, fmt.Errorf("listing DaemonSets: %w", err)
		}
		for i := range list.Items {
			set := &list.Items[i]
			found.Selected++
			if !wantsPod(set, node) {
				continue
			}
			found.Wanted++
			if why := lacks(set, node, pods); why != "" {
				found.Lacking = append(found.Lacking, validation.Lacking{DaemonSet: set.Namespace + "/" + set.Name, Why: why})
			}
		}
		if o.Continue = list.Continue; o.Continue == "" {
			return found, nil
		}
	}
}

// daemonTolerations are those that the DaemonSet controller gives to every pod it creates.
var daemonTolerations = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
}

// wantsPod reports whether a DaemonSet wants a pod on a node, as its controller decides it. Drydock's own taint is
// overlooked: the pod is wanted as soon as the taint goes.
func wantsPod(set *appsv1.DaemonSet, node *corev1.Node) bool {
	if !set.DeletionTimestamp.IsZero() {
		return false
	}
	pod := &corev1.Pod{Spec: *set.Spec.Template.Spec.DeepCopy()}
	if pod.Spec.NodeName != "" && pod.Spec.NodeName != node.Name {
		return false
	}
	if matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !matches {
		return false
	}
	tolerations := append(slices.Clone(pod.Spec.Tolerations), daemonTolerations...)
	if pod.Spec.HostNetwork {
		tolerations = append(tolerations, corev1.Toleration{
			Key: corev1.TaintNodeNetworkUnavailable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
		})
	}
	_, repelled := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, tolerations, func(t *corev1.Taint) bool {
		return !t.MatchTaint(&k8s.MaintenanceTaint) && (t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute)
	}, false)
	return !repelled
}

// lacks says what a DaemonSet lacks on a node where it wants a pod; empty if it lacks nothing.
func lacks(set *appsv1.DaemonSet, node *corev1.Node, pods []*corev1.Pod) string {
	var unready *corev1.Pod
	for _, pod := range pods {
		if pod.Spec.NodeName != node.Name || !metav1.IsControlledBy(pod, set) || !pod.DeletionTimestamp.IsZero() {
			continue
		}
		if k8s.IsPodReady(pod) {
			return ""
		}
		unready = pod
	}
	switch {
	case unready != nil:
		return fmt.Sprintf("has pod %s, which is not Ready: %s", unready.Name, stateOf(unready))
	case slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&k8s.MaintenanceTaint) }) &&
		!k8s.ToleratesMaintenance(&corev1.Pod{Spec: set.Spec.Template.Spec}):
		return fmt.Sprintf("has no pod there, and gets none while the node has the taint %s", k8s.MaintenanceTaint.Key)
	default:
		return "has no pod there; its controller and the scheduler have to place one"
	}
}

// stateOf says where a pod that is not Ready stands.
func stateOf(pod *corev1.Pod) string {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range statuses {
			if waits := status.State.Waiting; waits != nil && waits.Reason != "" && waits.Reason != "PodInitializing" {
				return status.Name + " " + waits.Reason
			}
		}
	}
	return string(pod.Status.Phase)
}
