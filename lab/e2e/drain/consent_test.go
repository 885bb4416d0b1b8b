package drain

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

// TestAConsentLetsADrainUnderWayGoOn has two pods that nobody re-creates: one consent to one of them, one to all.
func TestAConsentLetsADrainUnderWayGoOn(t *testing.T) {
	s := site.New(t, ourPolicyOnConsent)
	ns := s.Namespace()
	one, other := s.Pod(ns, "one", "worker-01"), s.Pod(ns, "other", "worker-01")
	s.MustDrydock("start", "worker-01")
	run := s.RunOf("worker-01")
	advice := fmt.Sprintf("drydock consent worker-01 --pod %s/one --force", ns)
	s.Eventually("status says how to consent", func() error {
		if text := s.MustDrydock("status", "worker-01"); !strings.Contains(text, advice) {
			return errors.New(text)
		}
		return nil
	})
	s.Exits(s.Drydock("consent", "worker-01", "--force", "--comment", "why"), 2, "--yes")
	s.Exits(s.Drydock("consent", "worker-01", "--force", "--yes"), 2, "--comment")
	s.Exits(s.Drydock("consent", "worker-01", "--comment", "why", "--yes"), 2, "--force, --delete-emptydir-data or both")
	s.Exits(s.Drydock("consent", "worker-01", "--delete-emptydir-data", "--comment", "why", "--yes"), 1, "policy no-data")
	s.Exits(s.Drydock("drain", "skip", "worker-01", ns+"/nosuch"), 1, "there is no pod "+ns+"/nosuch")
	s.Exits(s.Drydock("consent", "worker-01", "--pod", ns+"/nosuch", "--force", "--comment", "why", "--yes"), 1, "there is no pod "+ns+"/nosuch")
	s.MustStay(*one)

	s.Exits(s.Drydock("consent", "worker-01", "--pod", ns+"/one", "--force", "--comment", "may be lost", "--yes"), 0, "the drain may lose pods")
	if text, _, _ := strings.Cut(s.MustDrydock("status", "worker-01"), "\nPhases:"); strings.Contains(text, ns+"/one") {
		t.Errorf("what was consented to is still in the way:\n%s", text)
	}
	s.UntilGone(*one)
	s.MustStay(*other)
	status := s.MustStatus(run)
	if len(status.Consents) != 1 || status.Consents[0].By == "" || status.Consents[0].Comment != "may be lost" || len(status.SkippedPods) > 0 {
		t.Errorf("consents %+v, skipped %v", status.Consents, status.SkippedPods)
	}
	if effect, err := s.Tell(run, api.MsgConsent, map[string]any{"force": true, "by": "ann", "comment": "both"}); err != nil || !strings.HasPrefix(effect, "consented to force") {
		t.Errorf("the update answers %q, %v", effect, err)
	}
	s.Until(run, api.Ready)
	s.UntilGone(*other)
	s.Exits(s.Drydock("consent", "worker-01", "--force", "--comment", "late", "--yes"), 1, "worker-01 is Ready")
	s.Done(run)
	s.UntilSays([]string{"history", "worker-01", "--details"}, "consented to force for "+ns+"/one", "may be lost", "2 of 2 pods evicted")
}

const ourPolicyOnConsent = `
policy:
- name: no-data
  require: "!maintenance.drain.deleteEmptyDir"
`

// TestAMaintenanceIsMovedWhileItWaitsForItsTime is about notBefore, from its refusal to its end.
func TestAMaintenanceIsMovedWhileItWaitsForItsTime(t *testing.T) {
	s := site.New(t, "")
	past := s.BeginWith("worker-01", `"notBefore":"2026-01-01T22:00:00Z"`)
	if _, err := s.End(past); err == nil || !strings.Contains(err.Error(), "notBefore: 2026-01-01T22:00:00Z was over at the start") ||
		!strings.Contains(err.Error(), "leave it out to begin at once") {
		t.Errorf("a time in the past: %v", err)
	}
	s.MustDrydock("start", "worker-01", "--not-before", "48h")
	run := s.RunOf("worker-01")
	status := s.UntilStatus(run, "waiting for its time", func(status api.Status) bool { return strings.HasPrefix(status.WaitingFor, "its time: not before ") })
	old := *status.Spec.NotBefore
	s.Says("the Temporal UI", s.ShownDetails(run), "**Waiting for:** its time: not before "+old.UTC().Format("2006-01-02 15:04:05Z"))
	s.Exits(s.Drydock("reschedule", "worker-01", "--not-before", "2026-01-01T22:00:00Z"), 2, "is over")
	s.Exits(s.Drydock("reschedule", "worker-01"), 2, "--not-before")
	s.Exits(s.Drydock("reschedule", "worker-01", "--not-before", "72h", "--comment", "the window moved"), 0, "begins not before")
	if moved := s.MustStatus(run); !moved.Spec.NotBefore.After(old.Add(23*time.Hour)) || moved.Phase != api.Pending {
		t.Errorf("%s, not before %s", moved.Phase, moved.Spec.NotBefore)
	}
	s.Exits(s.Drydock("reschedule", "worker-01", "--not-before", "0s", "--comment", "now"), 0)
	s.Until(run, api.Ready)
	s.Exits(s.Drydock("reschedule", "worker-01", "--not-before", "1h"), 1, "does not wait for its time any more")
	s.Done(run)
}

// TestADrainIsToldAsItIs: before its first look it does not say that there are no pods, and what it deletes it does not evict.
func TestADrainIsToldAsItIs(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01")
	run := s.Begin("worker-01")
	watched := s.Spawn("watch", "worker-01")
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if r := s.Drydock("status", "worker-01"); strings.Contains(r.Stdout, "no pods to drain") || strings.Contains(r.Stdout, "d23h ago") {
			t.Fatalf("status shows\n%s", r.Stdout)
		}
	}
	s.RefusedOnce(ns)
	s.Exits(s.Drydock("escalate", "worker-01", "--do", "bypassBudget", "--comment", "team web agrees", "--yes"), 0)
	status := s.Until(run, api.Ready)
	if d := status.Drain; d == nil || d.Evicted != 0 || d.Deleted != 1 || d.Total != 1 {
		t.Errorf("drain = %+v", d)
	}
	s.Done(run)
	watched.End()
	if out := watched.Output.String(); strings.Contains(out, "no pods to drain") {
		t.Errorf("watch showed\n%s", out)
	}
	s.UntilSays([]string{"history", "worker-01", "--details"}, "0 of 1 pod evicted, 1 deleted")
}
