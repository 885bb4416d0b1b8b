package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
)

// TestAConsentLetsADrainUnderWayGoOn has two pods that nobody re-creates: one consent to one of them, one to all.
func TestAConsentLetsADrainUnderWayGoOn(t *testing.T) {
	s := newSite(t, ourPolicyOnConsent)
	ns := s.namespace()
	one, other := s.pod(ns, "one", "worker-01"), s.pod(ns, "other", "worker-01")
	s.mustDrydock("start", "worker-01")
	run := s.runOf("worker-01")
	advice := fmt.Sprintf("drydock consent worker-01 --pod %s/one --force", ns)
	s.eventually("status says how to consent", func() error {
		if text := s.mustDrydock("status", "worker-01"); !strings.Contains(text, advice) {
			return errors.New(text)
		}
		return nil
	})
	s.exits(s.drydock("consent", "worker-01", "--force", "--comment", "why"), 2, "--yes")
	s.exits(s.drydock("consent", "worker-01", "--force", "--yes"), 2, "--comment")
	s.exits(s.drydock("consent", "worker-01", "--comment", "why", "--yes"), 2, "--force, --delete-emptydir-data or both")
	s.exits(s.drydock("consent", "worker-01", "--delete-emptydir-data", "--comment", "why", "--yes"), 1, "policy no-data")
	s.exits(s.drydock("skip-pod", "worker-01", ns+"/nosuch"), 1, "there is no pod "+ns+"/nosuch")
	s.exits(s.drydock("consent", "worker-01", "--pod", ns+"/nosuch", "--force", "--comment", "why", "--yes"), 1, "there is no pod "+ns+"/nosuch")
	s.mustStay(*one)

	s.exits(s.drydock("consent", "worker-01", "--pod", ns+"/one", "--force", "--comment", "may be lost", "--yes"), 0, "the drain may lose pods")
	if text, _, _ := strings.Cut(s.mustDrydock("status", "worker-01"), "\nPhases:"); strings.Contains(text, ns+"/one") {
		t.Errorf("what was consented to is still in the way:\n%s", text)
	}
	s.untilGone(*one)
	s.mustStay(*other)
	status := s.mustStatus(run)
	if len(status.Consents) != 1 || status.Consents[0].By == "" || status.Consents[0].Comment != "may be lost" || len(status.SkippedPods) > 0 {
		t.Errorf("consents %+v, skipped %v", status.Consents, status.SkippedPods)
	}
	if effect, err := s.tell(run, api.MsgConsent, map[string]any{"force": true, "by": "ann", "comment": "both"}); err != nil || !strings.HasPrefix(effect, "consented to force") {
		t.Errorf("the update answers %q, %v", effect, err)
	}
	s.until(run, api.Ready)
	s.untilGone(*other)
	s.exits(s.drydock("consent", "worker-01", "--force", "--comment", "late", "--yes"), 1, "worker-01 is Ready")
	s.done(run)
	s.untilSays([]string{"history", "worker-01", "--details"}, "consented to force for "+ns+"/one", "may be lost", "2 of 2 pods evicted")
}

const ourPolicyOnConsent = `
policy:
- name: no-data
  require: "!maintenance.drain.deleteEmptyDir"
`

// TestAMaintenanceIsMovedWhileItWaitsForItsTime is about notBefore, from its refusal to its end.
func TestAMaintenanceIsMovedWhileItWaitsForItsTime(t *testing.T) {
	s := newSite(t, "")
	past := s.beginWith("worker-01", `"notBefore":"2026-01-01T22:00:00Z"`)
	if _, err := s.end(past); err == nil || !strings.Contains(err.Error(), "notBefore: 2026-01-01T22:00:00Z was over at the start") ||
		!strings.Contains(err.Error(), "leave it out to begin at once") {
		t.Errorf("a time in the past: %v", err)
	}
	s.mustDrydock("start", "worker-01", "--not-before", "48h")
	run := s.runOf("worker-01")
	status := s.untilStatus(run, "waiting for its time", func(status api.Status) bool { return strings.HasPrefix(status.WaitingFor, "its time: not before ") })
	old := *status.Spec.NotBefore
	s.says("the Temporal UI", s.shownDetails(run), "waiting for its time: not before "+old.UTC().Format(time.RFC3339))
	s.exits(s.drydock("reschedule", "worker-01", "--not-before", "2026-01-01T22:00:00Z"), 2, "is over")
	s.exits(s.drydock("reschedule", "worker-01"), 2, "--not-before")
	s.exits(s.drydock("reschedule", "worker-01", "--not-before", "72h", "--comment", "the window moved"), 0, "begins not before")
	if moved := s.mustStatus(run); !moved.Spec.NotBefore.After(old.Add(23*time.Hour)) || moved.Phase != api.Pending {
		t.Errorf("%s, not before %s", moved.Phase, moved.Spec.NotBefore)
	}
	s.exits(s.drydock("reschedule", "worker-01", "--not-before", "0s", "--comment", "now"), 0)
	s.until(run, api.Ready)
	s.exits(s.drydock("reschedule", "worker-01", "--not-before", "1h"), 1, "does not wait for its time any more")
	s.done(run)
}

// TestADrainIsToldAsItIs: before its first look it does not say that there are no pods, and what it deletes it does not evict.
func TestADrainIsToldAsItIs(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	s.guarded(ns, "web", "worker-01")
	run := s.begin("worker-01")
	watched := s.spawn("watch", "worker-01")
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if r := s.drydock("status", "worker-01"); strings.Contains(r.stdout, "no pods to drain") || strings.Contains(r.stdout, "d23h ago") {
			t.Fatalf("status shows\n%s", r.stdout)
		}
	}
	s.refusedOnce(ns)
	s.exits(s.drydock("escalate", "worker-01", "--do", "bypassBudget", "--comment", "team web agrees", "--yes"), 0)
	status := s.until(run, api.Ready)
	if d := status.Drain; d == nil || d.Evicted != 0 || d.Deleted != 1 || d.Total != 1 {
		t.Errorf("drain = %+v", d)
	}
	s.done(run)
	watched.end()
	if out := watched.output.String(); strings.Contains(out, "no pods to drain") {
		t.Errorf("watch showed\n%s", out)
	}
	s.untilSays([]string{"history", "worker-01", "--details"}, "0 of 1 pod evicted, 1 deleted")
}
