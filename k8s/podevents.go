package k8s

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
)

const (
	// podEventsPerSecond is how fast Events follow the evictions of more than podEventsAtOnce pods: each is a write as
	// dear to the API server as an eviction, and those come first.
	podEventsPerSecond = 20
	podEventsAtOnce    = 100
	// podEventsWaiting bounds what waits; further evictions go without an Event.
	podEventsWaiting = 10_000
)

// PodEvents tells of evictions on the pods themselves, through client-go's recorder: in the background, so that no
// eviction waits for its Event. A nil PodEvents tells nobody.
type PodEvents struct {
	broadcaster record.EventBroadcaster
	waiting     *Paced[podEvent]
	log         *slog.Logger
}

type podEvent struct {
	pod *corev1.ObjectReference
	why string
}

// NewPodEvents starts the recorder; its client should have a request budget of its own.
func NewPodEvents(client kubernetes.Interface, log *slog.Logger) *PodEvents {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: client.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: eventSource})
	write := func(_ context.Context, e podEvent) {
		recorder.Event(e.pod, corev1.EventTypeNormal, "EvictedForMaintenance", e.why)
	}
	return &PodEvents{
		broadcaster: broadcaster, waiting: NewPaced(podEventsPerSecond, podEventsAtOnce, podEventsWaiting, write), log: log,
	}
}

// Evicted records that a pod was told to end, and by which maintenance.
func (p *PodEvents) Evicted(pod *corev1.Pod, why string) {
	if p == nil {
		return
	}
	// No more than a reference is kept, so that what waits does not hold whole pods.
	ref, err := reference.GetReference(scheme.Scheme, pod)
	if err != nil {
		p.log.Warn("no Event for an evicted pod", "namespace", pod.Namespace, "pod", pod.Name, "error", err)
		return
	}
	if !p.waiting.Add(podEvent{pod: ref, why: why}) {
		p.log.Warn("no Event for an evicted pod: too many wait", "namespace", pod.Namespace, "pod", pod.Name)
	}
}

// Stop ends the recorder.
func (p *PodEvents) Stop() {
	if p == nil {
		return
	}
	if left := p.waiting.Stop(); left > 0 {
		p.log.Warn("evicted pods without an Event: the worker stops", "pods", left)
	}
	p.broadcaster.Shutdown()
}
