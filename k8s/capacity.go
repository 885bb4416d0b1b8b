package k8s

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// Amounts are quantities of resources, CPU in thousandths, the number of pods among them.
type Amounts map[corev1.ResourceName]int64

func amountsOf(list corev1.ResourceList) Amounts {
	amounts := Amounts{}
	for name, quantity := range list {
		amounts[name] = quantity.Value()
		if name == corev1.ResourceCPU {
			amounts[name] = quantity.MilliValue()
		}
	}
	return amounts
}

// requestsOf is what a pod takes of a node: its requests, and one of the pods that the node can run.
func requestsOf(pod *corev1.Pod) Amounts {
	amounts := amountsOf(podresource.PodRequests(pod, podresource.PodResourcesOptions{}))
	amounts[corev1.ResourcePods] = 1
	maps.DeleteFunc(amounts, func(_ corev1.ResourceName, amount int64) bool { return amount == 0 })
	return amounts
}

// lacking is the first resource, by name, of which there is less than wanted.
func (free Amounts) lacking(wanted Amounts) (corev1.ResourceName, bool) {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if wanted[name] > free[name] {
			return name, true
		}
	}
	return "", false
}

func (free Amounts) take(wanted Amounts) {
	for name, amount := range wanted {
		free[name] -= amount
	}
}

// NodeCapacity is a node that may take pods, and what is free on it.
type NodeCapacity struct {
	// Node has name, labels, taints and allocatable resources.
	Node *corev1.Node
	Free Amounts
}

// Unplaced is a pod that fits on none of the nodes.
type Unplaced struct {
	Pod     *corev1.Pod
	Message string
	// Bound: the pod asks for the very node that it is on.
	Bound bool
}

// Fit places pods that leave a node on the others, the largest first, each on the first node by name that has room for
// its requests, and that its node selector, its required node affinity and the node's NoSchedule and NoExecute taints
// allow. It returns those for which it found no place, and leaves nodes as they are. It does not look at affinity
// between pods, topology spread or volumes, and first fit may fail where a cleverer placement would not.
func Fit(pods []*corev1.Pod, leaving *corev1.Node, nodes []NodeCapacity) []Unplaced {
	nodes = slices.Clone(nodes)
	for i := range nodes {
		nodes[i].Free = maps.Clone(nodes[i].Free)
	}
	slices.SortFunc(nodes, func(a, b NodeCapacity) int { return strings.Compare(a.Node.Name, b.Node.Name) })
	var homeless []Unplaced
	for _, w := range largestFirst(pods, nodes) {
		if message := place(w, nodes); message != "" {
			homeless = append(homeless, Unplaced{Pod: w.pod, Message: message, Bound: isBound(w.pod, leaving)})
		}
	}
	return homeless
}

// wanting is a pod with what it takes.
type wanting struct {
	pod    *corev1.Pod
	wanted Amounts
	// share is the largest part of a node, of those resources of which it takes any, that the pod takes.
	share float64
}

func largestFirst(pods []*corev1.Pod, nodes []NodeCapacity) []wanting {
	most := Amounts{}
	for _, n := range nodes {
		for name, amount := range amountsOf(n.Node.Status.Allocatable) {
			most[name] = max(most[name], amount)
		}
	}
	var all []wanting
	for _, pod := range pods {
		w := wanting{pod: pod, wanted: requestsOf(pod)}
		for name, amount := range w.wanted {
			if most[name] > 0 {
				w.share = max(w.share, float64(amount)/float64(most[name]))
			}
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b wanting) int {
		return cmp.Or(cmp.Compare(b.share, a.share), strings.Compare(a.pod.Namespace, b.pod.Namespace), strings.Compare(a.pod.Name, b.pod.Name))
	})
	return all
}

// place takes the room that a pod needs, or says why there is none.
func place(w wanting, nodes []NodeCapacity) string {
	affinity := nodeaffinity.GetRequiredNodeAffinity(w.pod)
	elsewhere, tainted := 0, 0
	short := map[string]int{}
	for _, n := range nodes {
		if matches, err := affinity.Match(n.Node); err != nil || !matches {
			elsewhere++
			continue
		}
		if _, repelled := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), n.Node.Spec.Taints, w.pod.Spec.Tolerations, repels, false); repelled {
			tainted++
			continue
		}
		name, lacks := n.Free.lacking(w.wanted)
		if !lacks {
			n.Free.take(w.wanted)
			return ""
		}
		short[string(name)]++
	}
	var why []string
	if elsewhere > 0 {
		why = append(why, fmt.Sprintf("%d not selected by its node selector or affinity", elsewhere))
	}
	if tainted > 0 {
		why = append(why, fmt.Sprintf("%d with a taint it does not tolerate", tainted))
	}
	for _, name := range slices.Sorted(maps.Keys(short)) {
		why = append(why, fmt.Sprintf("%d without room for its %s (%s)", short[name], name, amountText(name, w.wanted)))
	}
	text := fmt.Sprintf("fits on none of the %d other nodes that are ready and schedulable", len(nodes))
	if len(why) > 0 {
		text += ": " + strings.Join(why, ", ")
	}
	return text
}

func amountText(name string, amounts Amounts) string {
	switch amount := amounts[corev1.ResourceName(name)]; corev1.ResourceName(name) {
	case corev1.ResourceCPU:
		return resource.NewMilliQuantity(amount, resource.DecimalSI).String()
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return resource.NewQuantity(amount, resource.BinarySI).String()
	default:
		return fmt.Sprint(amount)
	}
}

func repels(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// isBound reports whether a pod asks for a node by its name: a node like it with another name would not do.
func isBound(pod *corev1.Pod, node *corev1.Node) bool {
	if node == nil {
		return false
	}
	another := node.DeepCopy()
	another.Name = ""
	delete(another.Labels, corev1.LabelHostname)
	affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
	here, err1 := affinity.Match(node)
	there, err2 := affinity.Match(another)
	return err1 == nil && err2 == nil && here && !there
}
