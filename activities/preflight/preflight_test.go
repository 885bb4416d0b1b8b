package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	k8stesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/activities/reporting"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/spec"
)

func readyNode(name, cpus string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpus), corev1.ResourcePods: resource.MustParse("110")},
	}}
}

// owned is a running pod on n1 that an owner creates anew; without a kind it is bare.
func owned(name, kind, cpus string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpus)}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	if kind != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, Controller: new(true)}}
	}
	return pod
}

func budgetOf(name, app string, allowed int32) *policyv1.PodDisruptionBudget {
	least := intstr.FromInt32(1)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1},
	}
}

// preflightsOf look at a cluster of some objects, in which the worker may do all but what denied names, "verb resource".
func preflightsOf(denied string, objects ...runtime.Object) (*Activities, k8stest.Fake) {
	client := k8stest.NewFake(objects...)
	client.PrependReactor("create", "selfsubjectaccessreviews", func(action k8stesting.Action) (bool, runtime.Object, error) {
		review := action.(k8stesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		asked := review.Spec.ResourceAttributes
		review.Status.Allowed = asked.Verb+" "+asked.Resource != denied
		return true, review, nil
	})
	client.PrependReactor("list", "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
		if "list "+action.GetResource().Resource == denied {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: action.GetResource().Resource}, "",
				fmt.Errorf("User \"drydock\" cannot list resource %q in API group \"\" at the cluster scope", action.GetResource().Resource))
		}
		return false, nil, nil
	})
	budgets := budgetsFunc(func(ctx context.Context, _ map[string]bool) ([]*policyv1.PodDisruptionBudget, error) {
		list, err := client.All.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		var all []*policyv1.PodDisruptionBudget
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
		return all, nil
	})
	return &Activities{Client: client, Budgets: budgets, Capacity: k8s.NewCapacityReader(client), first: 10 * time.Millisecond, last: 10 * time.Millisecond}, client
}

func drainBy(t *testing.T, drain string) spec.Drain {
	t.Helper()
	m, err := spec.Decode([]byte(`{"node":"n1","drain":`+drain+`}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m.Drain
}

func TestCheckPreflightGathersWhatADrainWouldMeet(t *testing.T) {
	shy := owned("shy", "ReplicaSet", "1")
	shy.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
	p, client := preflightsOf("watch poddisruptionbudgets",
		readyNode("n1", "8"), readyNode("n2", "4"), readyNode("n3", "100"),
		owned("web", "ReplicaSet", "1"), owned("big", "ReplicaSet", "6"), owned("bare", "", "1"), shy,
		owned("agent", "DaemonSet", "1"), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "agent"}},
		budgetOf("strict", "web", 0), budgetOf("one", "shy", 1), budgetOf("two", "shy", 1), budgetOf("elsewhere", "other", 0),
	)
	r, err := p.CheckPreflight(t.Context(), Input{Node: "n1", Drain: drainBy(t, `{}`), Together: []string{"n3"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		code preflight.Code
		text string
	}{
		{preflight.MissingPermission, "watch poddisruptionbudgets in API group policy"},
		{preflight.MissingConsent, "ns/bare: no controller"},
		{preflight.ImpossibleBudget, "ns/strict"},
		{preflight.OverlappingBudget, "ns/one, ns/two"},
		{preflight.NoRoom, "ns/big: fits on none of the 1 other nodes"},
	} {
		found := false
		for _, f := range r.Problems {
			found = found || f.Code == want.code && strings.Contains(f.String(), want.text)
		}
		if !found {
			t.Errorf("no %s with %q in %+v", want.code, want.text, r.Problems)
		}
	}
	if r.ProblemCount() != 5 || len(r.Warnings) != 1 || r.Warnings[0].Code != preflight.Protected {
		t.Errorf("problems %+v\nwarnings %+v", r.Problems, r.Warnings)
	}
	if len(r.Budgets) != 3 || r.Counts[preflight.Skip] != 1 || r.Counts[preflight.Evict] != 3 || r.Room.Pods != 3 {
		t.Errorf("budgets %+v, counts %v, room %+v", r.Budgets, r.Counts, r.Room)
	}
	for _, a := range client.Actions() {
		if verb := a.GetVerb(); verb != "get" && verb != "list" && a.GetResource().Resource != "selfsubjectaccessreviews" {
			t.Errorf("it did %s %s", verb, a.GetResource().Resource)
		}
	}
}

func TestCheckPreflightAsksForTheEmptyDirsOfDaemonSets(t *testing.T) {
	agent := owned("agent", "DaemonSet", "1")
	agent.Spec.Volumes = []corev1.Volume{{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	for drain, want := range map[string]preflight.Action{
		`{"plan":{"include":["DaemonSet"]}}`:                       preflight.Refuse,
		`{"plan":{"include":["DaemonSet"]},"deleteEmptyDir":true}`: preflight.Delete,
		`{"plan":{"include":["Default"]}}`:                         preflight.Skip,
		`{}`:                                                       preflight.Skip,
	} {
		p, _ := preflightsOf("", readyNode("n1", "8"), agent, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "agent"}})
		r, err := p.CheckPreflight(t.Context(), Input{Node: "n1", Drain: drainBy(t, drain)})
		if err != nil || r.Counts[want] != 1 || r.Has(preflight.MissingConsent) != (want == preflight.Refuse) {
			t.Errorf("%s: %v, pods %+v, problems %+v, want %s", drain, err, r.Pods, r.Problems, want)
		}
	}
}

func TestCheckPreflightWhereItMayNotLook(t *testing.T) {
	p, _ := preflightsOf("list poddisruptionbudgets", readyNode("n1", "8"), readyNode("n2", "8"), owned("web", "ReplicaSet", "1"))
	r, err := p.CheckPreflight(t.Context(), Input{Node: "n1", Drain: drainBy(t, `{}`)})
	if err != nil || r.ProblemCount() != 1 || !r.Has(preflight.MissingPermission) || len(r.Warnings) != 1 || r.Warnings[0].Code != preflight.NotChecked {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestCheckPreflightIsTriedAgainWhereNobodyConfirmsARefusal(t *testing.T) {
	p, client := preflightsOf("", readyNode("n1", "8"))
	client.PrependReactor("list", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("a policy says no"))
	})
	if r, err := p.CheckPreflight(t.Context(), Input{Node: "n1", Drain: drainBy(t, `{}`)}); err == nil || activitytest.ErrorType(err) != "" {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestCheckPreflightOfANodeThatIsNotThere(t *testing.T) {
	p, _ := preflightsOf("", readyNode("node-01", "8"))
	r, err := p.CheckPreflight(t.Context(), Input{Node: "nod-01", Drain: drainBy(t, `{}`)})
	if err != nil || !r.Has(preflight.NodeMissing) || !strings.Contains(r.Summary(1), "node-01") {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestAwaitPreflightEndsWhenNothingStopsTheDrain(t *testing.T) {
	p, client := preflightsOf("", readyNode("n1", "8"), owned("bare", "", "1"))
	looks := 0
	client.PrependReactor("get", "nodes", func(k8stesting.Action) (bool, runtime.Object, error) {
		if looks++; looks == 3 {
			return false, nil, client.All.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "ns", "bare")
		}
		return false, nil, nil
	})
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(p)
	value, err := env.ExecuteActivity(p.AwaitPreflight, Input{Node: "n1", Drain: drainBy(t, `{}`)})
	if err != nil {
		t.Fatal(err)
	}
	var r preflight.Report
	if err := value.Get(&r); err != nil || r.ProblemCount() != 0 || looks != 3 {
		t.Errorf("%v, %+v after %d looks", err, r, looks)
	}
}

func TestAwaitPreflightLeavesAStoppingWorker(t *testing.T) {
	p, _ := preflightsOf("", readyNode("n1", "8"), owned("bare", "", "1"))
	p.first = time.Hour
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(p)
	stop := make(chan struct{})
	env.SetWorkerStopChannel(stop)
	time.AfterFunc(100*time.Millisecond, func() { close(stop) })
	_, err := env.ExecuteActivity(p.AwaitPreflight, Input{Node: "n1", Drain: drainBy(t, `{}`)})
	if err == nil || !strings.Contains(err.Error(), api.ErrorWorkerStopping) {
		t.Error(err)
	}
}

func TestWhatAPreflightWaitsForIsBoundedAndKeepsItsTime(t *testing.T) {
	r := preflight.Report{At: time.Unix(100, 0)}
	for range 15 {
		r.Problems = append(r.Problems, preflight.Finding{Code: preflight.NoRoom, Object: "pod " + string(rune('a'+len(r.Problems)))})
	}
	since := map[string]time.Time{}
	first := waitsFor(r, since)
	if len(first.Blockers) != reporting.MaxBlockers || first.MoreBlockers != 15-reporting.MaxBlockers {
		t.Errorf("%+v", first)
	}
	r.At = time.Unix(200, 0)
	r.Problems = append(r.Problems[1:2:2], preflight.Finding{Code: preflight.NoRoom, Object: "pod a"})
	again := waitsFor(r, since)
	if !again.Blockers[0].Since.Equal(time.Unix(100, 0)) || len(since) != 2 {
		t.Errorf("%+v, %v", again, since)
	}
}

type budgetsFunc func(ctx context.Context, namespaces map[string]bool) ([]*policyv1.PodDisruptionBudget, error)

func (f budgetsFunc) BudgetsIn(ctx context.Context, namespaces map[string]bool) ([]*policyv1.PodDisruptionBudget, error) {
	return f(ctx, namespaces)
}
