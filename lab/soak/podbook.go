package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/lab/world"
)

// podLife is a pod as it was seen.
type podLife struct {
	name     string
	app      string
	ready    bool
	endingAt time.Time
	goneAt   time.Time
}

// podBook keeps the lives of pods, and how many of each workload are Ready.
type podBook struct {
	report       func(Violation)
	minAvailable map[string]int
	lives        map[types.UID]*podLife
	byName       map[string][]*podLife
	ready        map[string]int
	// enough are the workloads that have had as many Ready pods as they need: a budget protects nothing before.
	enough map[string]bool
}

func newPodBook(minAvailable map[string]int, report func(Violation)) *podBook {
	return &podBook{
		report: report, minAvailable: minAvailable, lives: map[types.UID]*podLife{}, byName: map[string][]*podLife{},
		ready: map[string]int{}, enough: map[string]bool{},
	}
}

// see takes a version of a pod, and reports whether it begins to end with that.
func (b *podBook) see(at time.Time, p *corev1.Pod, gone bool) (ending bool) {
	life := b.lives[p.UID]
	if life == nil {
		life = &podLife{name: p.Namespace + "/" + p.Name, app: p.Labels[world.App]}
		b.lives[p.UID] = life
		b.byName[life.name] = append(b.byName[life.name], life)
	}
	if (p.DeletionTimestamp != nil || gone) && life.endingAt.IsZero() {
		ending, life.endingAt = true, at
	}
	if gone && life.goneAt.IsZero() {
		life.goneAt = at
	}
	ready := !gone && p.DeletionTimestamp == nil && k8s.IsPodReady(p)
	if ready == life.ready {
		return ending
	}
	life.ready = ready
	if ready {
		b.ready[life.app]++
	} else {
		b.ready[life.app]--
	}
	b.judge(at, p, life.app)
	return ending
}

func (b *podBook) judge(at time.Time, p *corev1.Pod, app string) {
	want, has := b.minAvailable[app], b.ready[app]
	switch {
	case has >= want:
		b.enough[app] = true
	case b.enough[app]:
		b.report(Violation{At: at, Rule: ruleBudget, Node: p.Spec.NodeName, What: fmt.Sprintf(
			"workload %s has %d Ready pods, and its budget wants %d; the last to go was %s/%s (%s)", app, has, want, p.Namespace, p.Name, endedBy(p))})
	}
}

// settled is an error until every workload has as many Ready pods as it needs.
func (b *podBook) settled() error {
	for app := range b.minAvailable {
		if !b.enough[app] {
			return fmt.Errorf("workload %s has %d", app, b.ready[app])
		}
	}
	return nil
}

// accepted judges the requests to end a pod that the API server accepted: no pod is told twice while it is not terminating.
// Requests name pods and not UIDs, so that as many count as there were pods of the name that ended.
func (b *podBook) accepted(requests []devstack.Audited) {
	fresh := map[string][]devstack.Audited{}
	for _, r := range requests {
		name := r.Object.Namespace + "/" + r.Object.Name
		if !b.wasEnding(name, r.Received) {
			fresh[name] = append(fresh[name], r)
		}
	}
	for name, all := range fresh {
		ended := 0
		for _, life := range b.byName[name] {
			if !life.endingAt.IsZero() {
				ended++
			}
		}
		if len(all) > ended {
			b.report(Violation{At: all[len(all)-1].Received, Rule: ruleTwice, What: fmt.Sprintf(
				"pod %s: %d requests to end it were accepted while it was not terminating, and %d pods of the name ended", name, len(all), ended)})
		}
	}
}

func (b *podBook) wasEnding(name string, at time.Time) bool {
	for _, life := range b.byName[name] {
		if !life.endingAt.IsZero() && life.endingAt.Before(at) && (life.goneAt.IsZero() || life.goneAt.After(at)) {
			return true
		}
	}
	return false
}

// endedBy is what the pod itself says of its end.
func endedBy(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return c.Reason
		}
	}
	return "no eviction"
}
