package site

import (
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"drydock.dev/drydock/lab/world"
)

// Option changes the pods of a workload.
type Option func(*corev1.PodTemplateSpec)

// On pins pods to a node: their replacements wait until it takes pods again.
func On(node string) Option {
	return func(t *corev1.PodTemplateSpec) { t.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node} }
}

// Annotated asks the simulated kubelet for something, among other uses.
func Annotated(key, value string) Option {
	return func(t *corev1.PodTemplateSpec) { metav1.SetMetaDataAnnotation(&t.ObjectMeta, key, value) }
}

// Labelled gives pods a label.
func Labelled(key, value string) Option {
	return func(t *corev1.PodTemplateSpec) { metav1.SetMetaDataLabel(&t.ObjectMeta, key, value) }
}

// SlowToEnd pods take a while to go after they were deleted.
func SlowToEnd(delay string) Option {
	return Annotated(world.TerminationDelay, delay)
}

// WithEmptyDir gives pods a volume that is lost with them.
func WithEmptyDir(t *corev1.PodTemplateSpec) {
	t.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

// Using pods request a resource that no node has to have.
func Using(name string) Option {
	return func(t *corev1.PodTemplateSpec) {
		one := corev1.ResourceList{corev1.ResourceName(name): resource.MustParse("1")}
		t.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: one, Limits: one}
	}
}

// Template is the pod of a workload. Its label app is the workload's name.
func Template(app string, options []Option) corev1.PodTemplateSpec {
	t := world.Pods(app)
	t.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	for _, option := range options {
		option(&t)
	}
	return t
}

// Namespace makes a namespace of the test.
func (s *Site) Namespace() string {
	s.Helper()
	s.namespaces++
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("%s-%d", s.ID, s.namespaces), Labels: map[string]string{"e2e": s.ID},
	}}
	_, err := s.Kube.CoreV1().Namespaces().Create(s.Ctx, ns, metav1.CreateOptions{})
	s.NoError(err)
	return ns.Name
}

// in makes workloads in a namespace.
func (s *Site) in(ns string) world.Namespace { return world.Namespace{Kube: s.Kube, Name: ns} }

// Deployment runs pods and waits until they are Ready.
func (s *Site) Deployment(ns, name string, replicas int32, options ...Option) {
	s.Helper()
	s.NoError(s.in(ns).Deployment(s.Ctx, Template(name, options), replicas))
	s.DeploymentReady(ns, name, replicas)
}

// DeploymentReady waits until the pods of a Deployment are Ready.
func (s *Site) DeploymentReady(ns, name string, replicas int32) {
	s.Helper()
	s.Eventually("the pods of deployment "+name+" are Ready", func() error {
		d, err := s.Kube.AppsV1().Deployments(ns).Get(s.Ctx, name, metav1.GetOptions{})
		if err == nil && d.Status.ReadyReplicas != replicas {
			err = fmt.Errorf("%d of %d", d.Status.ReadyReplicas, replicas)
		}
		return err
	})
}

// DaemonSet runs a pod on every node and waits until they are Ready.
func (s *Site) DaemonSet(ns, name string, options ...Option) {
	s.Helper()
	s.NoError(s.in(ns).DaemonSet(s.Ctx, Template(name, options)))
	s.Eventually("the pods of daemon set "+name+" are Ready", func() error {
		d, err := s.Kube.AppsV1().DaemonSets(ns).Get(s.Ctx, name, metav1.GetOptions{})
		if err == nil && (d.Status.DesiredNumberScheduled == 0 || d.Status.NumberReady != d.Status.DesiredNumberScheduled) {
			err = fmt.Errorf("%d of %d", d.Status.NumberReady, d.Status.DesiredNumberScheduled)
		}
		return err
	})
}

// Pod runs a bare pod on a node and waits until it runs.
func (s *Site) Pod(ns, name, node string, options ...Option) *corev1.Pod {
	s.Helper()
	t := Template(name, options)
	pod := &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	pod.Name, pod.Spec.NodeName = name, node
	pod, err := s.Kube.CoreV1().Pods(ns).Create(s.Ctx, pod, metav1.CreateOptions{})
	s.NoError(err)
	s.Eventually("pod "+name+" runs", func() error {
		now, err := s.Kube.CoreV1().Pods(ns).Get(s.Ctx, name, metav1.GetOptions{})
		if err == nil && now.Status.Phase == corev1.PodPending {
			err = errors.New("it is Pending")
		}
		return err
	})
	return pod
}

// Completes waits for the pod of a Job on a node, and has it take no longer.
func (s *Site) Completes(ns, node string) {
	s.Helper()
	s.Eventually("a Job is at work on "+node, func() error {
		if n := len(s.PodsOn(ns, node)); n != 1 {
			return fmt.Errorf("%d pods", n)
		}
		return nil
	})
	for _, pod := range s.PodsOn(ns, node) {
		s.PatchPod(pod, `{"metadata":{"annotations":{"`+world.CompletionDelay+`":null}}}`)
	}
}

// Job runs one pod on a node that completes after a while.
func (s *Site) Job(ns, name, node, completes string) {
	s.Helper()
	pods := Template(name, []Option{On(node), Annotated(world.CompletionDelay, completes)})
	pods.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := s.Kube.BatchV1().Jobs(ns).Create(s.Ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Template: pods},
	}, metav1.CreateOptions{})
	s.NoError(err)
	s.Eventually("the pod of job "+name+" runs", func() error {
		for _, pod := range s.Pods(ns) {
			if pod.Labels["app"] == name && pod.Status.Phase != corev1.PodPending {
				return nil
			}
		}
		return errors.New("it does not")
	})
}

// Budget keeps pods of a workload available and waits until it is in force.
func (s *Site) Budget(ns, app string, minAvailable int32) {
	s.Helper()
	s.BudgetOn(ns, app, map[string]string{"app": app}, minAvailable)
}

// BudgetOn keeps the pods with some labels available.
func (s *Site) BudgetOn(ns, name string, labels map[string]string, minAvailable int32) {
	s.Helper()
	least := intstr.FromInt32(minAvailable)
	_, err := s.Kube.PolicyV1().PodDisruptionBudgets(ns).Create(s.Ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}, metav1.CreateOptions{})
	s.NoError(err)
	s.BudgetAllows(ns, name, func(b *policyv1.PodDisruptionBudget) bool { return b.Status.CurrentHealthy >= minAvailable })
}

// Allow lets a budget allow every eviction.
func (s *Site) Allow(ns, app string) {
	s.Helper()
	s.require(ns, app, 0)
}

// Guard has a budget forbid again what Allow allowed, and waits until it is in force.
//
// A second budget would not do: the disruption controller tells only one budget of a pod when the pod becomes ready, so
// that the other one may count it as unready forever.
func (s *Site) Guard(ns, app string) {
	s.Helper()
	s.require(ns, app, 1)
	s.BudgetAllows(ns, app, func(b *policyv1.PodDisruptionBudget) bool { return b.Status.CurrentHealthy == 1 })
}

func (s *Site) require(ns, app string, minAvailable int) {
	s.Helper()
	_, err := s.Kube.PolicyV1().PodDisruptionBudgets(ns).Patch(s.Ctx, app, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"minAvailable":%d}}`, minAvailable), metav1.PatchOptions{})
	s.NoError(err)
}

// BudgetAllows waits until a budget is in force and as wanted.
func (s *Site) BudgetAllows(ns, app string, is func(*policyv1.PodDisruptionBudget) bool) {
	s.Helper()
	s.Eventually("the budget of "+app+" is in force", func() error {
		b, err := s.Kube.PolicyV1().PodDisruptionBudgets(ns).Get(s.Ctx, app, metav1.GetOptions{})
		if err == nil && (b.Status.ObservedGeneration != b.Generation || !is(b)) {
			err = fmt.Errorf("%+v", b.Status)
		}
		return err
	})
}

// Guarded is a Deployment of one pod on a node that a budget keeps from being evicted.
func (s *Site) Guarded(ns, name, node string, options ...Option) {
	s.Helper()
	s.Deployment(ns, name, 1, append([]Option{On(node)}, options...)...)
	s.Budget(ns, name, 1)
}

// Pods are all pods of a namespace.
func (s *Site) Pods(ns string) []corev1.Pod {
	s.Helper()
	list, err := s.Kube.CoreV1().Pods(ns).List(s.Ctx, metav1.ListOptions{})
	s.NoError(err)
	return list.Items
}

// PodsOn are the pods of a namespace that are on a node, by name; those on their way out count.
func (s *Site) PodsOn(ns, node string) map[string]corev1.Pod {
	s.Helper()
	found := map[string]corev1.Pod{}
	for _, pod := range s.Pods(ns) {
		if pod.Spec.NodeName == node {
			found[pod.Name] = pod
		}
	}
	return found
}

// One is the only pod of a workload.
func (s *Site) One(ns, app string) corev1.Pod {
	s.Helper()
	found := slices.DeleteFunc(s.Pods(ns), func(pod corev1.Pod) bool { return pod.Labels["app"] != app })
	if len(found) != 1 {
		s.Fatalf("%d pods of %s in %s, want one", len(found), app, ns)
	}
	return found[0]
}

// UntilGone waits until this very pod is gone.
func (s *Site) UntilGone(pod corev1.Pod) {
	s.Helper()
	s.Eventually("pod "+pod.Name+" is gone", func() error {
		now, err := s.Kube.CoreV1().Pods(pod.Namespace).Get(s.Ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
}

// MustStay checks that this very pod is still there and not on its way out.
func (s *Site) MustStay(pod corev1.Pod) {
	s.Helper()
	now, err := s.Kube.CoreV1().Pods(pod.Namespace).Get(s.Ctx, pod.Name, metav1.GetOptions{})
	if err != nil || now.UID != pod.UID || now.DeletionTimestamp != nil {
		s.Fatalf("pod %s did not stay: %v, %v", pod.Name, now.ObjectMeta, err)
	}
}

// PodsByApp are the nodes of a namespace's pods, by workload and UID.
func (s *Site) PodsByApp(ns string) map[string]map[string]string {
	s.Helper()
	found := map[string]map[string]string{}
	for _, pod := range s.Pods(ns) {
		app := pod.Labels["app"]
		if found[app] == nil {
			found[app] = map[string]string{}
		}
		found[app][string(pod.UID)] = pod.Spec.NodeName
	}
	return found
}
