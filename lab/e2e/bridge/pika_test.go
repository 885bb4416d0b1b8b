package bridge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
)

const (
	// pikaNamespace is the namespace that PIKA is installed in, and has the objects.
	pikaNamespace = "pika"
	notifies      = "/apis/ngn2.nvidia.com/v1alpha1/namespaces/" + pikaNamespace + "/notifymaintenances"
)

// notifyMaintenance is an object with what PIKA's clients read.
type notifyMaintenance struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Status   struct {
		MaintenanceStatus    string             `json:"maintenanceStatus"`
		SLAExpires           *metav1.Time       `json:"slaExpires"`
		Conditions           []metav1.Condition `json:"conditions"`
		TransitionTimestamps []struct {
			MaintenanceStatus   string      `json:"maintenanceStatus"`
			TransitionTimestamp metav1.Time `json:"transitionTimestamp"`
		} `json:"transitionTimestamps"`
	} `json:"status"`
}

func (n notifyMaintenance) states() (all []string) {
	for _, t := range n.Status.TransitionTimestamps {
		all = append(all, t.MaintenanceStatus)
	}
	return all
}

func (n notifyMaintenance) condition(kind string) string {
	i := slices.IndexFunc(n.Status.Conditions, func(c metav1.Condition) bool { return c.Type == kind })
	if i < 0 {
		return ""
	}
	return string(n.Status.Conditions[i].Status)
}

// preparePIKA is a site whose bridge, once started, serves the objects.
func preparePIKA(t *testing.T, sla string, more ...string) *bridged {
	t.Helper()
	b := prepare(t, "scheduler: {maxParallel: 5}")
	b.args = append([]string{"--pika", pikaNamespace, "--pika-sla", sla}, more...)
	b.install(manifests + "pika/crd.yaml")
	b.Eventually("the objects are served", func() error { return b.Kube.CoreV1().RESTClient().Get().AbsPath(notifies).Do(b.Ctx).Error() })
	return b
}

func (b *bridged) notify(name, node string) {
	b.Helper()
	b.post(notifies, map[string]any{
		"apiVersion": "ngn2.nvidia.com/v1alpha1", "kind": "NotifyMaintenance", "metadata": map[string]any{"name": name, "namespace": pikaNamespace},
		"spec": map[string]any{"nodeObject": node, "maintenanceID": "id-" + name, "maintenanceType": "planned", "owner": "gpu"},
	})
}

func (b *bridged) untilNotify(name, what string, is func(notifyMaintenance) bool) (n notifyMaintenance) {
	b.Helper()
	b.Eventually(name+" "+what, func() error {
		n = notifyMaintenance{}
		text, err := b.Kube.CoreV1().RESTClient().Get().AbsPath(notifies, name).Do(b.Ctx).Raw()
		if err == nil {
			err = json.Unmarshal(text, &n)
		}
		if err == nil && !is(n) {
			err = fmt.Errorf("%v %+v", n.Metadata.Annotations, n.Status)
		}
		return err
	})
	return n
}

func (b *bridged) notifyIs(name, state string) notifyMaintenance {
	b.Helper()
	return b.untilNotify(name, "is "+state, func(n notifyMaintenance) bool { return n.Status.MaintenanceStatus == state })
}

func (b *bridged) notifyPatch(name string, change map[string]any, subresource ...string) error {
	text, err := json.Marshal(change)
	if err != nil {
		return err
	}
	return b.Kube.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(append([]string{notifies, name}, subresource...)...).Body(text).Do(b.Ctx).Error()
}

// says has a client of PIKA say something by an annotation.
func (b *bridged) says(name, key, value string) {
	b.Helper()
	if err := b.notifyPatch(name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"maintenance/" + key: value}}}); err != nil {
		b.Fatal(err)
	}
}

func (b *bridged) notifyDelete(name string) {
	b.Helper()
	if err := b.Kube.CoreV1().RESTClient().Delete().AbsPath(notifies, name).Do(b.Ctx).Error(); err != nil {
		b.Fatal(err)
	}
}

func (b *bridged) notifyGone(name string) {
	b.Helper()
	b.Eventually(name+" is gone", func() error {
		text, err := b.Kube.CoreV1().RESTClient().Get().AbsPath(notifies, name).Do(b.Ctx).Raw()
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%w: %s", err, text)
	})
}

func TestANotifyMaintenanceGoesThroughItsStates(t *testing.T) {
	b := preparePIKA(t, "4s")
	before := b.Imprint("worker-01")
	b.startBridge()
	b.untilTheEnd()
	b.notify("kernel", "worker-01")
	n := b.notifyIs("kernel", "MaintenanceStarted")
	if n.Status.SLAExpires == nil || !slices.Contains(n.Metadata.Finalizers, "ngn2.nvidia.com/finalNotice") || n.Metadata.Labels["maintenance/id-kernel"] != "" {
		t.Errorf("it shows %+v, with %v and %v", n.Status, n.Metadata.Finalizers, n.Metadata.Labels)
	}
	if _, labelled := n.Metadata.Labels["maintenance/id-kernel"]; !labelled || !b.Node("worker-01").Spec.Unschedulable {
		t.Errorf("the labels are %v", n.Metadata.Labels)
	}
	expired := b.notifyIs("kernel", "SLAExpired")
	if at := expired.Status.TransitionTimestamps[2].TransitionTimestamp; at.Sub(n.Status.SLAExpires.Time).Abs() > 2*time.Second {
		t.Errorf("the SLA was to expire at %s, and did at %s", n.Status.SLAExpires, at)
	}
	// Readiness that is denied says nothing.
	b.says("kernel", "readyForMaintenance", "false")
	b.says("kernel", "readyForMaintenance", "true")
	n = b.notifyIs("kernel", "ObjectsDrained")
	if n.condition("readyForMaintenance") != "true" {
		t.Errorf("it shows %+v", n.Status)
	}
	b.says("kernel", "maintenanceClient", "inprogress")
	b.untilNotify("kernel", "says that the work goes on", func(n notifyMaintenance) bool { return n.condition("maintenanceClient") == "inprogress" })
	b.says("kernel", "maintenanceClient", "complete")
	b.notifyIs("kernel", "Validating")
	b.says("kernel", "validationClient", "validated")
	n = b.untilNotify("kernel", "is validated", func(n notifyMaintenance) bool { return n.condition("validationClient") == "validated" })
	want := []string{"MaintenanceScheduled", "MaintenanceStarted", "SLAExpired", "ObjectsDrained", "Validating"}
	if !slices.Equal(n.states(), want) || n.Status.MaintenanceStatus != "Validating" || n.condition("maintenanceClient") != "complete" {
		t.Errorf("it has come into %v, and shows %+v", n.states(), n.Status)
	}
	if !b.Node("worker-01").Spec.Unschedulable {
		t.Error("the node is back before the object is deleted")
	}
	b.notifyDelete("kernel")
	b.notifyGone("kernel")
	b.Back("worker-01", before)
}

func TestANotifyMaintenanceThatIsDeletedOrFails(t *testing.T) {
	b := preparePIKA(t, "1h", "--pika-input", `{"drain":{"mode":"evict"}}`)
	before := b.Imprints()
	b.startBridge()
	b.untilTheEnd()
	// Drydock drains here, and says so.
	b.notify("drained", "worker-01")
	n := b.notifyIs("drained", "ObjectsDrained")
	if n.Metadata.Annotations["maintenance/readyForMaintenance"] != "true" || n.condition("readyForMaintenance") != "true" {
		t.Errorf("it says %v, and shows %+v", n.Metadata.Annotations, n.Status)
	}
	b.notifyDelete("drained")
	b.notifyGone("drained")
	b.Back("worker-01", before["worker-01"])

	// One that is deleted while pods leave gives its node back.
	ns := b.Namespace()
	b.Guarded(ns, "guarded", "worker-02")
	b.notify("cancelled", "worker-02")
	b.notifyIs("cancelled", "MaintenanceStarted")
	b.notifyDelete("cancelled")
	b.notifyGone("cancelled")
	b.Back("worker-02", before["worker-02"])

	// A node whose maintenance failed is no node for production, whoever deletes the object.
	b.notify("failed", "worker-03")
	b.notifyIs("failed", "ObjectsDrained")
	b.says("failed", "maintenanceClient", "incomplete")
	b.notifyIs("failed", "MaintenanceIncomplete")
	b.notifyDelete("failed")
	b.untilNotify("failed", "waits for a decision", func(n notifyMaintenance) bool {
		_, terminated := n.Metadata.Annotations["maintenance.ngn2.nvidia.com/terminated"]
		return terminated && n.Status.MaintenanceStatus == "MaintenanceIncomplete"
	})
	if !b.Node("worker-03").Spec.Unschedulable {
		t.Error("the node is back")
	}
	b.MustDrydock("cancel", "worker-03", "--requestor", "id-failed", "--release", "--yes")
	b.notifyGone("failed")
	b.Back("worker-03", before["worker-03"])
	b.failsItsValidation("worker-03", before["worker-03"])

	// One that waits for another's node, and that a person cancels, has ended.
	b.notify("first", "worker-01")
	b.notifyIs("first", "ObjectsDrained")
	b.notify("second", "worker-01")
	b.untilNotify("second", "has its maintenance", func(n notifyMaintenance) bool { return n.Metadata.Annotations["drydock.dev/run"] != "" })
	b.MustDrydock("cancel", "worker-01", "--requestor", "id-second", "--yes")
	ended := b.untilNotify("second", "has ended", func(n notifyMaintenance) bool { return len(n.Metadata.Finalizers) == 0 })
	b.notifyDelete("first")
	b.notifyGone("first")
	now := b.untilNotify("second", "stays as it is", func(n notifyMaintenance) bool { return n.Status.MaintenanceStatus == "MaintenanceScheduled" })
	if now.Metadata.ResourceVersion != ended.Metadata.ResourceVersion {
		t.Errorf("it was written again: %+v", now)
	}
	b.notifyDelete("second")
	b.notifyGone("second")
	b.Back("worker-01", before["worker-01"])
}

// failsItsValidation has a node that is not good for production: it is not back because its object is deleted.
func (b *bridged) failsItsValidation(node, before string) {
	b.Helper()
	b.notify("invalid", node)
	b.notifyIs("invalid", "ObjectsDrained")
	b.says("invalid", "maintenanceClient", "complete")
	b.notifyIs("invalid", "Validating")
	b.says("invalid", "validationClient", "failed")
	b.notifyIs("invalid", "MaintenanceIncomplete")
	b.notifyDelete("invalid")
	b.untilNotify("invalid", "waits for a decision", func(n notifyMaintenance) bool {
		_, terminated := n.Metadata.Annotations["maintenance.ngn2.nvidia.com/terminated"]
		return terminated
	})
	if !b.Node(node).Spec.Unschedulable {
		b.Error("the node is back")
	}
	b.MustDrydock("cancel", node, "--requestor", "id-invalid", "--release", "--yes")
	b.notifyGone("invalid")
	b.Back(node, before)
}

// PIKA's scheduler has cordoned the node of an object that had started.
func TestANotifyMaintenanceOfPIKAIsTakenOver(t *testing.T) {
	b := preparePIKA(t, "1h")
	before := b.Imprints()
	expires := metav1.NewTime(time.Now().Add(30 * time.Minute).UTC().Truncate(time.Second))
	for name, left := range map[string]struct{ node, state string }{
		"started": {"worker-04", "MaintenanceStarted"}, "drained": {"worker-05", "ObjectsDrained"}, "deleted": {"worker-06", "MaintenanceStarted"},
	} {
		b.notify(name, left.node)
		b.PatchNode(left.node, `{"spec":{"unschedulable":true}}`)
		metadata := map[string]any{"finalizers": []string{"ngn2.nvidia.com/finalNotice"}, "labels": map[string]any{"maintenance/id-" + name: ""}}
		if left.state == "ObjectsDrained" {
			metadata["annotations"] = map[string]any{"maintenance/readyForMaintenance": "true"}
		}
		if err := b.notifyPatch(name, map[string]any{"metadata": metadata}); err != nil {
			t.Fatal(err)
		}
		if err := b.notifyPatch(name, map[string]any{"status": map[string]any{
			"maintenanceStatus": left.state, "slaExpires": expires,
			"transitionTimestamps": []any{map[string]any{"maintenanceStatus": left.state, "transitionTimestamp": metav1.Now()}},
		}}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	b.notifyDelete("deleted")
	b.startBridge()
	b.untilTheEnd()
	b.notifyGone("deleted")
	b.Back("worker-06", before["worker-06"])
	m := api.MaintenanceID(b.Cluster, "worker-04", "id-started")
	status := b.Until(b.Temporal.GetWorkflow(b.Ctx, m, ""), api.Draining)
	if sla := status.Spec.SLA; sla == nil || time.Duration(sla.After) > 30*time.Minute {
		t.Errorf("the SLA is %+v", sla)
	}
	n := b.notifyIs("started", "MaintenanceStarted")
	if !n.Status.SLAExpires.Equal(&expires) || len(n.states()) != 1 {
		t.Errorf("it shows %+v", n.Status)
	}
	b.says("started", "readyForMaintenance", "true")
	b.notifyIs("started", "ObjectsDrained")
	// What was drained stays so.
	b.Until(b.Temporal.GetWorkflow(b.Ctx, api.MaintenanceID(b.Cluster, "worker-05", "id-drained"), ""), api.Ready)
	if n := b.notifyIs("drained", "ObjectsDrained"); len(n.states()) != 1 {
		t.Errorf("it has come into %v", n.states())
	}
	for name, node := range map[string]string{"started": "worker-04", "drained": "worker-05"} {
		b.notifyDelete(name)
		b.notifyGone(name)
		b.Back(node, before[node])
	}
}

// The policy refuses what PIKA's webhook refuses.
func TestNotifyMaintenancesAreRefusedAsByTheWebhook(t *testing.T) {
	b := preparePIKA(t, "1h")
	b.install(manifests + "pika/admission.yaml")
	create := func(id, kind string, annotations map[string]string, dry string) error {
		text, err := json.Marshal(map[string]any{
			"apiVersion": "ngn2.nvidia.com/v1alpha1", "kind": "NotifyMaintenance", "metadata": map[string]any{"name": "tried", "annotations": annotations},
			"spec": map[string]any{"nodeObject": "worker-01", "maintenanceID": id, "maintenanceType": kind},
		})
		if err != nil {
			return err
		}
		request := b.Kube.CoreV1().RESTClient().Post().AbsPath(notifies)
		if dry != "" {
			request = request.Param("dryRun", dry)
		}
		return request.Body(text).SetHeader("Content-Type", "application/json").Do(b.Ctx).Error()
	}
	refusal := func(err error, says string) error {
		if (says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), says) {
			return fmt.Errorf("%w, want %q", err, says)
		}
		return nil
	}
	b.Eventually("the policy is in force", func() error { return refusal(create("a-1", "some", nil, "All"), "spec.maintenanceType") })
	for says, err := range map[string]error{
		"spec.maintenanceID: want":      create("-", "planned", nil, "All"),
		"must not be empty":             create("", "planned", nil, "All"),
		"want readyForMaintenance true": create("a-1", "planned", map[string]string{"maintenance/maintenanceClient": "perhaps"}, "All"),
		"":                              create("a-1", "unplanned", map[string]string{"maintenance/validationClient": "inprogress"}, "All"),
	} {
		if err := refusal(err, says); err != nil {
			t.Error(err)
		}
	}
	if err := create("a-1", "planned", map[string]string{"maintenance/maintenanceClient": "complete"}, ""); err != nil {
		t.Fatal(err)
	}
	said := func(value any) map[string]any {
		return map[string]any{"metadata": map[string]any{"annotations": map[string]any{"maintenance/maintenanceClient": value}}}
	}
	for says, err := range map[string]error{
		"do not change":          b.notifyPatch("tried", map[string]any{"spec": map[string]any{"maintenanceID": "a-2"}}),
		"what is final does not": b.notifyPatch("tried", said("incomplete")),
		"":                       b.notifyPatch("tried", map[string]any{"spec": map[string]any{"owner": "amy"}}),
	} {
		if err := refusal(err, says); err != nil {
			t.Error(err)
		}
	}
	// As there, it may be taken back.
	if err := b.notifyPatch("tried", said(nil)); err != nil {
		t.Error(err)
	}
	b.notifyDelete("tried")
}
