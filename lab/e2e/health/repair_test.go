package health

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
	"drydock.dev/drydock/lab/e2e/site"
)

// attach plays a volume that is attached to a node, until the test or somebody else detaches it.
func attach(s *site.Site, name, node string) (detach func()) {
	s.Helper()
	attachments := s.Kube.StorageV1().VolumeAttachments()
	if _, err := attachments.Create(s.Ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "csi.example.com", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name},
		},
	}, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	detach = func() { _ = attachments.Delete(s.Ctx, name, metav1.DeleteOptions{}) }
	s.Cleanup(detach)
	return detach
}

// repairs begins what a health check begins for a dead node.
func repairNode(s *site.Site, node, more string) client.WorkflowRun {
	s.Helper()
	return s.Start(node, "health-workers",
		fmt.Sprintf(`{"node":%q,"remediation":{"check":"workers"},"work":"fence","outOfService":true%s}`, node, more))
}

func outOfService(s *site.Site, node string, is bool) {
	s.Helper()
	s.Eventually(fmt.Sprintf("node %s is out of service: %t", node, is), func() error {
		if k8s.IsOutOfService(s.Node(node)) != is {
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
	s := site.New(t, fencedByWord)
	const node = "worker-02"
	ns := s.Namespace()
	s.Deployment(ns, "web", 1, site.On(node), site.SlowToEnd("10m"), site.EndsWithin(1))
	stuck := s.One(ns, "web")
	before := s.Imprint(node)
	planned := s.Begin("worker-01") // holds the only slot of maxParallel
	s.Until(planned, api.Ready)
	s.Silent(node)
	detach := attach(s, "pv-"+s.ID, node)

	run := repairNode(s, node, `,"validation":{"ready":true,"deadline":"2m","every":"1s"}`)
	s.Until(run, api.Ready)
	if label := s.Node(node).Labels[k8s.ExcludeLabel]; label != "true" {
		t.Errorf("medik8s is told %q", label)
	}
	s.Leaving(stuck)
	s.Exits(s.Drydock("limits"), 0, "of health checks, in slots of their own")
	if k8s.IsOutOfService(s.Node(node)) {
		t.Error("it is tainted before it is known to be off")
	}
	s.UntilStatus(run, "the work runs", site.WorkRuns)
	s.Signal(run, api.MsgHookDone, map[string]any{"hook": "fence", "by": "bmc"})
	outOfService(s, node, true)
	s.UntilGone(stuck) // Kubernetes deletes it without the kubelet's word
	s.UntilStatus(run, "it waits for the volume", func(status api.Status) bool {
		return strings.Contains(status.WaitingFor, "volume/pv-"+s.ID)
	})
	detach()
	outOfService(s, node, false)
	s.UntilStatus(run, "it waits for the node to be Ready", func(status api.Status) bool {
		return status.Phase == api.Validating && strings.HasPrefix(status.WaitingFor, "the validation")
	})
	s.Ready(node, true)
	s.MustEnd(run, api.Completed)
	s.Back(node, before)
	s.Until(planned, api.Ready)
}

func TestTheTaintOutOfServiceGoesWithItsMaintenance(t *testing.T) {
	for name, end := range map[string]func(s *site.Site, run client.WorkflowRun){
		"cancel": func(s *site.Site, run client.WorkflowRun) {
			s.Signal(run, api.MsgCancel, map[string]any{"release": true, "by": "ops"})
			s.MustEnd(run, api.Cancelled)
		},
		"terminate": func(s *site.Site, run client.WorkflowRun) {
			if err := s.Temporal.TerminateWorkflow(s.Ctx, run.GetID(), "", "test"); err != nil {
				s.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := site.New(t, fencedByWord)
			const node = "worker-02"
			before := s.Imprint(node)
			s.Silent(node)
			attach(s, "pv-"+s.ID, node)
			run := repairNode(s, node, "")
			s.UntilStatus(run, "the work runs", site.WorkRuns)
			s.Signal(run, api.MsgHookDone, map[string]any{"hook": "fence"})
			outOfService(s, node, true)
			end(s, run)
			outOfService(s, node, false)
			s.Ready(node, true)
			s.Back(node, before)
		})
	}
}

// TestANodeThatStillRunsIsNotTainted: work that says it has turned a node off which goes on running is not believed.
func TestANodeThatStillRunsIsNotTainted(t *testing.T) {
	s := site.New(t, fencedByWord)
	const node = "worker-02"
	run := repairNode(s, node, "")
	s.UntilStatus(run, "the work runs", site.WorkRuns)
	s.Signal(run, api.MsgHookDone, map[string]any{"hook": "fence"})
	s.UntilStatus(run, "Kubernetes is waited for", func(status api.Status) bool {
		return status.WaitingFor == "Kubernetes to notice that the node is off"
	})
	s.Always("it is not tainted", 3*time.Second, func() error {
		if site.HasTaint(s.Node(node), corev1.TaintNodeOutOfService) {
			return errors.New("it is")
		}
		return nil
	})
	s.Signal(run, api.MsgCancel, map[string]any{"release": true})
	s.MustEnd(run, api.Cancelled)
}
