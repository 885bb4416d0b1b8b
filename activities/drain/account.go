package drain

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/record"
)

// account counts the pods that were evicted, or deleted in any other way.
type account struct {
	evicted, deleted int
	// moves counts those that move, where a plan began the maintenance at planBegan.
	moves     record.PodMoves
	planBegan time.Time
	// ended are the first of them, more counts the rest.
	ended []api.EndedPod
	more  int
}

// accountFrom goes on from how far an earlier attempt came.
func accountFrom(before api.DrainProgress, planBegan time.Time) *account {
	return &account{planBegan: planBegan, moves: before.Moves, evicted: before.Evicted, deleted: before.Deleted, ended: before.Pods, more: before.MorePods}
}

// maxPods bounds the list of evicted and deleted pods, which is in every heartbeat.
const maxPods = 100

// note takes a pod that was evicted or deleted, and how. The list is for the audit record.
func (a *account) note(pod *corev1.Pod, how string) {
	if how == evicted {
		a.evicted++
	} else {
		a.deleted++
	}
	a.noteMove(pod)
	if len(a.ended) == maxPods {
		a.more++
		return
	}
	a.ended = append(a.ended, api.EndedPod{Pod: k8s.PodName(pod), At: time.Now().UTC(), How: how})
}

// noteMove counts a pod that its controller will run elsewhere.
func (a *account) noteMove(pod *corev1.Pod) {
	owner := metav1.GetControllerOf(pod)
	if a.planBegan.IsZero() || owner == nil || owner.Kind == "DaemonSet" || owner.Kind == "Job" {
		return
	}
	a.moves.Ended++
	if !pod.CreationTimestamp.Time.Before(a.planBegan.Truncate(time.Second)) { // which has whole seconds
		a.moves.Again++
	}
}

// count adds the account to a progress.
func (a *account) count(p api.DrainProgress) api.DrainProgress {
	p.Evicted, p.Deleted, p.Moves, p.Pods, p.MorePods = a.evicted, a.deleted, a.moves, slices.Clone(a.ended), a.more
	return p
}
