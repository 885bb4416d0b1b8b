package heldnode

import (
	"errors"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

// silent is an activity whose last heartbeat is too old.
type silent struct{}

func (silent) Alive() error { return errors.New("no heartbeat") }

// fenced watches n1 and tells what its fence says.
func fenced(t *testing.T, acting Acting) <-chan error {
	fence := make(chan error, 1)
	go func() {
		held, err := acting.Watch(t.Context(), Options{Name: "n1", UID: "uid-1", Caller: activitytest.Caller})
		if err == nil {
			err = held.Fence()
		}
		fence <- err
	}()
	return fence
}

func TestAMarkThatTheSharedWatchHasNotSeenYetIsAwaited(t *testing.T) {
	s := k8stest.New(activitytest.Node("n1"))
	kube := s.Client(t)
	acting := Acting{Client: kube, Nodes: k8s.NewNodes(kube)}
	before, err := acting.Nodes.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	fence := fenced(t, acting)
	s.Set(activitytest.HeldNode())
	if err := <-fence; err != nil {
		t.Error(err)
	}
	gone, err := acting.Watch(t.Context(), Options{Name: "n2", UID: "uid-2", Caller: activitytest.Caller})
	if err != nil || !errors.Is(gone.Fence(), k8s.ErrNodeGone) {
		t.Errorf("a node that is not there: %v", err)
	}
}

func TestASharedWatchThatHangsIsNoSignOfALostMark(t *testing.T) {
	hung, now := k8stest.New(activitytest.Node("n1")), k8stest.New(activitytest.HeldNode())
	acting := Acting{Client: now.Client(t), Nodes: k8s.NewNodes(hung.Client(t))}
	fence := fenced(t, acting)
	for began := time.Now(); len(now.Requests("GET /api/v1/nodes/n1")) < 2; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			t.Fatal("the API server itself is not asked")
		}
	}
	hung.Set(activitytest.HeldNode())
	if err := <-fence; err != nil {
		t.Error(err)
	}
}

func TestFenceRefusesWithoutAHeartbeat(t *testing.T) {
	kube := k8stest.New(activitytest.HeldNode()).Client(t)
	acting := Acting{Client: kube, Nodes: k8s.NewNodes(kube)}
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
