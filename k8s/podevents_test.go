package k8s

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/k8s/k8stest"
)

func evictedPod(i int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%d", i), UID: "uid"}}
}

func TestEveryEvictedPodGetsItsEvent(t *testing.T) {
	client := k8stest.NewFake()
	events := NewPodEvents(client, slog.New(slog.DiscardHandler), nil)
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
	events := NewPodEvents(k8stest.NewFake(), slog.New(slog.NewTextHandler(&log, nil)), nil)
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

func TestAnAPIServerThatIsAwayGetsTheEventLater(t *testing.T) {
	for name, c := range map[string]struct {
		answers []error
		// created says how often it was asked, told whether the log says that the Event is missing.
		created int
		told    bool
	}{
		"away for a while":  {answers: []error{errors.New("connection refused"), errors.New("connection refused")}, created: 3},
		"away for too long": {answers: slices.Repeat([]error{errors.New("connection refused")}, podEventTries), created: podEventTries, told: true},
		"refuses":           {answers: []error{apierrors.NewInvalid(schema.GroupKind{Kind: "Event"}, "web-1", nil)}, created: 1, told: true},
		"has it already":    {answers: []error{apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, "web-1")}, created: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				client, created := k8stest.NewFake(), 0
				client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
					if created++; created > len(c.answers) {
						return false, nil, nil
					}
					return true, nil, c.answers[created-1]
				})
				events := NewPodEvents(client, slog.New(slog.NewTextHandler(&log, nil)), nil)
				events.Evicted(evictedPod(1), "maintenance")
				time.Sleep(podEventTries * podEventPause)
				events.Stop()
				if created != c.created || strings.Contains(log.String(), "no Event") != c.told {
					t.Errorf("asked %d times, log: %q", created, log.String())
				}
			})
		})
	}
}
