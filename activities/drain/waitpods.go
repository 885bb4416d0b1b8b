package drain

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/activities/heldnode"
	"drydock.dev/drydock/activities/reporting"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
)

// WaitInput asks to wait for pods of a held node to complete.
type WaitInput struct {
	Node          string `json:"node"`
	UID           string `json:"uid"`
	RunID         string `json:"runId"`
	PodSelector   string `json:"podSelector"`
	BlockedSignal string `json:"blockedSignal"`
}

// About implements caller.Input.
func (in WaitInput) About() caller.Subject {
	return caller.Subject{Node: in.Node, RunID: in.RunID}
}

// WaitForPods returns when no selected pod is left that has not completed. Pods that stay on a drained node, those of
// DaemonSets and static pods, do not count. Errors: NodeGone, NodeReplaced, NotHolder, MissingPermission,
// WorkerStopping.
func (d *Activities) WaitForPods(ctx context.Context, in WaitInput) error {
	heartbeats := heartbeat.Start(ctx)
	defer heartbeats.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return failure.Translate(ctx, d.Client, d.waitForPods(ctx, heartbeats, in))
}

func (d *Activities) waitForPods(ctx context.Context, heartbeats *heartbeat.Loop, in WaitInput) error {
	choose, err := k8s.NewSelection(in.PodSelector, nil)
	if err != nil {
		return err
	}
	choose = choose.Sparing(d.JobNamespaces)
	node, err := d.acting().Watch(ctx, heldnode.Options{
		Name: in.Node, UID: in.UID, Caller: heldnode.CallerOf(ctx, in.RunID), Heartbeats: heartbeats,
	})
	if err != nil {
		return err
	}
	classify := k8s.NewClassifier(d.Client, true, true)
	report := reporting.Reporter{Temporal: d.Temporal, Signal: in.BlockedSignal, Heartbeats: heartbeats}
	started := time.Now()
	beat := time.NewTicker(heartbeat.Every)
	defer beat.Stop()
	for {
		if err := node.Fence(); err != nil {
			return err
		}
		progress := api.DrainProgress{At: time.Now()}
		for _, pod := range node.PodsByName() {
			if k8s.IsFinished(pod) || !choose.Selects(pod) {
				continue
			}
			verdict, err := classify.Classify(ctx, pod)
			if err != nil {
				return err
			}
			if verdict.Class == k8s.Skip {
				continue
			}
			progress.Remaining++
			if len(progress.Blockers) < reporting.MaxBlockers {
				progress.Blockers = append(progress.Blockers, api.Blocker{
					Pod: k8s.PodName(pod), Reason: "NotCompleted", Message: "has not completed", Since: started,
				})
			} else {
				progress.MoreBlockers++
			}
		}
		if progress.Remaining == 0 {
			return nil
		}
		progress.Total = progress.Remaining
		report.Report(ctx, progress)
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
