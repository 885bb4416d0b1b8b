package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
)

// keeper is a finalizer that nobody but a test removes.
const keeper = "e2e.drydock.dev/keeper"

// kept pods do not go before the test lets them.
func kept(t *corev1.PodTemplateSpec) { t.Finalizers = []string{keeper} }

// endsWithin is how long pods may take to end by themselves.
func endsWithin(seconds int64) option {
	return func(t *corev1.PodTemplateSpec) { t.Spec.TerminationGracePeriodSeconds = &seconds }
}

func (s *site) patchPod(pod corev1.Pod, patch string) {
	s.Helper()
	_, err := s.kube.CoreV1().Pods(pod.Namespace).Patch(s.ctx, pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		s.Fatal(err)
	}
}

// letGo removes the finalizers of a namespace's pods, now and at the test's end.
func (s *site) letGo(ns string) {
	for _, pod := range s.pods(ns) {
		if len(pod.Finalizers) > 0 {
			s.patchPod(pod, `{"metadata":{"finalizers":null}}`)
		}
	}
}

// undelay has a pod end, or complete, at once that was to take its time.
func (s *site) undelay(pod corev1.Pod) {
	s.Helper()
	s.patchPod(pod, `{"metadata":{"annotations":{"devcluster.drydock.dev/completion-delay":null,"devcluster.drydock.dev/termination-delay":null}}}`)
}

// leaving waits until a pod is told to end, and returns it.
func (s *site) leaving(pod corev1.Pod) *corev1.Pod {
	s.Helper()
	var now *corev1.Pod
	s.eventually("pod "+pod.Name+" is told to end", func() (err error) {
		now, err = s.kube.CoreV1().Pods(pod.Namespace).Get(s.ctx, pod.Name, metav1.GetOptions{})
		if err == nil && now.DeletionTimestamp == nil {
			err = errors.New("it is not")
		}
		return err
	})
	return now
}

// blockedBy waits until pods of a maintenance are blocked for a reason, and returns the first of those blockers.
func (s *site) blockedBy(run client.WorkflowRun, reason string) api.Blocker {
	s.Helper()
	is := func(b api.Blocker) bool { return b.Reason == reason }
	status := s.untilStatus(run, "blocked by "+reason, func(status api.Status) bool {
		return status.Drain != nil && slices.ContainsFunc(status.Drain.Blockers, is)
	})
	return status.Drain.Blockers[slices.IndexFunc(status.Drain.Blockers, is)]
}

// goesOnDraining watches for a second that a maintenance neither ends nor calls its node empty.
func (s *site) goesOnDraining(run client.WorkflowRun) {
	s.Helper()
	s.always("it drains", time.Second, func() error {
		if status := s.mustStatus(run); status.Phase != api.Draining {
			return fmt.Errorf("it is %s, failure %q", status.Phase, status.Failure)
		}
		return nil
	})
}

// evictedOnce checks that every pod whose eviction was accepted was evicted once, and how many those were.
func (s *site) evictedOnce(ns string, pods int) {
	s.Helper()
	accepted := s.accepted(ns)
	for pod, times := range accepted {
		if times != 1 {
			s.Errorf("the eviction of pod %s was accepted %d times", pod, times)
		}
	}
	if len(accepted) != pods {
		s.Errorf("evicted %v, want %d pods", accepted, pods)
	}
}

func TestUnreadyPodsGoWhereTheirBudgetAlwaysAllows(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	s.deployment(ns, "sick", 2, on("worker-01"), labelled("tier", "front"))
	s.deployment(ns, "sound", 1, on("worker-02"), labelled("tier", "front"))
	s.budgetOn(ns, "front", map[string]string{"tier": "front"}, 2)
	for _, pod := range s.podsOn(ns, "worker-01") {
		s.patchPod(pod, `{"metadata":{"labels":{"devcluster.drydock.dev/never-ready":"true"}}}`)
	}
	s.budgetAllows(ns, "front", func(b *policyv1.PodDisruptionBudget) bool { return b.Status.CurrentHealthy == 1 })

	run := s.begin("worker-01")
	b := s.blockedBy(run, "DisruptionBudget")
	if !strings.Contains(b.Message, "unhealthyPodEvictionPolicy") || !strings.Contains(b.Message, "not ready") || b.Budget != "front" {
		t.Errorf("blocker = %+v", b)
	}
	s.refusedOften(ns)
	s.evictedOnce(ns, 0)
	changed := time.Now()
	_, err := s.kube.PolicyV1().PodDisruptionBudgets(ns).Patch(s.ctx, "front", types.MergePatchType,
		[]byte(`{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The change itself wakes the drain, whatever the backoff is by now.
	s.until(run, api.Ready)
	s.evictedOnce(ns, 2)
	s.evictedAheadOfTime(ns, changed)
}

func TestAPodThatCannotEndOnADeadNode(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 2}")
	ns := s.namespace()
	pods := map[string]corev1.Pod{}
	for _, node := range []string{"worker-01", "worker-02"} {
		s.deployment(ns, node, 1, on(node), slowToEnd("10m"), endsWithin(1))
		pods[node] = s.one(ns, node)
		s.silent(node)
	}
	waits := s.begin("worker-01")
	ignores := s.beginWith("worker-02", `"drain":{"onNodeNotReady":"ignore"}`)
	if b := s.blockedBy(waits, "Terminating"); !strings.Contains(b.Message, "kubelet") || b.Pod != ns+"/"+pods["worker-01"].Name {
		t.Errorf("blocker = %+v", b)
	}
	s.until(ignores, api.Ready)
	s.leaving(pods["worker-02"])
	s.goesOnDraining(waits)
	s.leaving(pods["worker-01"])
	s.evictedOnce(ns, 2)
}

func TestADrainWaitsForFinalizers(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	s.deployment(ns, "web", 1, on("worker-01"), kept)
	s.Cleanup(func() { s.letGo(ns) })
	pod := s.one(ns, "web")
	run := s.begin("worker-01")
	s.leaving(pod)
	s.goesOnDraining(run)
	s.letGo(ns)
	s.until(run, api.Ready)
	s.evictedOnce(ns, 1)
}

func TestAWishNotToBeDisruptedHasADeadline(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	s.deployment(ns, "busy", 1, on("worker-01"), annotated("karpenter.sh/do-not-disrupt", "true"))
	s.deployment(ns, "idle", 1, on("worker-01"))
	busy, idle := s.one(ns, "busy"), s.one(ns, "idle")
	run := s.beginWith("worker-01", `"drain":{"protectedFor":"20s"}`)
	s.untilGone(idle)
	s.mustStay(busy)
	if b := s.blockedBy(run, "DoNotDisrupt"); !strings.Contains(b.Message, "karpenter.sh/do-not-disrupt") || b.Pod != ns+"/"+busy.Name {
		t.Errorf("blocker = %+v", b)
	}
	cordoned := *s.until(run, api.Ready).CordonedAt
	s.evictedOnce(ns, 2)
	for _, e := range s.evictions(ns) {
		if after := e.At.Sub(cordoned); e.Object.Name == busy.Name && after < 20*time.Second {
			t.Errorf("it was evicted %s after the cordon, want 20 s", after)
		}
	}
}

func TestPodsOfATerminatingNamespaceAreWaitedFor(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	s.guarded(ns, "web", "worker-01", kept)
	s.Cleanup(func() { s.letGo(ns) })
	pod := s.one(ns, "web")
	run := s.begin("worker-01")
	s.refusedOnce(ns)
	if err := s.kube.CoreV1().Namespaces().Delete(s.ctx, ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.leaving(pod)
	before := len(s.evictions(ns))
	s.goesOnDraining(run)
	s.letGo(ns)
	s.until(run, api.Ready)
	// One may have been under way when the pod was told to end.
	if after := len(s.evictions(ns)); after > before+1 {
		t.Errorf("%d requests to evict a pod that was going", after-before)
	}
	s.evictedOnce(ns, 0)
}

func TestAPodIsDeletedEarlyEnoughToEndBeforeTheKill(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	s.guarded(ns, "web", "worker-01", endsWithin(60), slowToEnd("10m"))
	pod := s.one(ns, "web")
	run := s.beginWith("worker-01", `"drain":{"escalation":[{"after":"75s","do":"kill"},{"after":"1h","do":"fail"}]}`)
	s.refusedOnce(ns)
	if grace := s.leaving(pod).DeletionGracePeriodSeconds; grace == nil || *grace != 60 {
		t.Errorf("the pod got %v s to end, want its own 60", grace)
	}
	s.undelay(pod)
	status := s.until(run, api.Ready)
	if len(status.Escalation) > 0 || status.Force != "" {
		t.Errorf("the rung was taken: %+v, force %q", status.Escalation, status.Force)
	}
	deletions := s.requests(`"verb":"delete"`, func(r request) bool {
		return r.Object.Resource == "pods" && r.Object.Namespace == ns && r.Object.Subresource == ""
	})
	if len(deletions) != 1 || deletions[0].Status.Code != 200 {
		t.Fatalf("deletions: %+v, want one", deletions)
	}
	// That it ended before the kill is above: the rung was not taken.
	if after := deletions[0].At.Sub(*status.CordonedAt); after < 15*time.Second {
		t.Errorf("it was deleted %s after the cordon, want 15 s: 75 s until the kill less its 60 s", after)
	}
	s.evictedOnce(ns, 0)
}

func TestADrainWaitsForVolumesToBeDetached(t *testing.T) {
	s := newSite(t, "")
	volume := "pv-" + s.name
	attachments := s.kube.StorageV1().VolumeAttachments()
	for _, node := range []string{"worker-01", "worker-02"} {
		name := volume + "-" + node
		_, err := attachments.Create(s.ctx, &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: storagev1.VolumeAttachmentSpec{
				Attacher: "csi.example.com", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.Cleanup(func() { _ = attachments.Delete(s.ctx, name, metav1.DeleteOptions{}) })
	}
	run := s.beginWith("worker-01", `"drain":{"waitForVolumeDetach":true}`)
	if b := s.blockedBy(run, "VolumeAttached"); b.Pod != "volume/"+volume || !strings.Contains(b.Message, "csi.example.com") {
		t.Errorf("blocker = %+v", b)
	}
	s.goesOnDraining(run)
	if err := attachments.Delete(s.ctx, volume+"-worker-01", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.until(run, api.Ready)
}

func TestADrainDoesNotWaitForTheVolumesOfPodsThatStay(t *testing.T) {
	s := newSite(t, "")
	ns, volume, none := s.namespace(), "pv-"+s.name, ""
	attachments := s.kube.StorageV1().VolumeAttachments()
	_, err1 := attachments.Create(s.ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: volume},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "csi.example.com", NodeName: "worker-01", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
	}, metav1.CreateOptions{})
	t.Cleanup(func() { _ = attachments.Delete(context.Background(), volume, metav1.DeleteOptions{}) })
	_, err2 := s.kube.CoreV1().PersistentVolumeClaims(ns).Create(s.ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: volume, StorageClassName: &none, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	stays := template("stays", nil)
	stays.Spec.NodeName = "worker-01" // no scheduler waits for the claim
	stays.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	_, err3 := s.kube.CoreV1().Pods(ns).Create(s.ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "stays", Labels: stays.Labels}, Spec: stays.Spec,
	}, metav1.CreateOptions{})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	s.until(s.beginWith("worker-01", `"drain":{"podSelector":"app!=stays","waitForVolumeDetach":true}`), api.Ready)
	if left := s.pods(ns); len(left) != 1 || left[0].DeletionTimestamp != nil {
		t.Errorf("pods %+v, want the one that stays", left)
	}
}
