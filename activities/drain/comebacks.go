package drain

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// comebacks remembers whose pods come back to the node after they were evicted: those that name the node themselves,
// or tolerate its cordon. To evict each at once would be a loop without end.
type comebacks struct {
	owners map[types.UID]*comeback
	// late are the pods that were first seen after another of the same owner had been evicted, with that owner: a pod may be
	// orphaned, and adopted by another.
	late map[types.UID]*comeback
}

// comeback is one controller: how many of its pods came back and were evicted, and when the next may be.
type comeback struct {
	owner string
	times int
	next  time.Time
}

func newComebacks() comebacks {
	return comebacks{owners: map[types.UID]*comeback{}, late: map[types.UID]*comeback{}}
}

// notice takes a pod that was not on the node before.
func (c comebacks) notice(pod *corev1.Pod) {
	if owner := metav1.GetControllerOf(pod); owner != nil && c.owners[owner.UID] != nil {
		c.late[pod.UID] = c.owners[owner.UID]
	}
}

func (c comebacks) evicted(pod *corev1.Pod) {
	back := c.late[pod.UID]
	if back != nil {
		back.times++
	} else if back = c.ofOwner(pod); back == nil {
		return
	}
	back.next = time.Now().Add(backoff(back.times + 1))
}

// ofOwner is what is remembered of a pod's controller; nil if it has none.
func (c comebacks) ofOwner(pod *corev1.Pod) *comeback {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return nil
	}
	if c.owners[owner.UID] == nil {
		c.owners[owner.UID] = &comeback{owner: owner.Kind + " " + owner.Name}
	}
	return c.owners[owner.UID]
}

// wait is until when a pod is left alone; zero if it did not come back.
func (c comebacks) wait(pod *corev1.Pod) time.Time {
	if back := c.late[pod.UID]; back != nil {
		return back.next
	}
	return time.Time{}
}

// explain names the owner of a pod that came back.
func (c comebacks) explain(pod *corev1.Pod) string {
	back := c.late[pod.UID]
	return fmt.Sprintf("%s puts its pods on this node despite the cordon (%d came back and were evicted): "+
		"they name the node or tolerate the cordon; scale it down, or leave them out with podSelector", back.owner, back.times)
}
