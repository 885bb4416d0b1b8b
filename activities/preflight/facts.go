package preflight

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/nodestate"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/spec"
)

// facts gathers what the decision is made of.
func (p *Activities) facts(ctx context.Context, in Input) (preflight.Facts, error) {
	facts := preflight.Facts{At: time.Now().UTC(), Node: preflight.Node{Name: in.Node, Ready: true}}
	if err := p.permissions(ctx, in, &facts); err != nil {
		return facts, err
	}
	node, err := p.Client.CoreV1().Nodes().Get(ctx, in.Node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		facts.Node.Missing = true
		facts.Node.Similar = p.similar(ctx, in.Node)
		return facts, nil
	case err == nil:
		facts.Node.Ready = nodestate.IsReady(node)
	case p.unchecked(ctx, err, "the node", &facts) != nil:
		return facts, fmt.Errorf("reading node %s: %w", in.Node, err)
	default:
		node = nil
	}
	pods, err := k8s.PodsOn(ctx, p.Client, in.Node)
	if err := p.unchecked(ctx, err, "the pods on the node", &facts); err != nil {
		return facts, err
	}
	budgets, err := p.Budgets.BudgetsIn(ctx, namespacesOf(pods))
	if err := p.unchecked(ctx, err, "the budgets", &facts); err != nil {
		return facts, err
	}
	if err := p.pods(ctx, in.Drain, pods, budgets, &facts); err != nil {
		return facts, err
	}
	return facts, p.room(ctx, in, node, pods, &facts)
}

// unchecked takes a missing permission as something that could not be looked at, and returns every other error.
func (p *Activities) unchecked(ctx context.Context, err error, what string, facts *preflight.Facts) error {
	if err == nil || !k8s.Denied(ctx, p.Client, err) {
		return err
	}
	facts.Unchecked = append(facts.Unchecked, notLookedAt(what, err))
	return nil
}

// uncheckedPermissions takes a refusal to tell permissions as something that could not be looked at: nobody can confirm it.
func uncheckedPermissions(err error, facts *preflight.Facts) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	facts.Unchecked = append(facts.Unchecked, notLookedAt("the worker's permissions", err))
	return nil
}

func notLookedAt(what string, err error) string {
	return fmt.Sprintf("%s could not be looked at: %v", what, err)
}

func (p *Activities) permissions(ctx context.Context, in Input, facts *preflight.Facts) error {
	needs := preflight.Needs(in.Drain, in.WaitsForPods)
	requests := make([]authorizationv1.ResourceAttributes, len(needs))
	for i, need := range needs {
		requests[i] = need.ResourceAttributes
	}
	allowed, err := k8s.MayDo(ctx, p.Client, requests)
	if err != nil {
		return uncheckedPermissions(err, facts)
	}
	for i, need := range needs {
		if !allowed[i] {
			facts.Denied = append(facts.Denied, need)
		}
	}
	return nil
}

// similar are names of nodes that may be meant. It is a courtesy: that it cannot be found out is no error.
func (p *Activities) similar(ctx context.Context, name string) []string {
	nodes, err := p.Capacity.Read(ctx)
	if err != nil {
		return nil
	}
	var names []string
	for _, n := range nodes {
		names = append(names, n.Node.Name)
	}
	return k8s.Similar(name, names)
}

func namespacesOf(pods []*corev1.Pod) map[string]bool {
	namespaces := map[string]bool{}
	for _, pod := range pods {
		namespaces[pod.Namespace] = true
	}
	return namespaces
}

func (p *Activities) pods(ctx context.Context, drain spec.Drain, pods []*corev1.Pod, budgets []*policyv1.PodDisruptionBudget, facts *preflight.Facts) error {
	var regexps []string
	for _, filter := range drain.PodEvictionFilters {
		regexps = append(regexps, filter.ByResourceNameRegex)
	}
	choose, err := k8s.NewSelection(drain.PodSelector, regexps)
	if err != nil {
		return err
	}
	choose = choose.Sparing(p.JobNamespaces)
	classify := k8s.NewClassifier(p.Client, drain.Force, drain.DeleteEmptyDir)
	described := map[string]int{}
	for _, pod := range pods {
		verdict, err := classify.Classify(ctx, pod)
		if err != nil {
			return err
		}
		f := podFacts(pod, verdict, drain.DeleteEmptyDir)
		f.Selected, f.NotDrained = choose.Selects(pod), !drain.Namespaces.Has(pod.Namespace)
		if !k8s.OutsideBudgets(pod) {
			for _, budget := range k8s.BudgetsOf(pod, budgets) {
				name := budget.Namespace + "/" + budget.Name
				refuses := k8s.Refuses(budget, pod)
				f.Budgets = append(f.Budgets, preflight.Asked{Budget: name, Refuses: refuses})
				at, known := described[name]
				if !known {
					at = len(facts.Budgets)
					described[name] = at
					facts.Budgets = append(facts.Budgets, budgetFacts(budget))
				}
				// What would unblock it depends on the pod: a refused one says more.
				if refuses || facts.Budgets[at].Message == "" {
					facts.Budgets[at].Message = k8s.Unblock(budget, pod)
				}
			}
		}
		facts.Pods = append(facts.Pods, f)
	}
	return nil
}

func podFacts(pod *corev1.Pod, verdict k8s.Verdict, deleteEmptyDir bool) preflight.PodFacts {
	f := preflight.PodFacts{
		Name: k8s.PodName(pod), Type: drainplan.Default, Labels: pod.Labels,
		Terminating: pod.DeletionTimestamp != nil, Finished: k8s.IsFinished(pod),
		Returns: k8s.ToleratesMaintenance(pod),
	}
	if pod.Spec.Priority != nil {
		f.Priority = *pod.Spec.Priority
	}
	switch {
	case verdict.Class == k8s.Skip && verdict.Reason == k8s.DaemonSetPod:
		f.Type = drainplan.DaemonSet
		if !deleteEmptyDir && k8s.HasEmptyDir(pod) {
			// kubectl's filters skip it before they look at its volumes; a tier of DaemonSets deletes it.
			f.Refusal, f.Message = k8s.WithoutStorageConsent.Reason, k8s.WithoutStorageConsent.Message
		}
	case verdict.Class == k8s.Skip && verdict.Reason == k8s.StaticPod:
		f.Type = drainplan.Static
	case verdict.Class == k8s.Refuse:
		f.Refusal, f.Message = verdict.Reason, verdict.Message
	}
	f.Wish = k8s.WishOf(pod)
	return f
}

func budgetFacts(budget *policyv1.PodDisruptionBudget) preflight.Budget {
	s := budget.Status
	return preflight.Budget{
		Budget: budget.Namespace + "/" + budget.Name, Allowed: s.DisruptionsAllowed, Healthy: s.CurrentHealthy,
		Desired: s.DesiredHealthy, Pods: s.ExpectedPods, Impossible: k8s.Impossible(budget),
	}
}

// room looks whether the pods that leave find a place: those that a controller creates anew anywhere.
func (p *Activities) room(ctx context.Context, in Input, node *corev1.Node, pods []*corev1.Pod, facts *preflight.Facts) error {
	if in.Drain.Mode != spec.ModeEvict && in.Drain.Mode != spec.ModeWait {
		return nil
	}
	leaving, err := preflight.Leaving(in.Drain, facts.Pods)
	if err != nil {
		return err
	}
	var moving []*corev1.Pod
	for i, pod := range pods {
		if leaving[i] && metav1.GetControllerOf(pod) != nil {
			moving = append(moving, pod)
		}
	}
	all, err := p.Capacity.Read(ctx)
	if err != nil {
		return p.unchecked(ctx, err, "the room on other nodes", facts)
	}
	nodes := k8s.Without(all, append([]string{in.Node}, in.Together...)...)
	room := &preflight.Room{Nodes: len(nodes), Pods: len(moving)}
	for _, h := range k8s.Fit(moving, node, nodes) {
		room.Unplaced = append(room.Unplaced, preflight.Unplaced{Pod: k8s.PodName(h.Pod), Message: h.Message, Bound: h.Bound})
	}
	facts.Room = room
	return nil
}
