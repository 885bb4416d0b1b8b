// Package plan acts for maintenance plans: it lists the nodes that match, and waits for the ends of maintenances that
// an earlier run of a plan began.
package plan

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/nodestate"
	"drydock.dev/drydock/rules/plan"
)

// Activities act for maintenance plans.
type Activities struct {
	Nodes     *k8s.Nodes
	Temporal  client.Client
	Namespace string
	// LookEvery is the pause between two looks for nodes that come to match; zero is 20 s.
	LookEvery time.Duration
}

// ListInput chooses nodes as a plan does; Digest is that of the last list that is known.
type ListInput struct {
	NodeSelector *corev1.NodeSelector `json:"nodeSelector,omitempty"`
	Selector     string               `json:"selector,omitempty"`
	Names        api.List[string]     `json:"names,omitempty"`
	Exclude      api.List[string]     `json:"exclude,omitempty"`
	// CountPods: the pods to be moved matter.
	CountPods bool   `json:"countPods,omitempty"`
	Digest    string `json:"digest,omitempty"`
}

// Listed are the nodes that match now. Unchanged: they are those of the digest that was given, and are not told again.
type Listed struct {
	Digest    string               `json:"digest"`
	Unchanged bool                 `json:"unchanged,omitempty"`
	Nodes     api.List[plan.Facts] `json:"nodes,omitempty"`
	// All counts the nodes of the cluster, and ControlPlanes its control-plane nodes; Matching those of them that match.
	All           int           `json:"all"`
	ControlPlanes ControlPlanes `json:"controlPlanes,omitzero"`
	// Missing are names that no node has, the first of them; MoreMissing counts the rest.
	Missing     []string `json:"missing,omitempty"`
	MoreMissing int      `json:"moreMissing,omitempty"`
}

// ControlPlanes counts the control-plane nodes of a cluster, and those of them that a plan matches.
type ControlPlanes struct {
	All      int `json:"all"`
	Matching int `json:"matching"`
}

// maxMissing bounds the missing names that are listed.
const maxMissing = 20

// ListPlanNodes returns which nodes match. While the shared watch of nodes runs it costs no request, except for the pods
// where they are counted.
func (a *Activities) ListPlanNodes(ctx context.Context, in ListInput) (Listed, error) {
	matches, err := in.matcher()
	if err != nil {
		return Listed{}, temporal.NewNonRetryableApplicationError(err.Error(), api.ErrorInvalidSpec, nil)
	}
	view, err := a.Nodes.View(ctx)
	if err != nil {
		return Listed{}, failure.Translate(ctx, a.Nodes.Client(), err)
	}
	defer view.Close()
	var listed Listed
	uids := map[string]types.UID{}
	for _, node := range view.List() {
		listed.All++
		uids[node.Name] = node.UID
		controlPlane, matching := nodestate.IsControlPlane(node.Labels), matches(node)
		if controlPlane {
			listed.ControlPlanes.All++
		}
		if !matching {
			continue
		}
		if controlPlane {
			listed.ControlPlanes.Matching++
		}
		listed.Nodes = append(listed.Nodes, plan.Facts{Name: node.Name, Zone: node.Labels[corev1.LabelTopologyZone]})
	}
	for _, name := range in.Names {
		if _, there := uids[name]; !there {
			listed.miss(name)
		}
	}
	if len(listed.Nodes) > plan.MaxNodes {
		return Listed{}, temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("%d nodes match: a plan takes %d at most", len(listed.Nodes), plan.MaxNodes), api.ErrorInvalidSpec, nil)
	}
	slices.SortFunc(listed.Nodes, func(a, b plan.Facts) int { return cmp.Compare(a.Name, b.Name) })
	if listed.Digest = listed.digest(uids); listed.Digest == in.Digest {
		listed.Unchanged, listed.Nodes = true, nil
		return listed, nil
	}
	if in.CountPods {
		err = a.countPods(ctx, listed.Nodes)
	}
	return listed, err
}

func (l *Listed) miss(name string) {
	if len(l.Missing) == maxMissing {
		l.MoreMissing++
		return
	}
	l.Missing = append(l.Missing, name)
}

// digest is the same for the same nodes in the same zones: one that was made anew under its name is another. Pods come and go all the time, and are no reason to take the
// nodes in another order.
func (l *Listed) digest(uids map[string]types.UID) string {
	sum := sha256.New()
	for _, n := range l.Nodes {
		fmt.Fprintf(sum, "%s %s %s\n", n.Name, n.Zone, uids[n.Name])
	}
	fmt.Fprintf(sum, "%d %v %v %d", l.All, l.ControlPlanes, l.Missing, l.MoreMissing)
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

func (in ListInput) matcher() (func(*corev1.Node) bool, error) {
	return plan.Selection{NodeSelector: in.NodeSelector, Selector: in.Selector, Nodes: in.Names, Exclude: in.Exclude}.Matcher()
}

// podsAtOnce is how many pods are read at once.
const podsAtOnce = 1000

// countPods counts the pods that a drain of each node would move.
func (a *Activities) countPods(ctx context.Context, nodes []plan.Facts) error {
	counts := map[string]int{}
	options := metav1.ListOptions{Limit: podsAtOnce, FieldSelector: "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"}
	for {
		page, err := a.Nodes.Client().CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return failure.Translate(ctx, a.Nodes.Client(), err)
		}
		for i := range page.Items {
			if pod := &page.Items[i]; !stays(pod) {
				counts[pod.Spec.NodeName]++
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	for i := range nodes {
		nodes[i].Pods = counts[nodes[i].Name]
	}
	return nil
}

// stays reports whether no drain moves a pod.
func stays(pod *corev1.Pod) bool {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet" && strings.HasPrefix(owner.APIVersion, "apps/")
}
