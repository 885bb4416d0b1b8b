package k8s_test

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

func events(t *testing.T, client k8stest.Fake) []corev1.Event {
	t.Helper()
	list, err := client.CoreV1().Events(metav1.NamespaceDefault).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func TestEventIsRecordedOncePerOccurrence(t *testing.T) {
	client := k8stest.NewFake()
	e := k8s.NodeEvent{Node: "n1", UID: "uid-1", Key: "run/1", Reason: "MaintenanceStarted", Message: "by ops"}
	warning := e
	warning.Reason, warning.Warning = "MaintenanceFailed", true
	later := e
	later.Key = "run/2"
	for _, e := range []k8s.NodeEvent{e, e, warning, later, later} {
		if err := k8s.Emit(t.Context(), client, e); err != nil {
			t.Fatal(err)
		}
	}
	all := events(t, client)
	if len(all) != 3 {
		t.Fatalf("%d events", len(all))
	}
	warnings := 0
	for _, e := range all {
		if e.InvolvedObject.Kind != "Node" || e.InvolvedObject.Name != "n1" || e.InvolvedObject.UID != "uid-1" {
			t.Errorf("event about %+v", e.InvolvedObject)
		}
		if e.Type == corev1.EventTypeWarning {
			warnings++
		}
	}
	if warnings != 1 {
		t.Errorf("%d warnings", warnings)
	}
}

func TestEventFitsIntoWhatTheServerTakes(t *testing.T) {
	for name, message := range map[string]string{
		"ASCII": strings.Repeat("x", 5000), "umlauts": strings.Repeat("ä", 3000), "odd umlauts": "x" + strings.Repeat("ä", 3000),
		"signs": strings.Repeat("船", 2000), "short": "by ops",
	} {
		t.Run(name, func(t *testing.T) {
			client := k8stest.NewFake()
			if err := k8s.Emit(t.Context(), client, k8s.NodeEvent{Node: strings.Repeat("n", 253), Key: "k", Reason: "R", Message: message}); err != nil {
				t.Fatal(err)
			}
			e := events(t, client)[0]
			if len(e.Message) > 1024 || !utf8.ValidString(e.Message) || len(e.Name) > 253 {
				t.Errorf("message of %d bytes, valid %v; name of %d", len(e.Message), utf8.ValidString(e.Message), len(e.Name))
			}
			if len(message) > 1024 && len(e.Message) < 1000 {
				t.Errorf("message of %d bytes", len(e.Message))
			}
		})
	}
}
