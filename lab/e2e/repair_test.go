package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
)

// attach plays a volume that is attached to a node, until the test or somebody else detaches it.
func (s *site) attach(name, node string) (detach func()) {
	s.Helper()
	attachments := s.kube.StorageV1().VolumeAttachments()
	if _, err := attachments.Create(s.ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "csi.example.com", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name},
		},
	}, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	detach = func() { _ = attachments.Delete(s.ctx, name, metav1.DeleteOptions{}) }
	s.Cleanup(detach)
	return detach
}

// repairs begins what a health check begins for a dead node.
func (s *site) repairs(node, more string) client.WorkflowRun {
	s.Helper()
	return s.start(node, "health-workers",
		fmt.Sprintf(`{"node":%q,"remediation":{"check":"workers"},"work":"fence","outOfService":true%s}`, node, more))
}

func (s *site) outOfService(node string, is bool) {
	s.Helper()
	s.eventually(fmt.Sprintf("node %s is out of service: %t", node, is), func() error {
		if k8s.IsOutOfService(s.node(node)) != is {
			return errors.New("not yet")
		}
		return nil
	})
}

const fencedByWord = `
scheduler: {maxParallel: 1}
work: {fence: {signal: {}, deadline: 5m}}
kubernetes: {marks: {medik8s: true}}
`

// TestADeadNodeIsRepaired: a maintenance of a health check needs none of the slots that are planned for, drains a node whose
// kubelet is silent, and once the node is proven to be off has its pods and volumes go elsewhere.
func TestADeadNodeIsRepaired(t *testing.T) {
	s := newSite(t, fencedByWord)
	const node = "worker-02"
	ns := s.namespace()
	s.deployment(ns, "web", 1, on(node), slowToEnd("10m"), endsWithin(1))
	stuck := s.one(ns, "web")
	before := s.imprint(node)
	planned := s.begin("worker-01") // holds the only slot of maxParallel
	s.until(planned, api.Ready)
	s.silent(node)
	detach := s.attach("pv-"+s.name, node)

	run := s.repairs(node, `,"validation":{"ready":true,"deadline":"2m","every":"1s"}`)
	s.until(run, api.Ready)
	if label := s.node(node).Labels[k8s.ExcludeLabel]; label != "true" {
		t.Errorf("medik8s is told %q", label)
	}
	s.leaving(stuck)
	s.exits(s.drydock("limits"), 0, "Remediations of health checks")
	if k8s.IsOutOfService(s.node(node)) {
		t.Error("it is tainted before it is known to be off")
	}
	s.untilStatus(run, "the work runs", workRuns)
	s.signal(run, api.MsgHookDone, map[string]any{"hook": "fence", "by": "bmc"})
	s.outOfService(node, true)
	s.untilGone(stuck) // Kubernetes deletes it without the kubelet's word
	s.untilStatus(run, "it waits for the volume", func(status api.Status) bool {
		return strings.Contains(status.WaitingFor, "volume/pv-"+s.name)
	})
	detach()
	s.outOfService(node, false)
	s.untilStatus(run, "it waits for the node to be Ready", func(status api.Status) bool {
		return status.Phase == api.Validating && strings.HasPrefix(status.WaitingFor, "the validation")
	})
	s.ready(node, true)
	s.mustEnd(run, api.Completed)
	s.back(node, before)
	s.until(planned, api.Ready)
}

func TestTheTaintOutOfServiceGoesWithItsMaintenance(t *testing.T) {
	for name, end := range map[string]func(s *site, run client.WorkflowRun){
		"cancel": func(s *site, run client.WorkflowRun) {
			s.signal(run, api.MsgCancel, map[string]any{"release": true, "by": "ops"})
			s.mustEnd(run, api.Cancelled)
		},
		"terminate": func(s *site, run client.WorkflowRun) {
			if err := s.temporal.TerminateWorkflow(s.ctx, run.GetID(), "", "test"); err != nil {
				s.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, fencedByWord)
			const node = "worker-02"
			before := s.imprint(node)
			s.silent(node)
			s.attach("pv-"+s.name, node)
			run := s.repairs(node, "")
			s.untilStatus(run, "the work runs", workRuns)
			s.signal(run, api.MsgHookDone, map[string]any{"hook": "fence"})
			s.outOfService(node, true)
			end(s, run)
			s.outOfService(node, false)
			s.ready(node, true)
			s.back(node, before)
		})
	}
}

// TestANodeThatStillRunsIsNotTainted: work that says it has turned a node off which goes on running is not believed.
func TestANodeThatStillRunsIsNotTainted(t *testing.T) {
	s := newSite(t, fencedByWord)
	const node = "worker-02"
	run := s.repairs(node, "")
	s.untilStatus(run, "the work runs", workRuns)
	s.signal(run, api.MsgHookDone, map[string]any{"hook": "fence"})
	s.untilStatus(run, "Kubernetes is waited for", func(status api.Status) bool {
		return status.WaitingFor == "Kubernetes to notice that the node is off"
	})
	s.always("it is not tainted", 3*time.Second, func() error {
		if hasTaint(s.node(node), corev1.TaintNodeOutOfService) {
			return errors.New("it is")
		}
		return nil
	})
	s.signal(run, api.MsgCancel, map[string]any{"release": true})
	s.mustEnd(run, api.Cancelled)
}
