package k8s

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// PodEvents tells of evictions on the pods themselves, through client-go's recorder: in the background, so that no
// eviction waits for its Event. A nil PodEvents tells nobody.
type PodEvents struct {
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorder
}

// NewPodEvents starts the recorder; its client should have a request budget of its own.
func NewPodEvents(client kubernetes.Interface) *PodEvents {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return &PodEvents{
		broadcaster: broadcaster,
		recorder:    broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: eventSource}),
	}
}

// Evicted records that a pod was told to end, and by which maintenance.
func (p *PodEvents) Evicted(pod *corev1.Pod, why string) {
	if p != nil {
		p.recorder.Event(pod, corev1.EventTypeNormal, "EvictedForMaintenance", why)
	}
}

// Stop ends the recorder.
func (p *PodEvents) Stop() {
	if p != nil {
		p.broadcaster.Shutdown()
	}
}
