package heldnode

import (
	"errors"
	"strings"
	"testing"

	"drydock/activities/activitytest"
	"drydock/k8s/k8stest"
)

// silent is an activity of which the server has not heard for too long.
type silent struct{}

func (silent) Alive() error { return errors.New("no heartbeat") }

func TestFenceRefusesWithoutAHeartbeat(t *testing.T) {
	acting := Acting{Client: k8stest.New(activitytest.HeldNode()).Client(t)}
	held, err := acting.Watch(t.Context(), Options{Name: "n1", UID: "uid-1", Caller: activitytest.Caller, Heartbeats: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Fence(); err == nil || !strings.Contains(err.Error(), "no heartbeat") {
		t.Errorf("error = %v", err)
	}
	held.heartbeats = nil
	if err := held.Fence(); err != nil {
		t.Error(err)
	}
}
