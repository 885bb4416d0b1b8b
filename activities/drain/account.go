package drain

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock/api"
	"drydock/k8s"
)

// account keeps count of the pods that were told to end.
type account struct {
	evicted int
	// ended are the first of them, more counts the rest.
	ended []api.EndedPod
	more  int
}

// accountFrom goes on from how far an earlier attempt came.
func accountFrom(before api.DrainProgress) *account {
	return &account{evicted: before.Evicted, ended: before.Pods, more: before.MorePods}
}

// maxPods bounds the list of pods that were told to end, which is in every heartbeat.
const maxPods = 100

// note takes a pod that was told to end, and how. The list is for the audit record.
func (a *account) note(pod *corev1.Pod, how string) {
	a.evicted++
	if len(a.ended) == maxPods {
		a.more++
		return
	}
	a.ended = append(a.ended, api.EndedPod{Pod: k8s.PodName(pod), At: time.Now().UTC(), How: how})
}

// count adds the account to a progress.
func (a *account) count(p api.DrainProgress) api.DrainProgress {
	p.Evicted, p.Pods, p.MorePods = a.evicted, slices.Clone(a.ended), a.more
	return p
}
