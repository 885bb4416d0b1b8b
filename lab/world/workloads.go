package world

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// What the simulated kubelets obey: annotations of a pod that say how long it takes to end, and to complete, and a label that takes a node
// down.
const (
	TerminationDelay = "devcluster.drydock.dev/termination-delay"
	CompletionDelay  = "devcluster.drydock.dev/completion-delay"
	NotReadyLabel    = "devcluster.drydock.dev/not-ready"
)

// App is the label that says to which workload a pod belongs.
const App = "app"

// Pods is the template of a workload's pods.
func Pods(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{App: app}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "registry.example/app:v1"}}, AutomountServiceAccountToken: new(false),
		},
	}
}

// Namespace is where workloads are made, each of the name that its pods have as their label App.
type Namespace struct {
	Kube kubernetes.Interface
	Name string
}

// Create makes the namespace.
func (n Namespace) Create(ctx context.Context) error {
	_, err := n.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}, metav1.CreateOptions{})
	return err
}

// Runs waits until so many pods run in the namespace.
func (n Namespace) Runs(ctx context.Context, limit time.Duration, pods int) error {
	return Eventually(ctx, limit, fmt.Sprintf("%d pods run", pods), func() error {
		list, err := n.Kube.CoreV1().Pods(n.Name).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
		if err == nil && len(list.Items) != pods {
			err = fmt.Errorf("%d run", len(list.Items))
		}
		return err
	})
}

// Deployment runs pods that may move.
func (n Namespace) Deployment(ctx context.Context, pods corev1.PodTemplateSpec, replicas int32) error {
	_, err := n.Kube.AppsV1().Deployments(n.Name).Create(ctx, &appsv1.Deployment{
		ObjectMeta: named(pods), Spec: appsv1.DeploymentSpec{Replicas: &replicas, Template: pods, Selector: selecting(pods)},
	}, metav1.CreateOptions{})
	return err
}

// StatefulSet runs pods that keep their names.
func (n Namespace) StatefulSet(ctx context.Context, pods corev1.PodTemplateSpec, replicas int32) error {
	_, err := n.Kube.AppsV1().StatefulSets(n.Name).Create(ctx, &appsv1.StatefulSet{
		ObjectMeta: named(pods), Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Template: pods, Selector: selecting(pods), ServiceName: pods.Labels[App],
			PodManagementPolicy: appsv1.ParallelPodManagement,
		},
	}, metav1.CreateOptions{})
	return err
}

// DaemonSet runs a pod on each node that the pods' selector takes.
func (n Namespace) DaemonSet(ctx context.Context, pods corev1.PodTemplateSpec) error {
	_, err := n.Kube.AppsV1().DaemonSets(n.Name).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: named(pods), Spec: appsv1.DaemonSetSpec{Template: pods, Selector: selecting(pods)},
	}, metav1.CreateOptions{})
	return err
}

// Budget makes a disruption budget of some name over the pods of a workload.
func (n Namespace) Budget(ctx context.Context, name, app string, spec policyv1.PodDisruptionBudgetSpec) error {
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{App: app}}
	_, err := n.Kube.PolicyV1().PodDisruptionBudgets(n.Name).Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	}, metav1.CreateOptions{})
	return err
}

func named(pods corev1.PodTemplateSpec) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: pods.Labels[App]}
}

func selecting(pods corev1.PodTemplateSpec) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{App: pods.Labels[App]}}
}
