package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"drydock/workflows"
)

func TestANodeThatDoesNotEmptyIsGivenBack(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	before := s.imprint("worker-01")
	s.guarded(ns, "web", "worker-01")
	pod := s.one(ns, "web")
	run := s.beginWith("worker-01", `"drain":{"escalation":[{"after":"3s","do":"giveBack"}]}`)
	s.until(run, workflows.Draining)
	next := s.begin("worker-02")

	status := s.untilStatus(run, "to be tried again", func(status workflows.Status) bool { return status.Attempt == 2 })
	if status.Phase != workflows.Pending || !strings.Contains(status.WaitingFor, "next attempt") || status.Slot != nil {
		t.Errorf("given back it is %s, waiting for %q, slot %+v", status.Phase, status.WaitingFor, status.Slot)
	}
	s.back("worker-01", before)
	s.until(next, workflows.Ready)
	s.allow(ns, "web")
	s.always("the pod is left alone", 2*time.Second, func() error {
		if accepted := s.accepted(ns); len(accepted) > 0 {
			return fmt.Errorf("evicted: %v", accepted)
		}
		return nil
	})
	s.mustStay(pod)
	s.signal(run, workflows.MsgCancel, nil)
	s.undone(run, "worker-01", before)
}

func TestANodeThatDoesNotEmptyFailsWhereAskedTo(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	before := s.imprint("worker-01")
	s.guarded(ns, "web", "worker-01")
	run := s.beginWith("worker-01", `"drain":{"escalation":[{"after":"4s","do":"fail"}]}`)
	result := s.mustEnd(run, workflows.Failed)
	if !strings.Contains(result.Message, "4s") || !strings.Contains(result.Message, ns+"/web") || !strings.Contains(result.Message, "budget") {
		t.Errorf("it failed with %q, want the time, the pod and its budget", result.Message)
	}
	s.back("worker-01", before)
	s.slotFree("worker-01")
	if accepted := s.accepted(ns); len(accepted) > 0 {
		t.Errorf("evicted: %v", accepted)
	}
}
