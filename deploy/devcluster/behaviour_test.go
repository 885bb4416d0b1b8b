package main

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// testBehaviour checks in a running cluster what tests of Drydock rely on.
func testBehaviour(t *testing.T, run *upRun) {
	client := run.client(t)
	t.Run("budget", func(t *testing.T) { testBudget(t, client) })
	t.Run("not-ready node", func(t *testing.T) { testNotReadyNode(t, client) })
	t.Run("replaced node", func(t *testing.T) { testReplacedNode(t, client) })
	t.Run("termination delay", func(t *testing.T) { testTerminationDelay(t, client) })
	t.Run("finalizer", func(t *testing.T) { testFinalizer(t, client) })
	t.Run("never ready", func(t *testing.T) { testNeverReady(t, client) })
	t.Run("never start", func(t *testing.T) { testNeverStart(t, client) })
	t.Run("job", func(t *testing.T) { testJob(t, client) })
	t.Run("init containers", func(t *testing.T) { testInitContainers(t, client) })
	t.Run("service account", func(t *testing.T) { testServiceAccount(t, run.config(t)) })
}

var background = context.Background()

func testBudget(t *testing.T, client kubernetes.Interface) {
	pod := mustCreatePod(t, client, testPod("guarded", nil, nil))
	waitPod(t, client, pod.Name, podReady)
	one := intstr.FromInt32(1)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "guard"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}},
	}
	budgets := client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault)
	if _, err := budgets.Create(background, budget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the disruption controller has judged the budget", func() error {
		current, err := budgets.Get(background, budget.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if current.Status.CurrentHealthy != 1 {
			return fmt.Errorf("status %+v", current.Status)
		}
		return nil
	})
	err := evict(client, pod.Name)
	if !apierrors.IsTooManyRequests(err) || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		t.Errorf("evict a guarded pod: %v, want 429 with cause %s", err, policyv1.DisruptionBudgetCause)
	}
	if err := budgets.Delete(background, budget.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod is evicted without the budget", func() error { return evict(client, pod.Name) })
	waitPodGone(t, client, pod)
}

func evict(client kubernetes.Interface, pod string) error {
	return client.PolicyV1().Evictions(metav1.NamespaceDefault).Evict(background,
		&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: metav1.NamespaceDefault}})
}

func testNotReadyNode(t *testing.T, client kubernetes.Interface) {
	const name = "worker-02"
	pod := testPod("on-the-node", nil, nil)
	pod.Spec.NodeName = name
	pod = mustCreatePod(t, client, pod)
	waitPod(t, client, pod.Name, podReady)
	before := metav1.Now()

	for _, step := range []struct {
		label    string
		want     corev1.ConditionStatus
		podReady bool
	}{
		{`"true"`, corev1.ConditionFalse, true}, {"null", corev1.ConditionTrue, true},
		{`"unknown"`, corev1.ConditionUnknown, false}, {"null", corev1.ConditionTrue, true},
	} {
		mustPatchNode(t, client, name, fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, notReadyLabel, step.label))
		condition := waitNodeReadyIs(t, client, name, step.want)
		if condition.LastTransitionTime.Add(2 * time.Second).Before(before.Time) {
			t.Errorf("Ready became %s at %s, before the test", step.want, condition.LastTransitionTime)
		}
		waitPod(t, client, pod.Name, func(pod *corev1.Pod) error {
			if ready := podReady(pod) == nil; ready != step.podReady {
				return fmt.Errorf("its pod's conditions: %+v", pod.Status.Conditions)
			}
			return nil
		})
		if step.want != corev1.ConditionFalse {
			continue
		}
		// It stays so through the heartbeats that follow.
		expectLeaseRenewal(t, client, name)
		if status := mustNodeReadyStatus(t, client, name); status != step.want {
			t.Errorf("Ready is %s after a heartbeat, want %s", status, step.want)
		}
	}
	mustDelete(t, client, pod.Name)
}

// testReplacedNode deletes a node and makes it again, as re-imaging does.
func testReplacedNode(t *testing.T, client kubernetes.Interface) {
	const name = "worker-03"
	nodes := client.CoreV1().Nodes()
	for range 2 {
		if err := nodes.Delete(background, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		replacement := (nodeSpec{prefix: "worker-", workers: 3, labels: map[string]string{"pool": "gpu"}}).build()[2]
		if _, err := nodes.Create(background, replacement, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		waitNodeReadyIs(t, client, name, corev1.ConditionTrue)
		mustPatchNode(t, client, name, fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}}}`, notReadyLabel))
		waitNodeReadyIs(t, client, name, corev1.ConditionFalse)
		mustPatchNode(t, client, name, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, notReadyLabel))
		waitNodeReadyIs(t, client, name, corev1.ConditionTrue)
	}
}

func testTerminationDelay(t *testing.T, client kubernetes.Interface) {
	const delay = 3 * time.Second
	slow := mustCreatePod(t, client, testPod("slow", nil, map[string]string{terminationDelayKey: delay.String()}))
	labelled := mustCreatePod(t, client, testPod("slow-by-label", map[string]string{terminationDelayKey: delay.String()}, nil))
	quick := mustCreatePod(t, client, testPod("quick", nil, nil))
	for _, pod := range []*corev1.Pod{slow, labelled, quick} {
		waitPod(t, client, pod.Name, podReady)
	}
	for _, pod := range []*corev1.Pod{slow, labelled} {
		mustDelete(t, client, pod.Name)
		time.Sleep(time.Second)
		changed := time.Now()
		mustPatchPod(t, client, pod.Name, `{"metadata":{"labels":{"changed":"meanwhile"}}}`)
		current, err := client.CoreV1().Pods(pod.Namespace).Get(background, pod.Name, metav1.GetOptions{})
		// Gone already on a slow machine: the time it took decides below.
		if !apierrors.IsNotFound(err) && (err != nil || current.DeletionTimestamp == nil || podReady(current) != nil) {
			t.Errorf("%s is not terminating and running: %v, %+v", pod.Name, err, current)
		}
		waitPodGone(t, client, pod)
		if took := time.Since(changed); took < delay {
			t.Errorf("%s was gone %s after its change, want %s", pod.Name, took, delay)
		}
	}
	mustDelete(t, client, quick.Name)
	waitPodGone(t, client, quick)

	forced := mustCreatePod(t, client, testPod("forced", nil, map[string]string{terminationDelayKey: "1h"}))
	waitPod(t, client, forced.Name, podReady)
	mustDelete(t, client, forced.Name)
	if err := client.CoreV1().Pods(forced.Namespace).Delete(background, forced.Name, *metav1.NewDeleteOptions(0)); err != nil {
		t.Fatal(err)
	}
	waitPodGone(t, client, forced)
}

func testFinalizer(t *testing.T, client kubernetes.Interface) {
	pod := testPod("held", nil, nil)
	pod.Finalizers = []string{"devcluster.drydock.dev/hold"}
	pod = mustCreatePod(t, client, pod)
	waitPod(t, client, pod.Name, podReady)
	mustDelete(t, client, pod.Name)
	waitPod(t, client, pod.Name, func(pod *corev1.Pod) error {
		if grace := pod.DeletionGracePeriodSeconds; grace == nil || *grace != 0 {
			return fmt.Errorf("its kubelet has not ended it: %+v", pod.ObjectMeta)
		}
		return nil
	})
	mustPatchPod(t, client, pod.Name, `{"metadata":{"finalizers":null}}`)
	waitPodGone(t, client, pod)
}

func testNeverReady(t *testing.T, client kubernetes.Interface) {
	pod := mustCreatePod(t, client, testPod("never-ready", map[string]string{neverReadyLabel: "true"}, nil))
	runsUnready := func(pod *corev1.Pod) error {
		if pod.Status.Phase != corev1.PodRunning || podReady(pod) == nil {
			return fmt.Errorf("status %+v", pod.Status)
		}
		return nil
	}
	waitPod(t, client, pod.Name, runsUnready)
	for _, step := range []struct {
		label string
		want  func(*corev1.Pod) error
	}{{"null", podReady}, {`"true"`, runsUnready}} {
		mustPatchPod(t, client, pod.Name, fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, neverReadyLabel, step.label))
		waitPod(t, client, pod.Name, step.want)
	}
	mustDelete(t, client, pod.Name)
	waitPodGone(t, client, pod)
}

func testNeverStart(t *testing.T, client kubernetes.Interface) {
	stuck := mustCreatePod(t, client, testPod("never-start", map[string]string{neverStartLabel: "true"}, nil))
	waitPod(t, client, stuck.Name, func(pod *corev1.Pod) error {
		if pod.Spec.NodeName == "" {
			return fmt.Errorf("not bound yet")
		}
		return nil
	})
	// Pods are attended to in about their order: once a later one runs, this one was passed over.
	later := mustCreatePod(t, client, testPod("later", nil, nil))
	waitPod(t, client, later.Name, podReady)
	pod, err := client.CoreV1().Pods(stuck.Namespace).Get(background, stuck.Name, metav1.GetOptions{})
	if err != nil || pod.Status.Phase != corev1.PodPending {
		t.Errorf("phase %s (%v), want Pending", pod.Status.Phase, err)
	}
	for _, pod := range []*corev1.Pod{stuck, later} {
		mustDelete(t, client, pod.Name)
		waitPodGone(t, client, pod)
	}
}

func testJob(t *testing.T, client kubernetes.Interface) {
	const delay = time.Second
	pod := testPod("", nil, map[string]string{completionDelayKey: delay.String()})
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}},
	}
	jobs := client.BatchV1().Jobs(metav1.NamespaceDefault)
	if _, err := jobs.Create(background, job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	created := time.Now()
	eventually(t, "the job succeeds", func() error {
		current, err := jobs.Get(background, job.Name, metav1.GetOptions{})
		if err == nil && current.Status.Succeeded != 1 {
			err = fmt.Errorf("status %+v", current.Status)
		}
		return err
	})
	if took := time.Since(created); took < delay {
		t.Errorf("the job succeeded after %s, want %s", took, delay)
	}
}

func testInitContainers(t *testing.T, client kubernetes.Interface) {
	always := corev1.ContainerRestartPolicyAlways
	pod := testPod("init", nil, nil)
	pod.Spec.InitContainers = []corev1.Container{
		{Name: "first", Image: "registry.example/init:v1"},
		{Name: "sidecar", Image: "registry.example/sidecar:v1", RestartPolicy: &always},
	}
	pod = mustCreatePod(t, client, pod)
	waitPod(t, client, pod.Name, podReady)
	mustDelete(t, client, pod.Name)
	waitPodGone(t, client, pod)
}

// testServiceAccount uses a token with few rights, as a worker under test does.
func testServiceAccount(t *testing.T, admin *rest.Config) {
	client := mustClient(t, admin)
	const name = "reader"
	_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Create(background,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}},
	}}
	if _, err := client.RbacV1().ClusterRoles().Create(background, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: metav1.NamespaceDefault, Name: name}},
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(background, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).CreateToken(background, name, tokenRequest(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	restricted := rest.AnonymousClientConfig(admin)
	restricted.BearerToken = token.Status.Token
	reader := mustClient(t, restricted)
	eventually(t, "the service account lists nodes", func() error {
		_, err := reader.CoreV1().Nodes().List(background, metav1.ListOptions{})
		return err
	})
	if _, err := reader.CoreV1().Pods(metav1.NamespaceAll).List(background, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the service account lists pods: %v, want %d", err, http.StatusForbidden)
	}
}
