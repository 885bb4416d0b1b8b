package e2e

import (
	"errors"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
)

// TestAProgramRunsAMaintenance does what the example of package client does.
func TestAProgramRunsAMaintenance(t *testing.T) {
	s := newSite(t, "")
	before := s.imprint("worker-01")
	drydock := client.New(s.temporal, client.Options{Cluster: s.cluster, By: "patch-robot", Requestor: "patch-robot"})
	input := client.Input{"node": "worker-01", "requestor": "patch-robot", "reason": "kernel 6.12"}
	started, adopted, err := drydock.Start(s.ctx, input)
	if err != nil || adopted {
		t.Fatalf("adopted %v, %v", adopted, err)
	}
	ready, err := drydock.Wait(s.ctx, started.Maintenance, client.Ready)
	if err != nil {
		t.Fatal(err)
	}
	s.mustShow("worker-01", ready.RunID, api.Ready)

	again, adopted, err := drydock.Start(s.ctx, input)
	if err != nil || !adopted || again.RunID != ready.RunID {
		t.Errorf("the same once more: adopted %v, run %s, %v", adopted, again.RunID, err)
	}
	var different *client.DifferentError
	other := client.Input{"node": "worker-01", "requestor": "patch-robot", "reason": "firmware"}
	if _, _, err := drydock.Start(s.ctx, other); !errors.As(err, &different) || different.Differences[0].Field != "reason" {
		t.Errorf("with another reason: %v", err)
	}
	found, err := drydock.Find(s.ctx, "worker-01", "")
	if err != nil || found.RunID != ready.RunID {
		t.Errorf("found %s, %v", found.RunID, err)
	}

	// Whoever does not know what became of a message sends it again.
	note := api.Simple{Message: api.Message{ID: "note-1"}}
	for range 2 {
		if sent, err := drydock.Send(s.ctx, ready.Maintenance, api.MsgNote, note, "disk replaced"); err != nil || sent.Effect != "the comment is on record" {
			t.Errorf("%+v, %v", sent, err)
		}
	}
	if v, err := drydock.Observe(s.ctx, ready.Maintenance); err != nil || len(v.Status.Messages) != 1 {
		t.Errorf("%+v, %v", v.Status, err)
	}
	sent, err := drydock.Send(s.ctx, ready.Maintenance, api.MsgDone, api.Done{Requestor: "patch-robot"}, "patched")
	if err != nil || sent.Already || sent.Effect != "patch-robot is done" {
		t.Fatalf("%+v, %v", sent, err)
	}
	ended, err := drydock.Wait(s.ctx, ready.Maintenance, client.Completed)
	if err != nil || ended.Phase() != api.Completed {
		t.Fatalf("%s, %v", ended.Phase(), err)
	}
	if _, err := drydock.Send(s.ctx, ready.Maintenance, api.MsgRetry, nil, ""); !errors.Is(err, client.ErrEnded) {
		t.Errorf("too late: %v", err)
	}
	s.back("worker-01", before)
}
