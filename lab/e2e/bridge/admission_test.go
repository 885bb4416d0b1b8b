package bridge

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/lab/e2e/site"
)

// as is a client of another user, who is who the API server is told that he is.
func (b *bridged) as(user string) kubernetes.Interface {
	b.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", b.Lane.Cluster.Kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	config.Impersonate.UserName = user
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	return kube
}

// kubeconfigOf is a kubeconfig file of another user.
func (b *bridged) kubeconfigOf(user string) string {
	b.Helper()
	config, err := clientcmd.LoadFromFile(b.Lane.Cluster.Kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	for _, info := range config.AuthInfos {
		info.Impersonate = user
	}
	file := filepath.Join(b.Options.Dir, user+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		b.Fatal(err)
	}
	return file
}

// may gives a user a role of its own.
func (b *bridged) may(user string, rules ...rbacv1.PolicyRule) {
	b.Helper()
	name := b.ID + "-" + user
	if _, err := b.Kube.RbacV1().ClusterRoles().Create(b.Ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	if _, err := b.Kube.RbacV1().ClusterRoleBindings().Create(b.Ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
}

// createAs has a user create an object, and returns it as the API server has it.
func (b *bridged) createAs(kube kubernetes.Interface, name string, spec map[string]any, dryRun ...string) (v1alpha1.NodeMaintenance, error) {
	var o v1alpha1.NodeMaintenance
	got, _, err := b.createOf(kinds[0], kube, name, spec, dryRun...)
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(got, &o)
}

// createOf has a user create an object of a kind. It returns the object as the API server has it, and its warnings.
func (b *bridged) createOf(k kind, kube kubernetes.Interface, name string, spec map[string]any, dryRun ...string) (got []byte, warned string, err error) {
	version, plural := versionOf(k.plural)
	text, err := json.Marshal(map[string]any{
		"apiVersion": version, "kind": k.name, "metadata": map[string]any{"name": name}, "spec": spec,
	})
	if err != nil {
		return nil, "", err
	}
	request := kube.CoreV1().RESTClient().Post().AbsPath("/apis", version, plural)
	if len(dryRun) > 0 {
		request = request.Param("dryRun", "All")
	}
	result := request.Body(text).SetHeader("Content-Type", "application/json").Do(b.Ctx)
	for _, w := range result.Warnings() {
		warned += w.Text
	}
	if err := result.Error(); err != nil { // which reads why, as Raw does not
		return nil, warned, err
	}
	got, err = result.Raw()
	return got, warned, err
}

func TestNobodyAsksInAnothersName(t *testing.T) {
	b := newBridged(t, "")
	b.install(manifests + "bridge/admission.yaml")
	all := []rbacv1.PolicyRule{site.Rule("drydock.dev", "nodemaintenances", "create", "get", "update", "patch", "delete")}
	b.may("ann", append(all, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"maintain"}, ResourceNames: []string{"worker-05"}})...)
	b.may("bob", all...)
	ann, bob := b.as("ann"), b.as("bob")

	refused := func(who kubernetes.Interface, says string, spec map[string]any) error {
		_, err := b.createAs(who, "refused", spec, "dry")
		if err == nil || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says) {
			return fmt.Errorf("%v: %w, want a refusal that says %q", spec, err, says)
		}
		return nil
	}
	// The API server follows policies and roles by watches of its own.
	b.Eventually("the policies are in force", func() error {
		if err := refused(bob, "bob may not maintain node worker-05", map[string]any{"node": "worker-05"}); err != nil {
			return err
		}
		o, err := b.createAs(ann, "allowed", map[string]any{"node": "worker-05"}, "dry")
		if err == nil && !strings.Contains(string(o.Spec.Raw), `"requestedBy":"ann"`) {
			err = fmt.Errorf("spec %s", o.Spec.Raw)
		}
		return err
	})
	for _, c := range []struct {
		who  kubernetes.Interface
		says string
		spec map[string]any
	}{
		{ann, "spec.requestedBy is bob", map[string]any{"node": "worker-05", "requestedBy": "bob"}},
		{ann, "ann may not maintain node worker-06", map[string]any{"node": "worker-06"}},
		{bob, "spec.requestedBy is ann", map[string]any{"node": "worker-05", "requestedBy": "ann"}},
	} {
		if err := refused(c.who, c.says, c.spec); err != nil {
			t.Error(err)
		}
	}

	if _, err := b.createAs(ann, "anns", map[string]any{"node": "worker-05"}); err != nil {
		t.Fatal(err)
	}
	o := b.shows("anns", v1alpha1.Ready, string(api.Ready))
	if status := b.Until(b.run(o), api.Ready); status.Spec.Object.RequestedBy != "ann" {
		t.Errorf("the maintenance was asked for by %+v", status.Spec.Object)
	}
	// Nobody makes another maintenance of it later.
	for _, patch := range []string{`{"spec":{"requestedBy":"bob"}}`, `{"spec":{"node":"worker-06"}}`, `{"spec":{"reason":"another"}}`} {
		err := ann.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath("/apis", v1alpha1.GroupVersion.String(), "nodemaintenances", "anns").
			Body([]byte(patch)).Do(b.Ctx).Error()
		if err == nil || !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v, want a refusal", patch, err)
		}
	}
	err := bob.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath("/apis", v1alpha1.GroupVersion.String(), "nodemaintenances", "anns").
		Body([]byte(`{"metadata":{"finalizers":null}}`)).Do(b.Ctx).Error()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "is the bridge's") {
		t.Errorf("bob takes the finalizer off: %v", err)
	}
	remove := func(as kubernetes.Interface) error {
		return as.CoreV1().RESTClient().Delete().AbsPath("/apis", v1alpha1.GroupVersion.String(), "nodemaintenances", "anns").Do(b.Ctx).Error()
	}
	if err := remove(bob); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "bob may not delete anns") {
		t.Errorf("bob deletes ann's object: %v", err)
	}
	if err := remove(ann); err != nil {
		t.Errorf("ann deletes her object: %v", err)
	}
	b.isGone("anns")
	b.MustEnd(b.run(o), api.Completed)
}

// annotate has a user write annotations of an object, or only try to.
func (b *bridged) annotate(kube kubernetes.Interface, name string, annotations map[string]string, dryRun ...string) error {
	return b.patchAs(kinds[0], kube, name, map[string]any{"metadata": map[string]any{"annotations": annotations}}, dryRun...)
}

// patchAs has a user change an object of a kind, or only try to.
func (b *bridged) patchAs(k kind, kube kubernetes.Interface, name string, change map[string]any, dryRun ...string) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	version, plural := versionOf(k.plural)
	request := kube.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath("/apis", version, plural, name)
	if len(dryRun) > 0 {
		request = request.Param("dryRun", "All")
	}
	return request.Body(patch).Do(b.Ctx).Error()
}

func TestAnnotationsSayWhatTheirWritersMay(t *testing.T) {
	b := newBridged(t, `
kubernetes: {verifiedObjects: true}
policy:
- {name: asked-by-carl, require: starter.principal == "kubernetes:carl"}
- {name: approved-by-amy, require: approval.principal == "kubernetes:amy" && approval.principal != starter.principal}
`)
	b.install(manifests + "bridge/admission.yaml")
	const objects, approve, done = "nodemaintenances", "nodemaintenances/approve", "nodemaintenances/done"
	write := site.Rule("drydock.dev", objects, "create", "get", "patch")
	b.may("carl", write, site.Rule("", "nodes", "maintain"), site.Rule("drydock.dev", approve, "update"))
	b.may("dora", write)
	b.may("amy", write, site.Rule("drydock.dev", approve, "update"))
	b.may("agent", write, site.Rule("drydock.dev", done, "update"), site.Rule("", "events", "list"))
	// The API server follows policies and roles by watches of its own.
	asked := map[string]any{"node": "worker-07", "approval": true}
	b.Eventually("carl may ask, and dora may not", func() error {
		o, err := b.createAs(b.as("carl"), "approved", asked, "dry")
		if err == nil && !strings.Contains(string(o.Spec.Raw), `"requestedBy":"carl"`) {
			err = fmt.Errorf("spec %s", o.Spec.Raw)
		}
		if err != nil {
			return err
		}
		if _, err := b.createAs(b.as("dora"), "approved", asked, "dry"); !apierrors.IsForbidden(err) {
			return fmt.Errorf("dora asks: %w", err)
		}
		return nil
	})
	if _, err := b.createAs(b.as("carl"), "approved", asked); err != nil {
		t.Fatal(err)
	}
	b.shows("approved", v1alpha1.Reconciling, string(api.AwaitingApproval))

	key := func(message string) string { return "maintenance.drydock.dev/" + message }
	for _, c := range []struct {
		who         string
		annotations map[string]string
		says        string
	}{
		{"dora", map[string]string{key("approve"): "go"}, "dora may not say approve of approved"},
		{"carl", map[string]string{key("approve"): "go"}, "carl asked for approved, and does not approve it"},
		{"amy", map[string]string{key("done"): "go"}, "amy may not say done of approved"},
		{"amy", map[string]string{key("approve-by"): "amy"}, "must be your own name: amy"},
		{"agent", map[string]string{key("approve-by"): "amy"}, "agent may not say approve of approved"},
	} {
		// Until the policy of annotations is in force too, they are allowed: nothing of them may be kept.
		b.Eventually(fmt.Sprintf("%s is refused %v", c.who, c.annotations), func() error {
			err := b.annotate(b.as(c.who), "approved", c.annotations, "dry")
			if err == nil || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c.says) {
				return fmt.Errorf("%w, want a refusal that says %q", err, c.says)
			}
			return nil
		})
	}
	// Whoever may write to Temporal claims what they like, and is believed nothing.
	forged := api.Simple{Message: api.Message{By: v1alpha1.Said("amy"), Comment: "the change is reviewed"}}
	if err := b.Temporal.SignalWorkflow(b.Ctx, api.MaintenanceID(b.Cluster, "worker-07", "approved"), "", api.MsgApprove, forged); err != nil {
		t.Fatal(err)
	}
	b.Eventually("a forged approval does not count", func() error {
		if r := b.Drydock("status", "worker-07"); !strings.Contains(r.Stdout, "approved-by-amy") {
			return fmt.Errorf("the status names no rule: %s", r.Out())
		}
		return nil
	})
	as := func(user string, args ...string) site.Ran {
		return b.Drydock(append(args, "--kubeconfig", b.kubeconfigOf(user))...)
	}
	b.Exits(as("dora", "approve", "nm/approved"), 1, "dora may not say approve of approved")
	b.Exits(as("dora", "done", "nm/none"), 1, "nodemaintenance none: the API server has none", "kubectl get nodemaintenances")
	b.Exits(as("dora", "extend", "nm/approved"), 2, "name its node instead")
	b.Exits(as("dora", "cancel", "nm/approved", "--release"), 2, "--release: not for the maintenance of an object")
	b.Eventually("amy may approve", func() error {
		return b.annotate(b.as("amy"), "approved", map[string]string{key("approve"): "the change is reviewed"})
	})
	b.shows("approved", v1alpha1.Ready, string(api.Ready))
	b.Exits(as("agent", "done", "nm/approved", "--comment", "flashed"), 0, "done by kubernetes: agent: approved is done")
	o := b.shows("approved", v1alpha1.Succeeded, string(api.Completed))
	if len(o.Annotations) > 0 {
		t.Errorf("it still says %v", o.Annotations)
	}
	r := b.Drydock("history", "worker-07", "--details")
	b.Exits(r, 0, "kubernetes: amy (verified: kubernetes:amy)", "the change is reviewed", "kubernetes: agent", "flashed",
		"drydock-bridge (verified: kubernetes:carl)")
	b.delete("approved")
	b.isGone("approved")
}
