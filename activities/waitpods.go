package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"drydock/api"
	"drydock/k8s"
)

// WaitInput asks to wait for pods of a held node to complete.
type WaitInput struct {
	Node          string `json:"node"`
	UID           string `json:"uid"`
	RunID         string `json:"runId"`
	PodSelector   string `json:"podSelector"`
	BlockedSignal string `json:"blockedSignal"`
}

// WaitForPods returns when no selected pod is left that has not completed. Pods that stay on a drained node, those of
// DaemonSets and static pods, do not count. Errors: NodeGone, NodeReplaced, NotHolder, MissingPermission,
// WorkerStopping.
func (d *Drains) WaitForPods(ctx context.Context, in WaitInput) error {
	pulse := startPulse(ctx)
	defer pulse.stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return translate(d.waitForPods(ctx, pulse, in))
}

func (d *Drains) waitForPods(ctx context.Context, pulse *pulse, in WaitInput) error {
	choose, err := k8s.NewSelection(in.PodSelector, nil)
	if err != nil {
		return err
	}
	node, err := watchHeld(ctx, d.Nodes.Client, pulse, in.Node, in.UID, in.RunID)
	if err != nil {
		return err
	}
	classify := k8s.NewClassifier(d.Nodes.Client, true, true)
	report := reporter{temporal: d.Temporal, signal: in.BlockedSignal, pulse: pulse}
	started := time.Now()
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for {
		if err := node.fence(); err != nil {
			return err
		}
		progress := api.DrainProgress{At: time.Now()}
		for _, pod := range node.podsByName() {
			if finished(pod) || !choose.Selects(pod) {
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
			if len(progress.Blockers) < maxBlockers {
				progress.Blockers = append(progress.Blockers, api.Blocker{
					Pod: podName(pod), Reason: "NotCompleted", Message: "has not completed", Since: started,
				})
			} else {
				progress.MoreBlockers++
			}
		}
		if progress.Remaining == 0 {
			return nil
		}
		progress.Total = progress.Remaining
		report.report(ctx, progress)
		select {
		case <-node.pods.Changed:
		case <-node.node.Changed:
		case <-beat.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-activity.GetWorkerStopChannel(ctx):
			return workerStopping()
		}
	}
}
