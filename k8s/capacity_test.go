package k8s

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func requesting(name string, requests map[corev1.ResourceName]string, change ...func(*corev1.PodSpec)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	list := corev1.ResourceList{}
	for resourceName, amount := range requests {
		list[resourceName] = resource.MustParse(amount)
	}
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list}}}
	for _, c := range change {
		c(&pod.Spec)
	}
	return pod
}

func cpu(amount string) map[corev1.ResourceName]string {
	return map[corev1.ResourceName]string{corev1.ResourceCPU: amount}
}

// roomOn is a node with some CPUs and 10 pods, all free.
func roomOn(name, cpus string, change ...func(*corev1.Node)) NodeCapacity {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpus), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("10"),
	}
	for _, c := range change {
		c(n)
	}
	return NodeCapacity{Node: n, Free: amountsOf(n.Status.Allocatable)}
}

func withLabel(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func withTaint(effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: effect}} }
}

func onlyOn(key, value string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{key: value} }
}

func affine(key string, operator corev1.NodeSelectorOperator, values ...string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}},
		}}}
	}
}

func tolerating(s *corev1.PodSpec) {
	s.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
}

func TestFit(t *testing.T) {
	leaving := roomOn("leaving", "8", withLabel("zone", "a")).Node
	for name, c := range map[string]struct {
		pods  []*corev1.Pod
		nodes []NodeCapacity
		// homeless are the names of those without a place, says what is said of the first.
		homeless []string
		says     string
		bound    bool
	}{
		"nothing to place": {nil, nil, nil, "", false},
		"room":             {[]*corev1.Pod{requesting("a", cpu("2"))}, []NodeCapacity{roomOn("n1", "2")}, nil, "", false},
		"no nodes":         {[]*corev1.Pod{requesting("a", nil)}, nil, []string{"a"}, "none of the 0 other nodes", false},
		"too large":        {[]*corev1.Pod{requesting("a", cpu("3"))}, []NodeCapacity{roomOn("n1", "2")}, []string{"a"}, "1 without room for its cpu (3)", false},
		"fills up":         {[]*corev1.Pod{requesting("a", cpu("2")), requesting("b", cpu("2"))}, []NodeCapacity{roomOn("n1", "3")}, []string{"b"}, "cpu (2)", false},
		// By name "a" would go first and leave no room for "b" on n1.
		"largest first":     {[]*corev1.Pod{requesting("a", cpu("1")), requesting("b", cpu("4"))}, []NodeCapacity{roomOn("n1", "4"), roomOn("n2", "1")}, nil, "", false},
		"memory":            {[]*corev1.Pod{requesting("a", map[corev1.ResourceName]string{"memory": "9Gi"})}, []NodeCapacity{roomOn("n1", "2")}, []string{"a"}, "memory (9Gi)", false},
		"extended resource": {[]*corev1.Pod{requesting("a", map[corev1.ResourceName]string{"nvidia.com/gpu": "1"})}, []NodeCapacity{roomOn("n1", "2")}, []string{"a"}, "nvidia.com/gpu (1)", false},
		"pods count":        {pods(11), []NodeCapacity{roomOn("n1", "2")}, []string{"p10"}, "pods (1)", false},
		"node selector":     {[]*corev1.Pod{requesting("a", nil, onlyOn("zone", "a"))}, []NodeCapacity{roomOn("n1", "2"), roomOn("n2", "2", withLabel("zone", "b"))}, []string{"a"}, "2 not selected", false},
		"selected":          {[]*corev1.Pod{requesting("a", nil, onlyOn("zone", "b"))}, []NodeCapacity{roomOn("n1", "2"), roomOn("n2", "2", withLabel("zone", "b"))}, nil, "", false},
		"affinity":          {[]*corev1.Pod{requesting("a", nil, affine("zone", corev1.NodeSelectorOpNotIn, "b"))}, []NodeCapacity{roomOn("n1", "2", withLabel("zone", "b"))}, []string{"a"}, "1 not selected", false},
		"taint":             {[]*corev1.Pod{requesting("a", nil)}, []NodeCapacity{roomOn("n1", "2", withTaint(corev1.TaintEffectNoSchedule))}, []string{"a"}, "1 with a taint", false},
		"harsher taint":     {[]*corev1.Pod{requesting("a", nil)}, []NodeCapacity{roomOn("n1", "2", withTaint(corev1.TaintEffectNoExecute))}, []string{"a"}, "1 with a taint", false},
		"soft taint":        {[]*corev1.Pod{requesting("a", nil)}, []NodeCapacity{roomOn("n1", "2", withTaint(corev1.TaintEffectPreferNoSchedule))}, nil, "", false},
		"tolerated taint":   {[]*corev1.Pod{requesting("a", nil, tolerating)}, []NodeCapacity{roomOn("n1", "2", withTaint(corev1.TaintEffectNoSchedule))}, nil, "", false},
		"bound by selector": {[]*corev1.Pod{requesting("a", nil, onlyOn(corev1.LabelHostname, "leaving"))}, []NodeCapacity{roomOn("n1", "2")}, []string{"a"}, "1 not selected", true},
		"bound by affinity": {[]*corev1.Pod{requesting("a", nil, affine(corev1.LabelHostname, corev1.NodeSelectorOpIn, "leaving"))}, []NodeCapacity{roomOn("n1", "2")}, []string{"a"}, "1 not selected", true},
	} {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprint(c.nodes)
			homeless := Fit(c.pods, leaving, c.nodes)
			var names []string
			for _, h := range homeless {
				names = append(names, h.Pod.Name)
			}
			if !slices.Equal(names, c.homeless) {
				t.Fatalf("homeless: %v, want %v", names, c.homeless)
			}
			if len(names) > 0 && (!strings.Contains(homeless[0].Message, c.says) || homeless[0].Bound != c.bound) {
				t.Errorf("%q, bound %t; want %q, %t", homeless[0].Message, homeless[0].Bound, c.says, c.bound)
			}
			if after := fmt.Sprint(c.nodes); after != before {
				t.Errorf("the nodes changed from %s to %s", before, after)
			}
		})
	}
}

func pods(n int) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range n {
		all = append(all, requesting(fmt.Sprintf("p%02d", i), nil))
	}
	return all
}

func TestRefuses(t *testing.T) {
	always := policyv1.AlwaysAllow
	ready := corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	unready := corev1.PodStatus{Phase: corev1.PodRunning}
	exhausted := policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 2, DesiredHealthy: 2, ExpectedPods: 3}
	broken := policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 1, DesiredHealthy: 2, ExpectedPods: 3}
	for name, c := range map[string]struct {
		pod    corev1.PodStatus
		budget policyv1.PodDisruptionBudgetStatus
		policy *policyv1.UnhealthyPodEvictionPolicyType
		stale  bool
		want   bool
	}{
		"allows":                          {ready, policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1}, nil, false, false},
		"allows, but out of date":         {ready, policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1}, nil, true, true},
		"exhausted":                       {ready, exhausted, nil, false, true},
		"exhausted, pod not ready":        {unready, exhausted, nil, false, false},
		"too few healthy, pod not ready":  {unready, broken, nil, false, true},
		"too few healthy, always allowed": {unready, broken, &always, false, false},
		"pod pending":                     {corev1.PodStatus{Phase: corev1.PodPending}, broken, nil, false, false},
		"pod finished":                    {corev1.PodStatus{Phase: corev1.PodSucceeded}, broken, nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			budget := &policyv1.PodDisruptionBudget{Status: c.budget, Spec: policyv1.PodDisruptionBudgetSpec{UnhealthyPodEvictionPolicy: c.policy}}
			if c.stale {
				budget.Generation = 1
			}
			if got := Refuses(budget, &corev1.Pod{Status: c.pod}); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}
