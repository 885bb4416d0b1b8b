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
	// late are the pods that were first seen after another of the same owner had been evicted.
	late map[types.UID]bool
}

// comeback is one controller: how many of its pods came back and were evicted, and when the next may be.
type comeback struct {
	times int
	next  time.Time
}

func newComebacks() comebacks {
	return comebacks{owners: map[types.UID]*comeback{}, late: map[types.UID]bool{}}
}

// notice takes a pod that was not on the node before.
func (c comebacks) notice(pod *corev1.Pod) {
	if owner := metav1.GetControllerOf(pod); owner != nil && c.owners[owner.UID] != nil {
		c.late[pod.UID] = true
	}
}

func (c comebacks) evicted(pod *corev1.Pod) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return
	}
	back := c.owners[owner.UID]
	if back == nil {
		back = &comeback{}
		c.owners[owner.UID] = back
	}
	if c.late[pod.UID] {
		back.times++
	}
	back.next = time.Now().Add(backoff(back.times + 1))
}

// wait is until when a pod is left alone; zero where it did not come back.
func (c comebacks) wait(pod *corev1.Pod) time.Time {
	if !c.late[pod.UID] {
		return time.Time{}
	}
	return c.owners[metav1.GetControllerOf(pod).UID].next
}

// explain names the owner of a pod that came back.
func (c comebacks) explain(pod *corev1.Pod) string {
	owner := metav1.GetControllerOf(pod)
	return fmt.Sprintf("%s %s puts its pods on this node in spite of the cordon (%d came back and were evicted): "+
		"they name the node or tolerate the cordon; scale it down, or leave them out with podSelector",
		owner.Kind, owner.Name, c.owners[owner.UID].times)
}
