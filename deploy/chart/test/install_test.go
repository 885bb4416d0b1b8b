package chart_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// workload is what its workloads' namespace is for a release.
func (r *release) workload() string { return r.name + "-apps" }

// deployment runs pods on a node and waits until they are Ready.
func (r *release) deployment(name, node string, replicas int32) {
	r.Helper()
	deployments := r.cluster.Client.AppsV1().Deployments(r.workload())
	labels := map[string]string{"app": name}
	if _, err := deployments.Create(r.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				NodeSelector: map[string]string{corev1.LabelHostname: node},
				Containers: []corev1.Container{{
					Name: "main", Image: "registry.example/app:v1",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
				}},
			},
		}},
	}, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	r.deploymentReady(name, replicas)
}

func (r *release) deploymentReady(name string, replicas int32) {
	r.Helper()
	r.eventually("the pods of "+name+" are Ready", func() error {
		d, err := r.cluster.Client.AppsV1().Deployments(r.workload()).Get(r.ctx, name, metav1.GetOptions{})
		if err == nil && d.Status.ReadyReplicas != replicas {
			err = fmt.Errorf("%d of %d", d.Status.ReadyReplicas, replicas)
		}
		return err
	})
}

// guard keeps the pods of a Deployment from being evicted.
func (r *release) guard(name string) {
	r.Helper()
	all := intstr.FromString("100%")
	budgets := r.cluster.Client.PolicyV1().PodDisruptionBudgets(r.workload())
	if _, err := budgets.Create(r.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &all, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}},
	}, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	r.eventually("the budget of "+name+" is in force", func() error {
		b, err := budgets.Get(r.ctx, name, metav1.GetOptions{})
		if err == nil && b.Status.CurrentHealthy == 0 {
			err = errors.New("it counts no pod")
		}
		return err
	})
}

func (r *release) unguard(name string) {
	r.Helper()
	if _, err := r.cluster.Client.PolicyV1().PodDisruptionBudgets(r.workload()).Patch(r.ctx, name, types.MergePatchType,
		[]byte(`{"spec":{"minAvailable":0}}`), metav1.PatchOptions{}); err != nil {
		r.Fatal(err)
	}
}

// workers are its pods of that component.
func (r *release) workers() []corev1.Pod { return r.pods("worker") }

// pods are the pods of a component of the release that are not on their way out.
func (r *release) pods(component string) []corev1.Pod {
	r.Helper()
	list, err := r.cluster.Client.CoreV1().Pods(namespace).List(r.ctx, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/instance=" + r.name + ",app.kubernetes.io/component=" + component,
	})
	if err != nil {
		r.Fatal(err)
	}
	var pods []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

// blocked waits until a drain waits for a budget.
func (r *release) blocked(node string) {
	r.Helper()
	r.eventually("the drain of "+node+" is blocked", func() error {
		if said := r.drydock("status", node); !strings.Contains(said, "budget") {
			return errors.New(said)
		}
		return nil
	})
}

// told is a receiver of a channel's messages, which wants a token.
type told struct {
	mu     sync.Mutex
	bodies []string
}

func (c *told) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil || request.Header.Get("Authorization") != "Bearer of-the-secret" {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies = append(c.bodies, string(body))
}

func (c *told) has(text string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if all := strings.Join(c.bodies, "\n"); !strings.Contains(all, text) {
		return fmt.Errorf("it was told %q", all)
	}
	return nil
}

// A new release takes nodes out of service and brings them back: one that nobody of it runs on, and its worker's own.
func TestAReleaseDoesMaintenances(t *testing.T) {
	r := newRelease(t, "drydock")
	r.makeNamespace(r.workload(), nil)
	channel := &told{}
	receiver := httptest.NewServer(channel)
	t.Cleanup(receiver.Close)
	if _, err := r.cluster.Client.CoreV1().Secrets(namespace).Create(r.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "channels"}, StringData: map[string]string{"token": "Bearer of-the-secret"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	r.install(loadChart(t), r.values(`
secrets: [channels]
config: {channels: {events: {default: true, webhook: {url: "`+receiver.URL+`", headers: {Authorization: {file: /run/secrets/channels/token}}}}}}
`))
	t.Logf("installed, with two workers Ready, after %s", time.Since(began).Round(100*time.Millisecond))
	pods := r.workers()
	if len(pods) != 2 || pods[0].Spec.NodeName == pods[1].Spec.NodeName {
		t.Fatalf("workers %v", pods)
	}

	free := r.nodeWithout(pods)
	r.deployment("web", free, 3)
	r.drydock("start", free, "--reason", "a first try", "--wait")
	if n := len(r.accepted(r.workload())); n != 3 {
		t.Errorf("%d pods were evicted", n)
	}
	r.drydock("done", free, "--wait")
	r.eventually("the channel was told", func() error { return channel.has("MaintenanceComplete") })

	own := pods[0]
	r.deployment("app", own.Spec.NodeName, 2)
	r.drydock("start", own.Spec.NodeName, "--wait")
	if times := r.accepted(namespace)[own.Name]; times != 1 {
		t.Errorf("the worker's pod was evicted %d times", times)
	}
	r.eventually("two workers are Ready elsewhere", func() error {
		now := r.workers()
		for _, pod := range now {
			if pod.Spec.NodeName == own.Spec.NodeName {
				return fmt.Errorf("%s is on %s", pod.Name, pod.Spec.NodeName)
			}
		}
		d, err := r.cluster.Client.AppsV1().Deployments(namespace).Get(r.ctx, "drydock-worker", metav1.GetOptions{})
		if err == nil && d.Status.ReadyReplicas != 2 {
			err = fmt.Errorf("%d are Ready", d.Status.ReadyReplicas)
		}
		return err
	})
	r.drydock("done", own.Spec.NodeName, "--wait")

	r.refusedConfiguration()
	r.uninstall()
	r.nothingIsLeft()
}

// nodeWithout is a node on which none of the pods is.
func (r *release) nodeWithout(pods []corev1.Pod) string {
	r.Helper()
	nodes, err := r.cluster.Client.CoreV1().Nodes().List(r.ctx, metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	for _, node := range nodes.Items {
		free := true
		for _, pod := range pods {
			free = free && pod.Spec.NodeName != node.Name
		}
		if free {
			return node.Name
		}
	}
	r.Fatal("there is a worker on every node")
	return ""
}

// A configuration that the worker refuses and no schema knows of stops the roll: those that work stay.
func (r *release) refusedConfiguration() {
	r.Helper()
	before := r.workers()
	if err := r.upgrade(loadChart(r), values(r, "config: {scheduler: {maxParallel: 0}}"), 10*time.Second); err == nil {
		r.Error("the upgrade went well")
	}
	var refused []string
	for _, pod := range r.workers() {
		if err := r.kubelet.failure(pod.Name); err != nil {
			refused = append(refused, err.Error())
		}
	}
	if len(refused) != 1 || !strings.Contains(refused[0], "scheduler.maxParallel") {
		r.Errorf("refused %q, want one that names the field", refused)
	}
	for _, pod := range before {
		now, err := r.cluster.Client.CoreV1().Pods(namespace).Get(r.ctx, pod.Name, metav1.GetOptions{})
		if err != nil || now.DeletionTimestamp != nil {
			r.Errorf("worker %s did not stay: %v", pod.Name, err)
		}
	}
	free := r.nodeWithout(r.workers())
	r.drydock("start", free, "--wait")
	r.drydock("done", free, "--wait")
}

func (r *release) nothingIsLeft() {
	r.Helper()
	ctx, kube := r.ctx, r.cluster.Client
	_, err1 := kube.AppsV1().Deployments(namespace).Get(ctx, "drydock-worker", metav1.GetOptions{})
	_, err2 := kube.RbacV1().ClusterRoles().Get(ctx, "drydock-worker", metav1.GetOptions{})
	_, err3 := kube.RbacV1().ClusterRoleBindings().Get(ctx, "drydock-worker", metav1.GetOptions{})
	_, err4 := kube.SchedulingV1().PriorityClasses().Get(ctx, "drydock-worker", metav1.GetOptions{})
	_, err5 := kube.CoreV1().ServiceAccounts(namespace).Get(ctx, "drydock-worker", metav1.GetOptions{})
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if !apierrors.IsNotFound(err) {
			r.Errorf("it is there after helm uninstall: %v", err)
		}
	}
}

// The first version of the chart that there was goes over into this one while a drain is under way.
func TestUpgradeFromTheFirstVersionWithAMaintenanceUnderWay(t *testing.T) {
	first, err := loader.LoadFile("testdata/drydock-0.1.0.tgz")
	if err != nil {
		t.Fatal(err)
	}
	r := newRelease(t, "fleet")
	r.makeNamespace(r.workload(), nil)
	r.install(first, r.values(""))
	before := r.workers()
	node := r.nodeWithout(before)
	r.deployment("web", node, 3)
	r.deployment("db", node, 1)
	r.guard("db")
	r.drydock("start", node)
	r.blocked(node)

	began := time.Now()
	if err := r.upgrade(loadChart(t), values(t, "config: {log: {level: debug}}"), patience); err != nil {
		t.Fatalf("upgrading: %v\n%s", err, r.kubelet.logs())
	}
	t.Logf("upgraded after %s", time.Since(began).Round(100*time.Millisecond))
	r.eventually("the workers are others", func() error {
		for _, old := range before {
			now, err := r.cluster.Client.CoreV1().Pods(namespace).Get(r.ctx, old.Name, metav1.GetOptions{})
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("there is %s: %v", now.Name, err)
			}
		}
		return nil
	})
	r.blocked(node)
	r.unguard("db")
	r.eventually("the node is Ready for its requestor", func() error {
		if said := r.drydock("status", node, "-o", "json"); !strings.Contains(said, `"phase": "Ready"`) {
			return errors.New(said)
		}
		return nil
	})
	r.drydock("done", node, "--wait")
	accepted := r.accepted(r.workload())
	for pod, times := range accepted {
		if times != 1 {
			t.Errorf("pod %s was evicted %d times", pod, times)
		}
	}
	if len(accepted) != 4 {
		t.Errorf("evicted %v, want four pods", accepted)
	}
}
