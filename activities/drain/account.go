package drain

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
)

// account counts the pods that were evicted, or deleted in any other way.
type account struct {
	evicted, deleted int
	// ended are the first of them, more counts the rest.
	ended []api.EndedPod
	more  int
}

// accountFrom goes on from how far an earlier attempt came.
func accountFrom(before api.DrainProgress) *account {
	return &account{evicted: before.Evicted, deleted: before.Deleted, ended: before.Pods, more: before.MorePods}
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
	if len(a.ended) == maxPods {
		a.more++
		return
	}
	a.ended = append(a.ended, api.EndedPod{Pod: k8s.PodName(pod), At: time.Now().UTC(), How: how})
}

// count adds the account to a progress.
func (a *account) count(p api.DrainProgress) api.DrainProgress {
	p.Evicted, p.Deleted, p.Pods, p.MorePods = a.evicted, a.deleted, slices.Clone(a.ended), a.more
	return p
}
