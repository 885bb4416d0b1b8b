package bridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/health/nhc"
)

const (
	// healthNamespace is the namespace that node-healthcheck-operator is installed in, and has the templates.
	healthNamespace = "node-healthcheck-operator"
	healthLease     = "e1f13584.medik8s.io"
	fences          = "/apis/fence-agents-remediation.medik8s.io/v1alpha1/namespaces/" + healthNamespace + "/fenceagentsremediations"
)

// nhcs are medik8s' objects.
var nhcs = kind{name: nhc.Kind, plural: "nodehealthchecks." + nhc.Group}

// newNHC is a site with a remediator, and a bridge that serves them once the operator's lease is free.
func newNHC(t *testing.T) *bridged {
	t.Helper()
	b := prepare(t, "")
	b.roles(manifests + "rbac-health.yaml")
	b.args = []string{"--node-healthcheck", healthNamespace}
	b.install(manifests + "node-healthcheck/crd.yaml")
	// The bridge of another test of this control plane may have left its lease.
	if err := b.Kube.CoordinationV1().Leases(healthNamespace).Delete(b.Ctx, healthLease, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	for _, o := range b.Manifests("../testdata/remediators.yaml") {
		resource := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
		if o.GetKind() == "ClusterRole" {
			resource = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
		}
		b.post(resource, o.Object)
	}
	b.Eventually("the objects are served", func() error { return b.send(nhcs.plural, "get", "", nil, nil) })
	templates := strings.ReplaceAll(fences, "remediations", "remediationtemplates")
	b.Eventually("the remediator is served", func() error {
		return errors.Join(b.Kube.CoreV1().RESTClient().Get().AbsPath(templates).Do(b.Ctx).Error(), b.Kube.CoreV1().RESTClient().Get().AbsPath(fences).Do(b.Ctx).Error())
	})
	b.post(templates, map[string]any{
		"apiVersion": "fence-agents-remediation.medik8s.io/v1alpha1", "kind": "FenceAgentsRemediationTemplate", "metadata": map[string]any{"name": "fence"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"agent": "fence_ipmilan"}}},
	})
	b.Eventually("the worker may make remediation objects", func() error {
		role, err := b.Kube.RbacV1().ClusterRoles().Get(b.Ctx, "drydock-worker-remediators", metav1.GetOptions{})
		if err == nil && len(role.Rules) == 0 {
			err = errors.New("nothing is aggregated yet")
		}
		return err
	})
	return b
}

// post creates an object, which a test of the same control plane may have created before.
func (b *bridged) post(path string, o map[string]any) {
	b.Helper()
	text, err := json.Marshal(o)
	if err == nil {
		err = b.Kube.CoreV1().RESTClient().Post().AbsPath(path).Body(text).SetHeader("Content-Type", "application/json").Do(b.Ctx).Error()
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		b.Fatal(err)
	}
}

// nodeHealthCheck is an object with what its clients read.
type nodeHealthCheck struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Status   nhc.Status        `json:"status"`
}

func (b *bridged) untilNHC(name, what string, is func(nhc.Status) bool) (o nodeHealthCheck) {
	b.Helper()
	b.Eventually(name+" "+what, func() error {
		o = nodeHealthCheck{}
		err := b.send(nhcs.plural, "get", name, nil, &o)
		if err == nil && !is(o.Status) {
			err = fmt.Errorf("%+v", o.Status)
		}
		return err
	})
	return o
}

// counts waits for a phase with so many nodes, of which so many are healthy.
func (b *bridged) counts(name string, phase health.Phase, observed, healthy int) nodeHealthCheck {
	b.Helper()
	return b.untilNHC(name, fmt.Sprintf("is %s with %d of %d nodes healthy", phase, healthy, observed), func(s nhc.Status) bool {
		return s.Phase == phase && s.ObservedNodes == observed && s.HealthyNodes == healthy
	})
}

// fence is the remediation object of a node, nil if there is none.
func (b *bridged) fence(node string) *unstructured.Unstructured {
	b.Helper()
	text, err := b.Kube.CoreV1().RESTClient().Get().AbsPath(fences, node).Do(b.Ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil
	}
	o := &unstructured.Unstructured{}
	if err == nil {
		err = o.UnmarshalJSON(text)
	}
	if err != nil {
		b.Fatal(err)
	}
	return o
}

// ward labels nodes for the checks of a test.
func (b *bridged) ward(nodes ...string) {
	b.Helper()
	for _, node := range nodes {
		b.PatchNode(node, `{"metadata":{"labels":{"ward":"`+b.ID+`"}}}`)
		b.Cleanup(func() { b.PatchNode(node, `{"metadata":{"labels":{"ward":null}}}`) })
	}
}

func (b *bridged) nhcSpec(more string) string {
	return `{selector: {matchLabels: {ward: "` + b.ID + `"}}, minHealthy: 1, unhealthyConditions: [{type: Broken, status: "True", duration: 1s}],
		remediationTemplate: {apiVersion: fence-agents-remediation.medik8s.io/v1alpha1, kind: FenceAgentsRemediationTemplate, namespace: ` +
		healthNamespace + `, name: fence}` + more + `}`
}

func TestANodeHealthCheckOfMedik8sIsServed(t *testing.T) {
	b := newNHC(t)
	const ill = "worker-02"
	b.ward("worker-01", ill)
	b.startBridge()
	b.untilTheEnd()
	b.askFor(nhcs, "gpu", b.nhcSpec(""))
	b.counts("gpu", health.PhaseEnabled, 2, 2)
	b.broken(ill, "True")
	o := b.counts("gpu", health.PhaseRemediating, 2, 1)
	object := b.fence(ill)
	if object == nil || len(object.GetOwnerReferences()) != 1 || object.GetOwnerReferences()[0].UID != o.Metadata.UID || object.GetOwnerReferences()[0].Kind != nhc.Kind {
		t.Fatalf("the remediation object is %+v", object)
	}
	if n := o.Status.UnhealthyNodes; len(n) != 1 || n[0].Name != ill || len(n[0].Remediations) != 1 ||
		n[0].Remediations[0].Resource.UID != string(object.GetUID()) || n[0].Remediations[0].Started.IsZero() {
		t.Errorf("it shows %+v", n)
	}
	if o.Status.LastUpdateTime == nil || o.Status.Reason == "" {
		t.Errorf("it shows %+v", o.Status)
	}

	// A change is followed; one of the selector is refused while a node is remediated.
	b.patch(nhcs, "gpu", map[string]any{"spec": map[string]any{"pauseRequests": []string{"storage moves"}}})
	b.counts("gpu", health.PhasePaused, 2, 1)
	b.patch(nhcs, "gpu", map[string]any{"spec": map[string]any{"pauseRequests": nil}})
	b.counts("gpu", health.PhaseRemediating, 2, 1)
	b.patch(nhcs, "gpu", map[string]any{"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/hostname": "worker-01"}}}})
	b.Eventually("an event says that the change is refused", func() error {
		events, err := b.Kube.EventsV1().Events("").List(b.Ctx, metav1.ListOptions{FieldSelector: "reason=ChangeRefused"})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Regarding.UID == o.Metadata.UID && strings.Contains(e.Note, "selector") {
				return nil
			}
		}
		return fmt.Errorf("%d events", len(events.Items))
	})
	b.broken(ill, "False")
	b.counts("gpu", health.PhaseEnabled, 1, 1)
	if b.fence(ill) != nil {
		t.Error("the remediation object stays")
	}
	b.remove(nhcs, "gpu")
	b.wasRemoved(nhcs, "gpu")
	described, err := b.Temporal.DescribeWorkflowExecution(b.Ctx, api.HealthCheckID(b.Cluster, "gpu"), "")
	if status := described.GetWorkflowExecutionInfo().GetStatus().String(); err != nil || status != "Completed" {
		t.Errorf("%v: the check is %s", err, status)
	}

	// A check that somebody removes stays so, until the object is created anew.
	b.askFor(nhcs, "gpu", b.nhcSpec(""))
	b.counts("gpu", health.PhaseEnabled, 2, 2)
	b.MustDrydock("health", "remove", "gpu")
	o = b.untilNHC("gpu", "is disabled", func(s nhc.Status) bool { return s.Phase == health.PhaseDisabled })
	if !strings.Contains(o.Status.Reason, "has ended") {
		t.Errorf("it shows %+v", o.Status)
	}
	b.patch(nhcs, "gpu", map[string]any{"spec": map[string]any{"minHealthy": 0}})
	b.remove(nhcs, "gpu")
	b.wasRemoved(nhcs, "gpu")
	described, err = b.Temporal.DescribeWorkflowExecution(b.Ctx, api.HealthCheckID(b.Cluster, "gpu"), "")
	if status := described.GetWorkflowExecutionInfo().GetStatus().String(); err != nil || status != "Completed" {
		t.Errorf("%v: the check is %s, though it was removed", err, status)
	}

	// Somebody else's check of the name comes first, and the object says so.
	file := filepath.Join(t.TempDir(), "check.yaml")
	if err := os.WriteFile(file, []byte("name: gpu\nselector: {matchLabels: {ward: nobody}}\nmaintenance: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.MustDrydock("health", "start", "--file", file)
	b.askFor(nhcs, "gpu", b.nhcSpec(""))
	o = b.untilNHC("gpu", "waits", func(s nhc.Status) bool { return s.Phase == health.PhaseDisabled })
	if !strings.Contains(o.Status.Reason, "somebody else") {
		t.Errorf("it shows %+v", o.Status)
	}
	b.MustDrydock("health", "remove", "gpu")
	b.counts("gpu", health.PhaseEnabled, 2, 2)
	b.remove(nhcs, "gpu")
	b.wasRemoved(nhcs, "gpu")

	// What cannot be checked is not.
	b.askFor(nhcs, "invalid", b.nhcSpec(", escalatingRemediations: [{order: 1, timeout: 2m, remediationTemplate: {kind: ATemplate, name: a}}]"))
	o = b.untilNHC("invalid", "is disabled", func(s nhc.Status) bool { return s.Phase == health.PhaseDisabled })
	if !strings.Contains(o.Status.Reason, "escalatingRemediations") || len(o.Metadata.Finalizers) > 0 {
		t.Errorf("it shows %+v", o.Status)
	}
	b.remove(nhcs, "invalid")
	b.wasRemoved(nhcs, "invalid")
}

// What the operator has begun goes on when it stops: its remediation object and its lease of the node are the check's.
func TestARemediationOfMedik8sIsTakenOver(t *testing.T) {
	b := newNHC(t)
	const ill = "worker-04"
	b.ward("worker-03", ill)
	b.broken(ill, "True")
	b.askFor(nhcs, "gpu", b.nhcSpec(""))
	var o nodeHealthCheck
	if err := b.send(nhcs.plural, "get", "gpu", nil, &o); err != nil {
		t.Fatal(err)
	}
	b.post(fences, map[string]any{
		"apiVersion": "fence-agents-remediation.medik8s.io/v1alpha1", "kind": "FenceAgentsRemediation",
		"metadata": map[string]any{
			"name": ill, "annotations": map[string]any{"remediation.medik8s.io/node-name": ill, "remediation.medik8s.io/template-name": "fence"},
			"ownerReferences": []any{map[string]any{"apiVersion": nhc.APIVersion, "kind": nhc.Kind, "name": "gpu", "uid": o.Metadata.UID}},
		},
		"spec": map[string]any{"agent": "fence_ipmilan"},
	})
	begun := b.fence(ill)
	// The operator is still there.
	now := metav1.NowMicro()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: healthNamespace, Name: healthLease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("operator"), LeaseDurationSeconds: new(int32(600)), AcquireTime: &now, RenewTime: &now},
	}
	leases := b.Kube.CoordinationV1().Leases(healthNamespace)
	if _, err := leases.Create(b.Ctx, lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.startBridge()
	b.untilTheEnd()
	b.askFor(checks, "other", `{selector: {matchLabels: {ward: nobody}}, maintenance: {}}`)
	b.untilCheck("other", "is followed", remediating(0))
	if err := b.send(nhcs.plural, "get", "gpu", nil, &o); err != nil || o.Status.Phase != "" || len(o.Metadata.Finalizers) > 0 {
		t.Errorf("%v: beside the operator it shows %+v, %v", err, o.Status, o.Metadata.Finalizers)
	}
	b.remove(checks, "other")
	b.wasRemoved(checks, "other")

	patch := []byte(`{"spec":{"holderIdentity":"","leaseDurationSeconds":1}}`)
	if _, err := leases.Patch(b.Ctx, healthLease, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	o = b.counts("gpu", health.PhaseRemediating, 2, 1)
	if n := o.Status.UnhealthyNodes; len(n) != 1 || len(n[0].Remediations) != 1 || n[0].Remediations[0].Resource.UID != string(begun.GetUID()) ||
		!n[0].Remediations[0].Started.Equal(begun.GetCreationTimestamp().Time) {
		t.Errorf("it shows %+v, want the remediation %s of %s", n, begun.GetUID(), begun.GetCreationTimestamp().UTC().Format(time.RFC3339))
	}
	b.broken(ill, "False")
	b.counts("gpu", health.PhaseEnabled, 2, 2)
	if b.fence(ill) != nil {
		t.Error("the remediation object stays")
	}
	b.remove(nhcs, "gpu")
	b.wasRemoved(nhcs, "gpu")
}

// The policies refuse what the operator's webhook refuses.
func TestNodeHealthChecksAreRefusedAsByTheWebhook(t *testing.T) {
	b := newNHC(t)
	b.install(manifests + "node-healthcheck/admission.yaml")
	template := `remediationTemplate: {kind: FenceAgentsRemediationTemplate, name: fence}`
	step := func(order int, timeout, of string) string {
		return fmt.Sprintf(`{order: %d, timeout: %s, remediationTemplate: {kind: %s, name: fence}}`, order, timeout, of)
	}
	const selector = `selector: {matchLabels: {a: b}}`
	try := func(spec string) error {
		return b.tryFor(nhcs, "tried", "{"+spec+"}")
	}
	b.Eventually("the policy is in force", func() error {
		if err := try(selector + ", " + template); err == nil || !strings.Contains(err.Error(), "set one of minHealthy and maxUnhealthy") {
			return fmt.Errorf("%w", err)
		}
		return try(selector + ", minHealthy: 1, " + template)
	})
	for _, c := range []struct{ spec, says string }{
		{selector + ", minHealthy: 1, maxUnhealthy: 1, " + template, "set one of minHealthy and maxUnhealthy"},
		{selector + ", minHealthy: -1, " + template, "must not be negative"},
		{"minHealthy: 1, " + template, "spec.selector: must not be empty"},
		{"selector: {}, minHealthy: 1, " + template, "spec.selector: must not be empty"},
		{selector + ", minHealthy: 1", "set one of remediationTemplate and escalatingRemediations"},
		{selector + ", minHealthy: 1, escalatingRemediations: []", "set one of remediationTemplate and escalatingRemediations"},
		{selector + ", minHealthy: 1, " + template + ", escalatingRemediations: [" + step(1, "2m", "ATemplate") + "]", "set one of remediationTemplate and escalatingRemediations"},
		{selector + ", minHealthy: 1, escalatingRemediations: [" + step(1, "2m", "ATemplate") + ", " + step(1, "2m", "BTemplate") + "]", "another order"},
		{selector + ", minHealthy: 1, escalatingRemediations: [" + step(1, "59s", "ATemplate") + "]", "a minute at least"},
		{selector + ", maxUnhealthy: 1, remediationTemplate: {kind: MachineDeletionRemediationTemplate, name: a}", "not with MachineDeletionRemediationTemplate"},
		{selector + ", maxUnhealthy: 1, escalatingRemediations: [" + step(1, "2m", "machinedeletionremediationtemplate") + "]", "not with MachineDeletionRemediationTemplate"},
		{selector + ", maxUnhealthy: 40%, " + template, ""},
		{selector + ", minHealthy: 1, escalatingRemediations: [" + step(2, "1m30s", "ATemplate") + ", " + step(1, "60s", "BTemplate") + "]", ""},
	} {
		err := try(c.spec)
		if (c.says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.spec, err, c.says)
		}
	}
	b.refusedWhileRemediating()
	// Other tests of this control plane have the check itself refuse a change.
	b.uninstall(manifests + "node-healthcheck/admission.yaml")
	b.Eventually("the policy is not in force any more", func() error { return try(selector + ", " + template) })
}

// refusedWhileRemediating tries what is refused of an object whose status has a remediation.
func (b *bridged) refusedWhileRemediating() {
	b.Helper()
	b.askFor(nhcs, "busy", b.nhcSpec(""))
	version, plural := versionOf(nhcs.plural)
	status := []byte(`{"status":{"unhealthyNodes":[{"name":"worker-01","remediations":[{"resource":{"name":"worker-01"},"started":"2026-01-01T00:00:00Z"}]}]}}`)
	if err := b.Kube.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath("/apis", version, plural, "busy", "status").Body(status).Do(b.Ctx).Error(); err != nil {
		b.Fatal(err)
	}
	patch := func(spec map[string]any) error {
		return b.patchAs(nhcs, b.Kube, "busy", map[string]any{"spec": spec}, "dry")
	}
	remove := func() error {
		return b.Kube.CoreV1().RESTClient().Delete().AbsPath("/apis", version, plural, "busy").Do(b.Ctx).Error()
	}
	for _, c := range []struct {
		what, says string
		err        error
	}{
		{"selector", "do not change while a node is being remediated", patch(map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"c": "d"}}})},
		{"template", "do not change while a node is being remediated", patch(map[string]any{"remediationTemplate": map[string]any{"name": "other"}})},
		{"delete", "cannot be deleted while a node is being remediated", remove()},
		{"minHealthy", "", patch(map[string]any{"minHealthy": 0})},
	} {
		if (c.says == "") != (c.err == nil) || c.err != nil && !strings.Contains(c.err.Error(), c.says) {
			b.Errorf("%s: %v, want %q", c.what, c.err, c.says)
		}
	}
	if err := b.Kube.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath("/apis", version, plural, "busy", "status").
		Body([]byte(`{"status":{"unhealthyNodes":null}}`)).Do(b.Ctx).Error(); err != nil {
		b.Fatal(err)
	}
	b.Eventually("it can be deleted", remove)
}
