package k8s

import (
	"context"
	"errors"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/k8s/kube"
)

const (
	// podEventsPerSecond is how fast Events follow the evictions of more than podEventsAtOnce pods: each is a write as
	// dear to the API server as an eviction, and those come first.
	podEventsPerSecond = 20
	podEventsAtOnce    = 100
	// podEventsWaiting bounds what waits; further evictions go without an Event.
	podEventsWaiting = 10_000
	// podEventTries and podEventPause say how long an API server may be away before an Event is given up.
	podEventTries = 12
	podEventPause = 10 * time.Second
)

// PodEvents records evictions as Events on the pods, in the background, so that no eviction waits for its Event. A nil PodEvents records
// none.
type PodEvents struct {
	client  kube.Interface
	waiting *Paced[occurrence]
	log     *slog.Logger
}

// NewPodEvents starts to record; its client should have a request budget of its own. While many pods are to be
// evicted, Events are slower still.
func NewPodEvents(client kube.Interface, log *slog.Logger, evictions Load) *PodEvents {
	p := &PodEvents{client: client, log: log}
	p.waiting = NewPaced(Pace{PerSecond: podEventsPerSecond, AtOnce: podEventsAtOnce, Room: podEventsWaiting, Urgent: evictions}, p.write)
	return p
}

// Evicted records that a pod was o to end, and by which maintenance.
func (p *PodEvents) Evicted(pod *corev1.Pod, why string) {
	if p == nil {
		return
	}
	// No more than a reference is kept, so that what waits does not hold whole pods.
	o := occurrence{
		about: corev1.ObjectReference{
			Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		},
		key: string(pod.UID) + why, at: time.Now(), kind: corev1.EventTypeNormal, reason: "EvictedForMaintenance", message: why,
	}
	if !p.waiting.Add(o) {
		p.missed(o, errors.New("too many wait"))
	}
}

// write records one, and tries again where the API server cannot be reached. What it refuses, it would refuse again.
func (p *PodEvents) write(ctx context.Context, o occurrence) {
	for try := 1; ; try++ {
		_, err := p.client.CoreV1().Events(o.about.Namespace).Create(ctx, newEvent(o), metav1.CreateOptions{})
		var answer apierrors.APIStatus
		switch {
		case err == nil, apierrors.IsAlreadyExists(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return
		case errors.As(err, &answer), try == podEventTries:
			p.missed(o, err)
			return
		}
		select {
		case <-time.After(podEventPause):
		case <-ctx.Done():
			p.missed(o, err)
			return
		}
	}
}

func (p *PodEvents) missed(o occurrence, err error) {
	p.log.Warn("no Event for an evicted pod", "namespace", o.about.Namespace, "pod", o.about.Name, "error", err)
}

// Stop ends the recording.
func (p *PodEvents) Stop() {
	if p == nil {
		return
	}
	if left := p.waiting.Stop(); left > 0 {
		p.log.Warn("evicted pods without an Event: the worker stops", "pods", left)
	}
}
