package drain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/activities/heldnode"
	"drydock.dev/drydock/activities/reporting"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
)

// untilDetached waits until no volume is attached to the node but those of pods that stay. VolumeAttachments cannot be
// selected by node, so all are watched, for all drains together.
func (d *Activities) untilDetached(ctx context.Context, node *heldnode.View, reporter *reporting.Reporter) error {
	stay, err := volumesThatStay(ctx, d.Client, node)
	if err != nil {
		return err
	}
	watch, err := d.Sources.Attachments.Follow(ctx, func(a *storagev1.VolumeAttachment, _ bool) bool { return a.Spec.NodeName == node.Name })
	if err != nil {
		return err
	}
	if err := watch.Synced(ctx); err != nil {
		return err
	}
	since := time.Now()
	beat := time.NewTicker(heartbeat.Every)
	defer beat.Stop()
	for {
		if err := node.Fence(); err != nil {
			return err
		}
		if err := watch.Err(); err != nil {
			return err
		}
		attached := slices.DeleteFunc(watch.By(node.Name), func(a *storagev1.VolumeAttachment) bool {
			volume := a.Spec.Source.PersistentVolumeName
			return volume != nil && stay[*volume]
		})
		if len(attached) == 0 {
			return nil
		}
		reporter.Report(ctx, stillAttached(reporter.Last, attached, since))
		select {
		case <-watch.Changed:
		case <-node.Node.Changed:
		case <-beat.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-activity.GetWorkerStopChannel(ctx):
			return failure.WorkerStopping()
		}
	}
}

// stillAttached is the progress of a drain that waits for volumes only.
func stillAttached(p api.DrainProgress, attached []*storagev1.VolumeAttachment, since time.Time) api.DrainProgress {
	p.At, p.Remaining, p.Terminating, p.Blockers, p.MoreBlockers = time.Now(), 0, 0, nil, 0
	p.Reasons = map[string]int{"VolumeAttached": len(attached)}
	slices.SortFunc(attached, func(a, b *storagev1.VolumeAttachment) int { return strings.Compare(a.Name, b.Name) })
	for _, a := range attached {
		if len(p.Blockers) == reporting.MaxBlockers {
			p.MoreBlockers++
			continue
		}
		volume := a.Name
		if name := a.Spec.Source.PersistentVolumeName; name != nil {
			volume = *name
		}
		p.Blockers = append(p.Blockers, api.Blocker{
			Pod: "volume/" + volume, Reason: reasonVolumeAttached, Since: since,
			Message: fmt.Sprintf("is still attached to the node (VolumeAttachment %s of %s)", a.Name, a.Spec.Attacher),
		})
	}
	return p
}

// volumesThatStay are the persistent volumes of the pods that are left on the node by intent.
func volumesThatStay(ctx context.Context, client kube.Interface, node *heldnode.View) (map[string]bool, error) {
	stay := map[string]bool{}
	for _, pod := range node.PodsByName() {
		if err := addVolumes(ctx, client, pod, stay); err != nil {
			return nil, err
		}
	}
	return stay, nil
}

// addVolumes adds the persistent volumes of a pod.
func addVolumes(ctx context.Context, client kube.Interface, pod *corev1.Pod, to map[string]bool) error {
	for _, claim := range claimsOf(pod) {
		found, err := client.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(ctx, claim, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the volume claim %s of pod %s: %w", claim, k8s.PodName(pod), err)
		}
		to[found.Spec.VolumeName] = true
	}
	return nil
}

func claimsOf(pod *corev1.Pod) []string {
	var claims []string
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			claims = append(claims, v.PersistentVolumeClaim.ClaimName)
		}
		if v.Ephemeral != nil {
			claims = append(claims, pod.Name+"-"+v.Name)
		}
	}
	return claims
}
