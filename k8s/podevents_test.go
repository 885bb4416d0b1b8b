package k8s

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
)

func evictedPod(i int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%d", i), UID: "uid"}}
}

func TestEveryEvictedPodGetsItsEvent(t *testing.T) {
	client := fake.NewClientset()
	events := NewPodEvents(client, slog.New(slog.DiscardHandler))
	defer events.Stop()
	const pods = podEventsAtOnce + 10
	for i := range pods {
		events.Evicted(evictedPod(i), "maintenance of worker-1 by fw")
	}
	var seen []corev1.Event
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		list, err := client.CoreV1().Events("shop").List(ctx, metav1.ListOptions{})
		seen = list.Items
		return len(seen) == pods, err
	})
	if err != nil {
		t.Fatalf("%d Events of %d evicted pods: %v", len(seen), pods, err)
	}
	told := map[string]bool{}
	for _, e := range seen {
		if e.Reason != "EvictedForMaintenance" || e.Message != "maintenance of worker-1 by fw" || e.InvolvedObject.Kind != "Pod" {
			t.Errorf("Event %+v", e)
		}
		told[e.InvolvedObject.Name] = true
	}
	if len(told) != pods {
		t.Errorf("%d pods were told of, want %d", len(told), pods)
	}
}

func TestPodsLeftWithoutAnEventAreLogged(t *testing.T) {
	var log bytes.Buffer
	events := NewPodEvents(fake.NewClientset(), slog.New(slog.NewTextHandler(&log, nil)))
	for i := range 2 * podEventsAtOnce {
		events.Evicted(evictedPod(i), "maintenance")
	}
	events.Stop()
	if !strings.Contains(log.String(), "without an Event") {
		t.Errorf("log: %q", log.String())
	}
	var nobody *PodEvents
	nobody.Evicted(evictedPod(1), "maintenance")
	nobody.Stop()
}
