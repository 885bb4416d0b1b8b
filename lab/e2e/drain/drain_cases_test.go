package drain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

// undelay has a pod end, or complete, at once that was to take its time.
func undelay(s *site.Site, pod corev1.Pod) {
	s.Helper()
	s.PatchPod(pod, `{"metadata":{"annotations":{"devcluster.drydock.dev/completion-delay":null,"devcluster.drydock.dev/termination-delay":null}}}`)
}

// goesOnDraining watches for a second that a maintenance neither ends nor calls its node empty.
func goesOnDraining(s *site.Site, run client.WorkflowRun) {
	s.Helper()
	s.Always("it drains", time.Second, func() error {
		if status := s.MustStatus(run); status.Phase != api.Draining {
			return fmt.Errorf("it is %s, failure %q", status.Phase, status.Failure)
		}
		return nil
	})
}

func TestUnreadyPodsGoWhereTheirBudgetAlwaysAllows(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Deployment(ns, "sick", 2, site.On("worker-01"), site.Labelled("tier", "front"))
	s.Deployment(ns, "sound", 1, site.On("worker-02"), site.Labelled("tier", "front"))
	s.BudgetOn(ns, "front", map[string]string{"tier": "front"}, 2)
	for _, pod := range s.PodsOn(ns, "worker-01") {
		s.PatchPod(pod, `{"metadata":{"labels":{"devcluster.drydock.dev/never-ready":"true"}}}`)
	}
	s.BudgetAllows(ns, "front", func(b *policyv1.PodDisruptionBudget) bool { return b.Status.CurrentHealthy == 1 })

	run := s.Begin("worker-01")
	b := s.BlockedBy(run, "DisruptionBudget")
	if !strings.Contains(b.Message, "unhealthyPodEvictionPolicy") || !strings.Contains(b.Message, "not ready") || b.Budget != "front" {
		t.Errorf("blocker = %+v", b)
	}
	refusedOften(s, ns)
	s.EvictedOnce(ns, 0)
	changed := time.Now()
	_, err := s.Kube.PolicyV1().PodDisruptionBudgets(ns).Patch(s.Ctx, "front", types.MergePatchType,
		[]byte(`{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The change itself wakes the drain, whatever the backoff is by now.
	s.Until(run, api.Ready)
	s.EvictedOnce(ns, 2)
	evictedAheadOfTime(s, ns, changed)
}

func TestAPodThatCannotEndOnADeadNode(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 2}")
	ns := s.Namespace()
	pods := map[string]corev1.Pod{}
	for _, node := range []string{"worker-01", "worker-02"} {
		s.Deployment(ns, node, 1, site.On(node), site.SlowToEnd("10m"), site.EndsWithin(1))
		pods[node] = s.One(ns, node)
		s.Silent(node)
	}
	waits := s.Begin("worker-01")
	ignores := s.BeginWith("worker-02", `"drain":{"onNodeNotReady":"ignore"}`)
	if b := s.BlockedBy(waits, "Terminating"); !strings.Contains(b.Message, "kubelet") || b.Pod != ns+"/"+pods["worker-01"].Name {
		t.Errorf("blocker = %+v", b)
	}
	s.Until(ignores, api.Ready)
	s.Leaving(pods["worker-02"])
	goesOnDraining(s, waits)
	s.Leaving(pods["worker-01"])
	s.EvictedOnce(ns, 2)
}

func TestADrainWaitsForFinalizers(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 2}")
	ns := s.Namespace()
	s.Deployment(ns, "web", 1, site.On("worker-01"), site.Kept)
	s.Deployment(ns, "late", 1, site.On("worker-02"), site.Kept)
	s.Cleanup(func() { s.LetGo(ns) })
	pod, late := s.One(ns, "web"), s.One(ns, "late")
	run := s.Begin("worker-01")
	s.Until(s.BeginWith("worker-02", `"drain":{"skipWaitForDeleteTimeout":"3s"}`), api.Ready)
	s.Leaving(late)
	s.Leaving(pod)
	goesOnDraining(s, run)
	s.LetGo(ns)
	s.Until(run, api.Ready)
	s.EvictedOnce(ns, 2)
}

func TestAWishNotToBeDisruptedHasADeadline(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Deployment(ns, "busy", 1, site.On("worker-01"), site.Annotated("karpenter.sh/do-not-disrupt", "true"))
	s.Deployment(ns, "idle", 1, site.On("worker-01"))
	busy, idle := s.One(ns, "busy"), s.One(ns, "idle")
	run := s.BeginWith("worker-01", `"drain":{"protectedFor":"20s"}`)
	s.UntilGone(idle)
	s.MustStay(busy)
	if b := s.BlockedBy(run, "DoNotDisrupt"); !strings.Contains(b.Message, "karpenter.sh/do-not-disrupt") || b.Pod != ns+"/"+busy.Name {
		t.Errorf("blocker = %+v", b)
	}
	cordoned := *s.Until(run, api.Ready).CordonedAt
	s.EvictedOnce(ns, 2)
	for _, e := range s.Evictions(ns) {
		if after := e.At.Sub(cordoned); e.Object.Name == busy.Name && after < 20*time.Second {
			t.Errorf("it was evicted %s after the cordon, want 20 s", after)
		}
	}
}

func TestPodsOfATerminatingNamespaceAreWaitedFor(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01", site.Kept)
	s.Cleanup(func() { s.LetGo(ns) })
	pod := s.One(ns, "web")
	run := s.Begin("worker-01")
	s.RefusedOnce(ns)
	if err := s.Kube.CoreV1().Namespaces().Delete(s.Ctx, ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Leaving(pod)
	before := len(s.Evictions(ns))
	goesOnDraining(s, run)
	s.LetGo(ns)
	s.Until(run, api.Ready)
	// One may have been under way when the pod was told to end.
	if after := len(s.Evictions(ns)); after > before+1 {
		t.Errorf("%d requests to evict a pod that was going", after-before)
	}
	s.EvictedOnce(ns, 0)
}

func TestAPodIsDeletedEarlyEnoughToEndBeforeTheKill(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01", site.EndsWithin(60), site.SlowToEnd("10m"))
	pod := s.One(ns, "web")
	run := s.BeginWith("worker-01", `"drain":{"escalation":[{"after":"75s","do":"kill"},{"after":"1h","do":"fail"}]}`)
	s.RefusedOnce(ns)
	if grace := s.Leaving(pod).DeletionGracePeriodSeconds; grace == nil || *grace != 60 {
		t.Errorf("the pod got %v s to end, want its own 60", grace)
	}
	undelay(s, pod)
	status := s.Until(run, api.Ready)
	if len(status.Escalation) > 0 || status.Force != "" {
		t.Errorf("the rung was taken: %+v, force %q", status.Escalation, status.Force)
	}
	deletions := s.Requests(`"verb":"delete"`, func(r site.Request) bool {
		return r.Object.Resource == "pods" && r.Object.Namespace == ns && r.Object.Subresource == ""
	})
	if len(deletions) != 1 || deletions[0].Status.Code != 200 {
		t.Fatalf("deletions: %+v, want one", deletions)
	}
	// That it ended before the kill is above: the rung was not taken.
	if after := deletions[0].At.Sub(*status.CordonedAt); after < 15*time.Second {
		t.Errorf("it was deleted %s after the cordon, want 15 s: 75 s until the kill less its 60 s", after)
	}
	s.EvictedOnce(ns, 0)
}

func TestADrainWaitsForVolumesToBeDetached(t *testing.T) {
	s := site.New(t, "")
	volume := "pv-" + s.ID
	attachments := s.Kube.StorageV1().VolumeAttachments()
	for _, node := range []string{"worker-01", "worker-02"} {
		name := volume + "-" + node
		_, err := attachments.Create(s.Ctx, &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: storagev1.VolumeAttachmentSpec{
				Attacher: "csi.example.com", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.Cleanup(func() { _ = attachments.Delete(s.Ctx, name, metav1.DeleteOptions{}) })
	}
	run := s.BeginWith("worker-01", `"drain":{"waitForVolumeDetach":true}`)
	if b := s.BlockedBy(run, "VolumeAttached"); b.Pod != "volume/"+volume || !strings.Contains(b.Message, "csi.example.com") {
		t.Errorf("blocker = %+v", b)
	}
	goesOnDraining(s, run)
	if err := attachments.Delete(s.Ctx, volume+"-worker-01", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Until(run, api.Ready)
}

func TestADrainDoesNotWaitForTheVolumesOfPodsThatStay(t *testing.T) {
	s := site.New(t, "")
	ns, volume, none := s.Namespace(), "pv-"+s.ID, ""
	attachments := s.Kube.StorageV1().VolumeAttachments()
	_, err1 := attachments.Create(s.Ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: volume},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "csi.example.com", NodeName: "worker-01", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
	}, metav1.CreateOptions{})
	t.Cleanup(func() { _ = attachments.Delete(context.Background(), volume, metav1.DeleteOptions{}) })
	_, err2 := s.Kube.CoreV1().PersistentVolumeClaims(ns).Create(s.Ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: volume, StorageClassName: &none, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	stays := site.Template("stays", nil)
	stays.Spec.NodeName = "worker-01" // no scheduler waits for the claim
	stays.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	_, err3 := s.Kube.CoreV1().Pods(ns).Create(s.Ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "stays", Labels: stays.Labels}, Spec: stays.Spec,
	}, metav1.CreateOptions{})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	s.Until(s.BeginWith("worker-01", `"drain":{"podSelector":"app!=stays","waitForVolumeDetach":true}`), api.Ready)
	if left := s.Pods(ns); len(left) != 1 || left[0].DeletionTimestamp != nil {
		t.Errorf("pods %+v, want the one that stays", left)
	}
}
