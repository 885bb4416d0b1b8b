package checks_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/validation"
)

var since = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func worker(change func(n *corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "worker-01", Labels: map[string]string{"pool": "gpu"}},
		Spec: corev1.NodeSpec{
			ProviderID: "aws:///i-1", Unschedulable: true,
			Taints: []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}},
		},
		Status: corev1.NodeStatus{
			NodeInfo:    corev1.NodeSystemInfo{BootID: "boot-2"},
			Addresses:   []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "worker-01"}, {Type: corev1.NodeInternalIP, Address: "10.0.0.1"}},
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("64"), "nvidia.com/gpu": resource.MustParse("8")},
			Conditions: []corev1.NodeCondition{
				{Type: "Ready", Status: "True", LastTransitionTime: metav1.NewTime(since), Message: "kubelet is\nposting"},
				{Type: "DiskPressure", Status: "False"},
			},
		},
	}
	if change != nil {
		change(n)
	}
	return n
}

func daemonSet(name string, change func(s *appsv1.DaemonSet)) *appsv1.DaemonSet {
	s := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "kube-system", UID: types.UID(name), Labels: map[string]string{"app": name},
	}}
	if change != nil {
		change(s)
	}
	return s
}

func podOf(s *appsv1.DaemonSet, change func(p *corev1.Pod)) *corev1.Pod {
	controls := true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.Name + "-x", Namespace: s.Namespace,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: s.Name, UID: s.UID, Controller: &controls}},
		},
		Spec:   corev1.PodSpec{NodeName: "worker-01"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	if change != nil {
		change(p)
	}
	return p
}

func TestFactsOfTheNodeAreThoseAskedFor(t *testing.T) {
	kube := k8stest.NewFake(worker(nil))
	got, err := checks.Facts(t.Context(), kube, "worker-01", validation.Validation{
		Conditions: []validation.Condition{{Type: "Ready"}, {Type: "Missing"}}, Allocatable: []validation.Resource{{NameRegex: "nvidia.com/.*", AtLeast: "8"}},
	})
	want := validation.Facts{Node: validation.Node{
		Name: "worker-01", BootID: "boot-2", Allocatable: []validation.Amount{{Resource: "nvidia.com/gpu", Quantity: "8"}},
		Conditions: []validation.NodeCondition{{Type: "Ready", Status: "True", Since: since, Message: "kubelet is posting"}},
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v\n%s", err, diff)
	}
	got, err = checks.Facts(t.Context(), kube, "worker-02", validation.Validation{DaemonSets: validation.AllDaemonSets})
	if err != nil || !got.Node.Missing || got.Node.Name != "worker-02" {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestADaemonSetIsWantedAsItsControllerHasIt(t *testing.T) {
	taint := func(key string, effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect}) }
	}
	for name, c := range map[string]struct {
		node   func(*corev1.Node)
		set    func(*appsv1.DaemonSet)
		wanted int
	}{
		"cordoned":        {nil, nil, 1},
		"under Drydock's": {taint(k8s.MaintenanceTaint.Key, k8s.MaintenanceTaint.Effect), nil, 1},
		"selected":        {nil, func(s *appsv1.DaemonSet) { s.Spec.Template.Spec.NodeSelector = map[string]string{"pool": "gpu"} }, 1},
		"not selected":    {nil, func(s *appsv1.DaemonSet) { s.Spec.Template.Spec.NodeSelector = map[string]string{"pool": "cpu"} }, 0},
		"no affinity": {nil, func(s *appsv1.DaemonSet) {
			s.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"gpu"}}}}},
			}}}
		}, 0},
		"another node":  {nil, func(s *appsv1.DaemonSet) { s.Spec.Template.Spec.NodeName = "worker-02" }, 0},
		"foreign taint": {taint("gpu", corev1.TaintEffectNoSchedule), nil, 0},
		"preference":    {taint("gpu", corev1.TaintEffectPreferNoSchedule), nil, 1},
		"tolerated": {taint("gpu", corev1.TaintEffectNoExecute), func(s *appsv1.DaemonSet) {
			s.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}, 1},
		"not ready":          {taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute), nil, 1},
		"network is away":    {taint(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule), nil, 0},
		"brings the network": {taint(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule), func(s *appsv1.DaemonSet) { s.Spec.Template.Spec.HostNetwork = true }, 1},
		"is being deleted": {nil, func(s *appsv1.DaemonSet) {
			s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: since}, []string{"a/b"}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			kube := k8stest.NewFake(worker(c.node), daemonSet("cni", c.set))
			got, err := checks.Facts(t.Context(), kube, "worker-01", validation.Validation{DaemonSets: validation.AllDaemonSets})
			if err != nil || got.DaemonSets.Selected != 1 || got.DaemonSets.Wanted != c.wanted || len(got.DaemonSets.Lacking) != c.wanted {
				t.Fatalf("got %+v, %v; want %d", got.DaemonSets, err, c.wanted)
			}
		})
	}
}

func TestWhatADaemonSetLacks(t *testing.T) {
	cni := daemonSet("cni", nil)
	unready := func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
	for name, c := range map[string]struct {
		node func(*corev1.Node)
		pods []runtime.Object
		want string
	}{
		"nothing":             {nil, []runtime.Object{podOf(cni, nil)}, ""},
		"its pod":             {nil, nil, "has no pod there; its controller"},
		"its pod, by taint":   {func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, k8s.MaintenanceTaint) }, nil, "gets none while the node has the taint drydock.dev/maintenance"},
		"its pod, elsewhere":  {nil, []runtime.Object{podOf(cni, func(p *corev1.Pod) { p.Spec.NodeName = "worker-02" })}, "has no pod there"},
		"its pod, leaving":    {nil, []runtime.Object{podOf(cni, func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: since}, []string{"a/b"} })}, "has no pod there"},
		"its pod, of another": {nil, []runtime.Object{podOf(daemonSet("csi", nil), nil)}, "has no pod there"},
		"readiness":           {nil, []runtime.Object{podOf(cni, unready)}, "has pod cni-x, which is not Ready: Running"},
		"its image": {nil, []runtime.Object{podOf(cni, func(p *corev1.Pod) {
			unready(p)
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agent", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
		})}, "which is not Ready: agent ImagePullBackOff"},
	} {
		t.Run(name, func(t *testing.T) {
			kube := k8stest.NewFake(append(c.pods, worker(c.node), cni)...)
			off := false
			v := validation.Validation{DaemonSets: "app=cni", Ready: &off}
			facts, err := checks.Facts(t.Context(), kube, "worker-01", v)
			if err != nil {
				t.Fatal(err)
			}
			report := validation.Decide(v, facts, since)
			if report.AllGood != (c.want == "") || !strings.Contains(report.Results[0].Message, c.want) {
				t.Fatalf("got %+v, want %q", report, c.want)
			}
		})
	}
}

func TestFactsReportErrors(t *testing.T) {
	refused := errors.New("refused")
	for _, what := range []string{"nodes", "pods", "daemonsets"} {
		kube := k8stest.NewFake(worker(nil))
		kube.PrependReactor("*", what, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refused })
		if _, err := checks.Facts(t.Context(), kube, "worker-01", validation.Validation{DaemonSets: "a=b"}); !errors.Is(err, refused) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if _, err := checks.Facts(t.Context(), k8stest.NewFake(worker(nil)), "worker-01", validation.Validation{DaemonSets: "a in b"}); err == nil || !strings.Contains(err.Error(), "daemonSets: ") {
		t.Errorf("got %v", err)
	}
}

func TestDescribe(t *testing.T) {
	kube := k8stest.NewFake(worker(nil))
	got, err := checks.Describe(t.Context(), kube, checks.Subject{Node: "worker-01", Reason: "r"})
	if want := (checks.Subject{Node: "worker-01", Reason: "r", InternalIP: "10.0.0.1", ProviderID: "aws:///i-1"}); err != nil || got != want {
		t.Fatalf("got %+v, %v", got, err)
	}
	if got, err = checks.Describe(t.Context(), kube, checks.Subject{Node: "gone"}); err != nil || got != (checks.Subject{Node: "gone"}) {
		t.Fatalf("got %+v, %v", got, err)
	}
}
