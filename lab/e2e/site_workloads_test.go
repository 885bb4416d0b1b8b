package e2e

import (
	"errors"
	"fmt"

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

// option changes the pods of a workload.
type option func(*corev1.PodTemplateSpec)

// on pins pods to a node: their replacements wait until it takes pods again.
func on(node string) option {
	return func(t *corev1.PodTemplateSpec) { t.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node} }
}

// annotated asks the simulated kubelet for something, among other uses.
func annotated(key, value string) option {
	return func(t *corev1.PodTemplateSpec) { metav1.SetMetaDataAnnotation(&t.ObjectMeta, key, value) }
}

func labelled(key, value string) option {
	return func(t *corev1.PodTemplateSpec) { metav1.SetMetaDataLabel(&t.ObjectMeta, key, value) }
}

// slowToEnd pods take a while to go after they were deleted.
func slowToEnd(delay string) option {
	return annotated(world.TerminationDelay, delay)
}

func withEmptyDir(t *corev1.PodTemplateSpec) {
	t.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

// using pods request a resource that no node has to have.
func using(name string) option {
	return func(t *corev1.PodTemplateSpec) {
		one := corev1.ResourceList{corev1.ResourceName(name): resource.MustParse("1")}
		t.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: one, Limits: one}
	}
}

// template is the pod of a workload. Its label app is the workload's name.
func template(app string, options []option) corev1.PodTemplateSpec {
	t := world.Pods(app)
	t.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	for _, option := range options {
		option(&t)
	}
	return t
}

// namespace makes a namespace of the test.
func (s *site) namespace() string {
	s.Helper()
	s.namespaces++
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("%s-%d", s.name, s.namespaces), Labels: map[string]string{"e2e": s.name},
	}}
	if _, err := s.kube.CoreV1().Namespaces().Create(s.ctx, ns, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	return ns.Name
}

// in makes workloads in a namespace.
func (s *site) in(ns string) world.Namespace { return world.Namespace{Kube: s.kube, Name: ns} }

// deployment runs pods and waits until they are Ready.
func (s *site) deployment(ns, name string, replicas int32, options ...option) {
	s.Helper()
	if err := s.in(ns).Deployment(s.ctx, template(name, options), replicas); err != nil {
		s.Fatal(err)
	}
	s.deploymentReady(ns, name, replicas)
}

func (s *site) deploymentReady(ns, name string, replicas int32) {
	s.Helper()
	s.eventually("the pods of deployment "+name+" are Ready", func() error {
		d, err := s.kube.AppsV1().Deployments(ns).Get(s.ctx, name, metav1.GetOptions{})
		if err == nil && d.Status.ReadyReplicas != replicas {
			err = fmt.Errorf("%d of %d", d.Status.ReadyReplicas, replicas)
		}
		return err
	})
}

// daemonSet runs a pod on every node and waits until they are Ready.
func (s *site) daemonSet(ns, name string, options ...option) {
	s.Helper()
	if err := s.in(ns).DaemonSet(s.ctx, template(name, options)); err != nil {
		s.Fatal(err)
	}
	s.eventually("the pods of daemon set "+name+" are Ready", func() error {
		d, err := s.kube.AppsV1().DaemonSets(ns).Get(s.ctx, name, metav1.GetOptions{})
		if err == nil && (d.Status.DesiredNumberScheduled == 0 || d.Status.NumberReady != d.Status.DesiredNumberScheduled) {
			err = fmt.Errorf("%d of %d", d.Status.NumberReady, d.Status.DesiredNumberScheduled)
		}
		return err
	})
}

// pod runs a bare pod on a node and waits until it runs.
func (s *site) pod(ns, name, node string, options ...option) *corev1.Pod {
	s.Helper()
	t := template(name, options)
	pod := &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	pod.Name, pod.Spec.NodeName = name, node
	pod, err := s.kube.CoreV1().Pods(ns).Create(s.ctx, pod, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	s.eventually("pod "+name+" runs", func() error {
		now, err := s.kube.CoreV1().Pods(ns).Get(s.ctx, name, metav1.GetOptions{})
		if err == nil && now.Status.Phase == corev1.PodPending {
			err = errors.New("it is Pending")
		}
		return err
	})
	return pod
}

// completes waits for the pod of a Job on a node, and has it take no longer.
func (s *site) completes(ns, node string) {
	s.Helper()
	s.eventually("a Job is at work on "+node, func() error {
		if n := len(s.podsOn(ns, node)); n != 1 {
			return fmt.Errorf("%d pods", n)
		}
		return nil
	})
	for _, pod := range s.podsOn(ns, node) {
		s.patchPod(pod, `{"metadata":{"annotations":{"`+world.CompletionDelay+`":null}}}`)
	}
}

// job runs one pod on a node that completes after a while.
func (s *site) job(ns, name, node, completes string) {
	s.Helper()
	pods := template(name, []option{on(node), annotated(world.CompletionDelay, completes)})
	pods.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := s.kube.BatchV1().Jobs(ns).Create(s.ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Template: pods},
	}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	s.eventually("the pod of job "+name+" runs", func() error {
		for _, pod := range s.pods(ns) {
			if pod.Labels["app"] == name && pod.Status.Phase != corev1.PodPending {
				return nil
			}
		}
		return errors.New("it does not")
	})
}

// budget keeps pods of a workload available and waits until it is in force.
func (s *site) budget(ns, app string, minAvailable int32) {
	s.Helper()
	s.budgetOn(ns, app, map[string]string{"app": app}, minAvailable)
}

// budgetOn keeps the pods with some labels available.
func (s *site) budgetOn(ns, name string, labels map[string]string, minAvailable int32) {
	s.Helper()
	least := intstr.FromInt32(minAvailable)
	_, err := s.kube.PolicyV1().PodDisruptionBudgets(ns).Create(s.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	s.budgetAllows(ns, name, func(b *policyv1.PodDisruptionBudget) bool { return b.Status.CurrentHealthy >= minAvailable })
}

// allow lets a budget be exhausted, and waits until the API server would accept an eviction.
func (s *site) allow(ns, app string) {
	s.Helper()
	_, err := s.kube.PolicyV1().PodDisruptionBudgets(ns).Patch(s.ctx, app, types.MergePatchType,
		[]byte(`{"spec":{"minAvailable":0}}`), metav1.PatchOptions{})
	if err != nil {
		s.Fatal(err)
	}
}

func (s *site) budgetAllows(ns, app string, is func(*policyv1.PodDisruptionBudget) bool) {
	s.Helper()
	s.eventually("the budget of "+app+" is in force", func() error {
		b, err := s.kube.PolicyV1().PodDisruptionBudgets(ns).Get(s.ctx, app, metav1.GetOptions{})
		if err == nil && (b.Status.ObservedGeneration != b.Generation || !is(b)) {
			err = fmt.Errorf("%+v", b.Status)
		}
		return err
	})
}

// guarded is a Deployment of one pod on a node that a budget keeps from being evicted.
func (s *site) guarded(ns, name, node string, options ...option) {
	s.Helper()
	s.deployment(ns, name, 1, append([]option{on(node)}, options...)...)
	s.budget(ns, name, 1)
}

// pods are all pods of a namespace.
func (s *site) pods(ns string) []corev1.Pod {
	s.Helper()
	list, err := s.kube.CoreV1().Pods(ns).List(s.ctx, metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return list.Items
}

// podsOn are the pods of a namespace that are on a node, by name; those on their way out count.
func (s *site) podsOn(ns, node string) map[string]corev1.Pod {
	s.Helper()
	found := map[string]corev1.Pod{}
	for _, pod := range s.pods(ns) {
		if pod.Spec.NodeName == node {
			found[pod.Name] = pod
		}
	}
	return found
}

// one is the only pod of a workload.
func (s *site) one(ns, app string) corev1.Pod {
	s.Helper()
	var found []corev1.Pod
	for _, pod := range s.pods(ns) {
		if pod.Labels["app"] == app {
			found = append(found, pod)
		}
	}
	if len(found) != 1 {
		s.Fatalf("%d pods of %s in %s, want one", len(found), app, ns)
	}
	return found[0]
}

// untilGone waits until this very pod is gone.
func (s *site) untilGone(pod corev1.Pod) {
	s.Helper()
	s.eventually("pod "+pod.Name+" is gone", func() error {
		now, err := s.kube.CoreV1().Pods(pod.Namespace).Get(s.ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
}

// mustStay checks that this very pod is still there and not on its way out.
func (s *site) mustStay(pod corev1.Pod) {
	s.Helper()
	now, err := s.kube.CoreV1().Pods(pod.Namespace).Get(s.ctx, pod.Name, metav1.GetOptions{})
	if err != nil || now.UID != pod.UID || now.DeletionTimestamp != nil {
		s.Fatalf("pod %s did not stay: %v, %v", pod.Name, now.ObjectMeta, err)
	}
}
