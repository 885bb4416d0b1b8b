package drain

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/activities/heldnode"
	"drydock.dev/drydock/activities/reporting"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/nodestate"
)

// OutOfServiceInput is about a held node that was proven to be off.
type OutOfServiceInput struct {
	Node  string `json:"node"`
	UID   string `json:"uid"`
	RunID string `json:"runId"`
	// BootID is the node's before it was turned off.
	BootID string `json:"bootId,omitempty"`
	// Until is when it is given up.
	Until time.Time `json:"until"`
	// BlockedSignal is the signal by which the workflow wants to hear of what is left.
	BlockedSignal string `json:"blockedSignal,omitempty"`
}

// About implements caller.Input.
func (in OutOfServiceInput) About() caller.Subject {
	return caller.Subject{Node: in.Node, RunID: in.RunID}
}

// TakenOutOfService is how a node was found. Tainted says that the taint is the maintenance's; otherwise it has Restarted,
// it still Answers, or somebody else has tainted it.
type TakenOutOfService struct {
	Tainted   bool `json:"tainted,omitempty"`
	Restarted bool `json:"restarted,omitempty"`
	Answers   bool `json:"answers,omitempty"`
	// CameBack: the kubelet spoke up while the node was being tainted, and the taint was taken off at once.
	CameBack bool `json:"cameBack,omitempty"`
}

// quiet is for how long a node's lease did not change, by this process's own clock: those of nodes and workers differ.
type quiet struct {
	lease k8s.KubeletLease
	since time.Time
	known bool
}

// longestLease bounds the time for which a kubelet says that its lease lasts: one of years would keep its node for as long.
const longestLease = time.Minute

// look takes what was read of the lease. It reports whether a kubelet that ran would have renewed the lease by now: one does
// so four times while it lasts.
func (q *quiet) look(now k8s.KubeletLease) (long bool) {
	if !q.known || !q.lease.Same(now) {
		*q = quiet{lease: now, since: time.Now(), known: true}
	}
	return time.Since(q.since) >= min(now.For, longestLease)/2
}

// TakeOutOfService waits until Kubernetes knows that a node is off, and taints it as out of service: on one that runs, that
// would tear volumes from pods that write to them. A kubelet that comes back may renew its lease 10 s before it reports, and only
// the report ends the silence for Kubernetes: so the lease has to be unchanged for half of its time (at most 30 s), too. Errors: NodeGone,
// NodeReplaced, NotHolder, MissingPermission, WorkerStopping.
func (d *Activities) TakeOutOfService(ctx context.Context, in OutOfServiceInput) (taken TakenOutOfService, err error) {
	var lease quiet
	err = d.watchHeld(ctx, in, func(ctx context.Context, node *heldnode.View, _ *heartbeat.Loop) (over bool, err error) {
		now, err := k8s.ReadKubeletLease(ctx, d.Client, in.Node)
		if err != nil {
			return false, err
		}
		late, changed := !time.Now().Before(in.Until), lease.known && !lease.lease.Same(now)
		long := lease.look(now)
		// The shared watch keeps neither boot ID nor taints.
		seen, err := d.Client.CoreV1().Nodes().Get(ctx, in.Node, metav1.GetOptions{})
		switch {
		case err != nil:
			return false, err
		case in.BootID != "" && seen.Status.NodeInfo.BootID != in.BootID:
			taken.Restarted = true // silent or not: what has booted may run
		case nodestate.IsSilent(seen) && long:
			is, err := k8s.SetOutOfService(ctx, d.Client, in.Node, node.Caller, k8s.Silence{Lease: now, BootID: in.BootID})
			taken.Tainted, taken.CameBack = is.Tainted && !is.Foreign, is.Alive
			return true, err
		case late && (changed || !nodestate.IsSilent(seen)):
			taken.Answers = true
		default:
			return false, nil
		}
		// An attempt before this one may have tainted it.
		return true, k8s.ClearOutOfService(ctx, d.Client, in.Node, node.Caller)
	})
	return taken, err
}

// LeftOutOfService is what was left of a node when the time for it was over; empty if nothing is.
type LeftOutOfService struct {
	Left string `json:"left,omitempty"`
	// Untainted: somebody had taken the taint off.
	Untainted bool `json:"untainted,omitempty"`
	// CameBack: the kubelet spoke up, and the taint was taken off at once.
	CameBack bool `json:"cameBack,omitempty"`
}

// AwaitOutOfService waits until no pod of a tainted node is left that does not tolerate that, and no volume attached but
// those of pods that do, or the node's kubelet speaks up; then it takes the taint off, if the maintenance has set it. Errors: as
// TakeOutOfService.
func (d *Activities) AwaitOutOfService(ctx context.Context, in OutOfServiceInput) (left LeftOutOfService, err error) {
	since, looked := time.Now(), time.Time{}
	var lease quiet
	var report *reporting.Reporter
	var attachments *k8s.SharedView[*storagev1.VolumeAttachment]
	err = d.watchHeld(ctx, in, func(ctx context.Context, node *heldnode.View, heartbeats *heartbeat.Loop) (over bool, err error) {
		if report == nil {
			report = &reporting.Reporter{Temporal: d.Temporal, Signal: in.BlockedSignal, Heartbeats: heartbeats}
			if attachments, err = d.attachedTo(ctx, in.Node); err != nil {
				return false, err
			}
		}
		if err := attachments.Err(); err != nil {
			return false, err
		}
		if time.Since(looked) >= heartbeat.Every || !node.Silent() {
			looked = time.Now()
			if left.Untainted, over, err = d.isUntainted(ctx, node); over || err != nil {
				return over, err
			}
			switch left.CameBack, err = d.cameBack(ctx, in, &lease); {
			case err != nil:
				return false, err
			case left.CameBack:
				return true, k8s.ClearOutOfService(ctx, d.Client, in.Node, node.Caller)
			}
		}
		progress, err := d.outOfService(ctx, node, attachments.By(in.Node), since)
		if err != nil {
			return false, err
		}
		if count := progress.Remaining + progress.Reasons[reasonVolumeAttached]; count > 0 {
			if report.Report(ctx, progress); time.Now().Before(in.Until) {
				return false, nil
			}
			left.Left = bounds.Cut(progress.Blockers[0].Pod+" "+progress.Blockers[0].Message, bounds.Text/2)
			if count > 1 {
				left.Left += fmt.Sprintf(", and %d more", count-1)
			}
		}
		return true, k8s.ClearOutOfService(ctx, d.Client, in.Node, node.Caller)
	})
	return left, err
}

// cameBack reports whether the kubelet of a node has spoken up since the look before.
func (d *Activities) cameBack(ctx context.Context, in OutOfServiceInput, lease *quiet) (bool, error) {
	if !lease.known {
		now, err := k8s.ReadKubeletLease(ctx, d.Client, in.Node)
		if err != nil {
			return false, err
		}
		lease.look(now)
	}
	return k8s.Silence{Lease: lease.lease, BootID: in.BootID}.Broken(ctx, d.Client, in.Node)
}

// attachedTo follows the volumes that are attached to a node, for as long as the context lives.
func (d *Activities) attachedTo(ctx context.Context, name string) (*k8s.SharedView[*storagev1.VolumeAttachment], error) {
	view, err := d.Sources.Attachments.Follow(ctx, func(a *storagev1.VolumeAttachment, _ bool) bool { return a.Spec.NodeName == name })
	if err != nil {
		return nil, err
	}
	return view, view.Synced(ctx)
}

// isUntainted reports whether the taint is gone: somebody has taken it off, or an earlier attempt of this wait has.
func (d *Activities) isUntainted(ctx context.Context, node *heldnode.View) (bySomebody, gone bool, err error) {
	seen, err := d.Client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
	if err != nil || k8s.IsOutOfService(seen) {
		return false, false, err
	}
	mark, err := k8s.MarkOf(seen)
	if err != nil {
		return false, false, err
	}
	return mark.OwnsOutOfService(node.Caller), true, k8s.ClearOutOfService(ctx, d.Client, node.Name, node.Caller)
}

// watchHeld looks at a held node whenever it changes, until look says that it is over.
func (d *Activities) watchHeld(
	ctx context.Context, in OutOfServiceInput, look func(context.Context, *heldnode.View, *heartbeat.Loop) (bool, error),
) error {
	heartbeats := heartbeat.Start(ctx)
	defer heartbeats.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	node, err := d.acting().Watch(ctx, heldnode.Options{
		Name: in.Node, UID: in.UID, Caller: heldnode.CallerOf(ctx, in.RunID), Heartbeats: heartbeats,
	})
	if err != nil {
		return failure.Translate(ctx, d.Client, err)
	}
	beat := time.NewTicker(heartbeat.Every)
	defer beat.Stop()
	for {
		if err := node.Fence(); err != nil {
			return failure.Translate(ctx, d.Client, err)
		}
		if over, err := look(ctx, node, heartbeats); over || err != nil {
			return failure.Translate(ctx, d.Client, err)
		}
		select {
		case <-node.Pods.Changed:
		case <-node.Node.Changed:
		case <-beat.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-activity.GetWorkerStopChannel(ctx):
			return failure.WorkerStopping()
		}
	}
}

// outOfService is what is left on a node that is out of service.
func (d *Activities) outOfService(
	ctx context.Context, node *heldnode.View, attached []*storagev1.VolumeAttachment, since time.Time,
) (api.DrainProgress, error) {
	left := api.DrainProgress{At: time.Now()}
	stays := map[string]bool{}
	for _, pod := range node.PodsByName() {
		if pod.DeletionTimestamp == nil && (k8s.IsFinished(pod) || k8s.ToleratesOutOfService(pod)) {
			if err := addVolumes(ctx, d.Client, pod, stays); err != nil {
				return left, err
			}
			continue
		}
		left.Remaining++
		left.Blockers = append(left.Blockers, stuckOutOfService(pod, since))
	}
	leaving := attached[:0:0]
	for _, a := range attached {
		if volume := a.Spec.Source.PersistentVolumeName; volume == nil || !stays[*volume] {
			leaving = append(leaving, a)
		}
	}
	pods := left.Blockers
	volumes := stillAttached(left, leaving, since)
	volumes.Total, volumes.Remaining = left.Remaining, left.Remaining
	volumes.Blockers = append(pods, volumes.Blockers...)
	if more := len(volumes.Blockers) - reporting.MaxBlockers; more > 0 {
		volumes.Blockers, volumes.MoreBlockers = volumes.Blockers[:reporting.MaxBlockers], volumes.MoreBlockers+more
	}
	return volumes, nil
}

func stuckOutOfService(pod *corev1.Pod, since time.Time) api.Blocker {
	b := api.Blocker{Pod: k8s.PodName(pod), Reason: "OutOfService", Since: since, Owner: k8s.OwnerOf(pod), Message: "is not deleted yet"}
	if pod.DeletionTimestamp != nil && len(pod.Finalizers) > 0 {
		b.Message = "is kept by finalizer " + bounds.Cut(pod.Finalizers[0], 100)
	}
	return b
}
