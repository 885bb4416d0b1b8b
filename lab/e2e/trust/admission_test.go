package trust

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"drydock.dev/drydock/deploy/devstack/pkitest"
	"drydock.dev/drydock/lab/e2e/site"
)

// admissionSite is a cluster with the shipped admission policies, and those who call its API server.
type admissionSite struct {
	*testing.T
	ctx context.Context
	on  *site.Lane
	// worker has the shipped account; kubelet is that of worker-02; intruder may do everything that roles can give, and is in no
	// named group; workAdmin is in the group that may create what is root on a node.
	worker, kubelet, intruder, workAdmin kubernetes.Interface
}

func newAdmissionSite(t *testing.T) *admissionSite {
	ctx, cancel := context.WithTimeout(context.Background(), site.TestTime)
	t.Cleanup(cancel)
	a := &admissionSite{T: t, ctx: ctx, on: site.OwnLane(t, 3)}
	objects, err := site.ObjectsOfAll([]string{"../../../deploy/kubernetes/rbac-work.yaml", "../../../deploy/kubernetes/admission.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		a.create(object)
	}
	if a.worker, err = site.ClientOf(a.on.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	pki := filepath.Join(filepath.Dir(a.on.Cluster.Kubeconfig), "pki")
	authority := pkitest.LoadAuthority(t, filepath.Join(pki, "ca.crt"), filepath.Join(pki, "ca.key"))
	a.kubelet = a.user(authority, "system:node:worker-02", "system:nodes")
	a.intruder = a.user(authority, "intruder", "drydock:test-everything")
	a.workAdmin = a.user(authority, "amy", "drydock:test-everything", "drydock:work-admins")
	a.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-everything"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "drydock:test-everything"}},
	})
	return a
}

func (a *admissionSite) create(object any) {
	a.Helper()
	kube, o := a.on.Cluster.Client, metav1.CreateOptions{}
	var err error
	switch object := object.(type) {
	case *admissionv1.ValidatingAdmissionPolicy:
		_, err = kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(a.ctx, object, o)
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		_, err = kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(a.ctx, object, o)
	case *corev1.Namespace:
		_, err = kube.CoreV1().Namespaces().Create(a.ctx, object, o)
	case *corev1.ServiceAccount:
		_, err = kube.CoreV1().ServiceAccounts(object.Namespace).Create(a.ctx, object, o)
	case *rbacv1.Role:
		_, err = kube.RbacV1().Roles(object.Namespace).Create(a.ctx, object, o)
	case *rbacv1.RoleBinding:
		_, err = kube.RbacV1().RoleBindings(object.Namespace).Create(a.ctx, object, o)
	case *networkingv1.NetworkPolicy:
		_, err = kube.NetworkingV1().NetworkPolicies(object.Namespace).Create(a.ctx, object, o)
	case *rbacv1.ClusterRoleBinding:
		_, err = kube.RbacV1().ClusterRoleBindings().Create(a.ctx, object, o)
	default:
		err = fmt.Errorf("not known how to create a %T", object)
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		a.Fatal(err)
	}
}

// user is a client whom the API server knows by a certificate of its own authority.
func (a *admissionSite) user(authority *pkitest.Authority, name string, groups ...string) kubernetes.Interface {
	a.Helper()
	admin, err := clientcmd.BuildConfigFromFlags("", a.on.Cluster.Kubeconfig)
	if err != nil {
		a.Fatal(err)
	}
	config := rest.AnonymousClientConfig(admin)
	config.QPS, config.Burst = 200, 400
	cert, key := authority.IssueUser(a, name, groups...)
	config.CertData, config.KeyData = []byte(cert), []byte(key)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		a.Fatal(err)
	}
	return client
}

// patched patches a node, or its status.
func (a *admissionSite) patched(as kubernetes.Interface, node, patch string, subresources ...string) error {
	kind := types.MergePatchType
	if strings.HasPrefix(patch, "[") {
		kind = types.JSONPatchType
	}
	_, err := as.CoreV1().Nodes().Patch(a.ctx, node, kind, []byte(patch), metav1.PatchOptions{}, subresources...)
	return err
}

// refused checks that a policy of ours, and nothing else, refused a request.
func (a *admissionSite) refused(what string, err error, says string) {
	a.Helper()
	if err == nil || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'drydock-worker-") || !strings.Contains(err.Error(), says) {
		a.Errorf("%s: %v, want a refusal that says %q", what, err, says)
	}
}

func (a *admissionSite) allowed(what string, err error) {
	a.Helper()
	if err != nil {
		a.Errorf("%s: %v", what, err)
	}
}

// inForce waits until the API server judges by both policies: it follows them by a watch of its own.
func (a *admissionSite) inForce() {
	a.Helper()
	var last error
	tries := 0
	a.until("the policies are in force", func() bool {
		tries++ // what does not change is not judged
		err1 := a.patched(a.intruder, "worker-03", fmt.Sprintf(`{"metadata":{"annotations":{"drydock.dev/holders":"forged %d"}}}`, tries))
		_, err2 := a.intruder.BatchV1().Jobs("drydock-work").Create(a.ctx, jobOf("probe", "drydock-work"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		last = errors.Join(err1, err2)
		return apierrors.IsForbidden(err1) && apierrors.IsForbidden(err2)
	}, &last)
	a.allowed("taking the probe off", a.patched(a.worker, "worker-03", `{"metadata":{"annotations":{"drydock.dev/holders":null}}}`))
}

func jobOf(name, namespace string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "fix", Image: "registry.example/fix:v1"}},
		}}},
	}
}

// TestAdmissionPolicies has real users of a real API server ask for what the shipped policies refuse, and for what they allow.
func TestAdmissionPolicies(t *testing.T) {
	t.Parallel()
	a := newAdmissionSite(t)
	a.inForce()
	t.Run("holders", func(t *testing.T) { a.with(t).holders() })
	t.Run("kubelet", func(t *testing.T) { a.with(t).kubelets() })
	t.Run("work", func(t *testing.T) { a.with(t).work() })
}

func (a *admissionSite) with(t *testing.T) *admissionSite {
	of := *a
	of.T = t
	return &of
}

func (a *admissionSite) holders() {
	const mark = `{"metadata":{"annotations":{"drydock.dev/holders":"[]"}}}`
	a.refused("a mark forged", a.patched(a.intruder, "worker-01", mark), "only the worker")
	a.refused("a mark forged by the status", a.patched(a.intruder, "worker-01", mark, "status"), "only the worker")
	a.allowed("the worker's mark", a.patched(a.worker, "worker-01", mark))
	a.refused("a mark changed", a.patched(a.intruder, "worker-01", `{"metadata":{"annotations":{"drydock.dev/holders":"[1]"}}}`), "only the worker")
	a.refused("a mark taken off", a.patched(a.intruder, "worker-01", `{"metadata":{"annotations":{"drydock.dev/holders":null}}}`), "only the worker")
	a.refused("all annotations taken off", a.patched(a.intruder, "worker-01", `[{"op":"remove","path":"/metadata/annotations"}]`), "only the worker")
	a.allowed("another annotation beside the mark", a.patched(a.intruder, "worker-01", `{"metadata":{"annotations":{"example.com/note":"x"}},"spec":{"unschedulable":true}}`))
	a.allowed("the worker's release", a.patched(a.worker, "worker-01", `{"metadata":{"annotations":{"drydock.dev/holders":null}},"spec":{"unschedulable":null}}`))
	_, err := a.intruder.CoreV1().Nodes().Create(a.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "forged", Annotations: map[string]string{"drydock.dev/holders": "[]"}}}, metav1.CreateOptions{})
	a.refused("a node created with a mark", err, "only the worker")
}

func (a *admissionSite) kubelets() {
	const node = "worker-02"
	a.allowed("the kubelet's status", a.patched(a.kubelet, node, `{"status":{"nodeInfo":{"kernelVersion":"6.12"}}}`, "status"))
	a.allowed("a label of the kubelet's own", a.patched(a.kubelet, node, `{"metadata":{"labels":{"example.com/kernel":"6.12"},"annotations":{"example.com/a":"b"}}}`))
	for _, by := range [][]string{nil, {"status"}} {
		a.refused("an annotation of Drydock's", a.patched(a.kubelet, node, `{"metadata":{"annotations":{"drydock.dev/note":"x"}}}`, by...), "a kubelet writes no annotation")
		a.refused("a label of Drydock's", a.patched(a.kubelet, node, `{"metadata":{"labels":{"drydock.dev/phase":"Ready"}}}`, by...), "a kubelet writes no label")
		for _, machine := range []string{
			"cluster.x-k8s.io/machine", "cluster.x-k8s.io/cluster-name", "cluster.x-k8s.io/cluster-namespace", "machine.openshift.io/machine",
		} {
			a.refused("its Machine", a.patched(a.kubelet, node, fmt.Sprintf(`{"metadata":{"annotations":{%q:"of-another-node"}}}`, machine), by...), "which Machine")
		}
	}
	a.refused("a taint of Drydock's", a.patched(a.kubelet, node, `{"spec":{"taints":[{"key":"drydock.dev/maintenance","effect":"NoSchedule"}]}}`), "a kubelet writes no taint")
	a.allowed("the worker's label, taint and annotation", a.patched(a.worker, node,
		`{"metadata":{"labels":{"drydock.dev/phase":"Ready"},"annotations":{"drydock.dev/note":"x"}},"spec":{"taints":[{"key":"drydock.dev/maintenance","effect":"NoSchedule"}]}}`))
	a.allowed("a Machine named by its controller", a.patched(a.intruder, node,
		`{"metadata":{"annotations":{"cluster.x-k8s.io/machine":"m-2","cluster.x-k8s.io/cluster-name":"blue","cluster.x-k8s.io/cluster-namespace":"fleet"}}}`))
	a.allowed("the kubelet's status beside the worker's keys", a.patched(a.kubelet, node, `{"status":{"nodeInfo":{"kernelVersion":"6.13"}}}`, "status"))
	a.refused("the worker's label taken off", a.patched(a.kubelet, node, `{"metadata":{"labels":{"drydock.dev/phase":null}}}`), "a kubelet writes no label")
	a.refused("the worker's taint taken off", a.patched(a.kubelet, node, `{"spec":{"taints":null}}`), "a kubelet writes no taint")
	a.refused("the Machine taken off", a.patched(a.kubelet, node, `{"metadata":{"annotations":{"cluster.x-k8s.io/machine":null}}}`, "status"), "which Machine")
	a.refused("the cluster changed", a.patched(a.kubelet, node, `{"metadata":{"annotations":{"cluster.x-k8s.io/cluster-name":"green"}}}`), "which Machine")
}

func (a *admissionSite) work() {
	const ns = "drydock-work"
	create := metav1.CreateOptions{}
	jobs := func(as kubernetes.Interface, name string) error {
		_, err := as.BatchV1().Jobs(ns).Create(a.ctx, jobOf(name, ns), create)
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bare", Namespace: ns}, Spec: jobOf("", ns).Spec.Template.Spec}
	a.refused("a Job", jobs(a.intruder, "forged"), "root on its node")
	_, err := a.intruder.CoreV1().Pods(ns).Create(a.ctx, pod, create)
	a.refused("a pod", err, "root on its node")
	forged := pod.DeepCopy()
	controller := true
	forged.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "worker", UID: "1", Controller: &controller}}
	_, err = a.intruder.CoreV1().Pods(ns).Create(a.ctx, forged, create)
	a.refused("a pod that says that it is a Job's", err, "root on its node")
	a.allowed("a Job elsewhere", func() error {
		_, err := a.intruder.BatchV1().Jobs("default").Create(a.ctx, jobOf("elsewhere", "default"), create)
		return err
	}())
	cronJobs := func(as kubernetes.Interface, name string) error {
		_, err := as.BatchV1().CronJobs(ns).Create(a.ctx, &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns},
			Spec:       batchv1.CronJobSpec{Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: jobOf("", ns).Spec}},
		}, create)
		return err
	}
	a.refused("a CronJob", cronJobs(a.intruder, "forged"), "root on its node")
	a.allowed("a CronJob of the named group", cronJobs(a.workAdmin, "amy"))
	a.allowed("a Job of the worker's", jobs(a.worker, "worker"))
	a.allowed("a Job of the named group", jobs(a.workAdmin, "amy"))
	// The controller makes the pods of both, as itself.
	var pods *corev1.PodList
	a.until("the Jobs have their pods", func() bool {
		pods, err = a.intruder.CoreV1().Pods(ns).List(a.ctx, metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name in (worker, amy)"})
		return err == nil && len(pods.Items) == 2
	}, &err)
	one := &pods.Items[0]
	const debugger = `{"spec":{"ephemeralContainers":[{"name":"debug","image":"registry.example/shell:v1"}]}}`
	debug := func(as kubernetes.Interface) error {
		_, err := as.CoreV1().Pods(ns).Patch(a.ctx, one.Name, types.StrategicMergePatchType, []byte(debugger), metav1.PatchOptions{}, "ephemeralcontainers")
		return err
	}
	a.refused("a container put into a pod of work", debug(a.intruder), "root on its node")
	a.allowed("a container put in by the named group", debug(a.workAdmin))
	for how, param := range map[string][2]string{"exec": {"command", "id"}, "attach": {"stdin", "true"}} {
		connect := func(as kubernetes.Interface) error {
			return as.CoreV1().RESTClient().Post().Namespace(ns).Resource("pods").Name(one.Name).SubResource(how).Param(param[0], param[1]).Do(a.ctx).Error()
		}
		a.refused(how+" in a pod of work", connect(a.intruder), "root on its node")
		// No node runs the pod: the policies let the request pass, and the API server then finds nobody to connect it to.
		if err := connect(a.workAdmin); apierrors.IsForbidden(err) {
			a.Errorf("%s of the named group: %v", how, err)
		}
	}
}

// until waits for a condition; last is what kept it from holding.
func (a *admissionSite) until(what string, holds func() bool, last *error) {
	a.Helper()
	err := wait.PollUntilContextTimeout(a.ctx, 50*time.Millisecond, site.Patience, true, func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		a.Fatalf("%s: %v", what, errors.Join(err, *last))
	}
}
