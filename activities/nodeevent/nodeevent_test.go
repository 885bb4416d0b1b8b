package nodeevent

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/k8s/k8stest"
)

func TestEventsOfManyActivitiesArePutOffAndWritten(t *testing.T) {
	s := k8stest.New(activitytest.Node("n1"))
	r := NewRecorder(s.Client(t), true, slog.New(slog.DiscardHandler), nil)
	defer r.Stop()
	record := func(ctx context.Context, key string) error {
		r.Record(ctx, "n1", "uid-1", Event{Reason: "MaintenanceReady", Message: "ready", Key: key})
		return nil
	}
	env := activitytest.Environment()
	env.RegisterActivity(record)
	recorded := func() int { return len(s.Requests("POST /api/v1/namespaces/default/events")) }
	for range atOnce {
		r.turns <- struct{}{}
	}
	const events = 5
	began := time.Now()
	for i := range events {
		if _, err := env.ExecuteActivity(record, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	for recorded() < events {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("%d events", recorded())
		}
		time.Sleep(5 * time.Millisecond)
	}
	<-r.turns
	if _, err := env.ExecuteActivity(record, "last"); err != nil || recorded() != events+1 {
		t.Errorf("%v; %d events, want the last to be written by its activity", err, recorded())
	}
}
