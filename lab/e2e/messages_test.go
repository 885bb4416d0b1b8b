package e2e

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
)

func TestALateDoneNeverTouchesTheNextMaintenance(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	s.guarded(ns, "web", "worker-01")
	earlier := s.begin("worker-02")
	s.until(earlier, api.Ready)
	s.done(earlier)

	next := s.begin("worker-02")
	s.until(next, api.Ready)
	late := api.Done{Run: earlier.GetRunID(), Message: api.Message{By: "a slow script"}}
	s.signalAnyRun(next, api.MsgDone, late)
	s.signalAnyRun(next, api.MsgDone, late)
	if m := s.received(next, api.MsgDone, 2); !strings.HasPrefix(m.Effect, "ignored") || m.By != "a slow script" {
		t.Errorf("a done of an earlier run: %+v", m)
	}
	if _, err := s.tell(next, api.MsgDone, late); err == nil || !strings.Contains(err.Error(), earlier.GetRunID()) {
		t.Errorf("an update for an earlier run: %v, want it refused with the run named", err)
	}
	for _, name := range []string{api.MsgFailed, api.MsgCancel, api.MsgRetry, api.MsgExtend, api.MsgStarted} {
		s.signalAnyRun(next, name, map[string]string{"run": earlier.GetRunID()})
		if m := s.received(next, name, 1); !strings.HasPrefix(m.Effect, "ignored") {
			t.Errorf("a %s of an earlier run: %q", name, m.Effect)
		}
	}
	if status := s.mustStatus(next); status.Phase != api.Ready || status.StartedAt != nil {
		t.Errorf("the next maintenance is %s, started %v", status.Phase, status.StartedAt)
	}
	s.mustShow("worker-02", next.GetRunID(), api.Ready)
	s.signal(next, api.MsgDone, api.Done{Run: next.GetRunID()})
	s.mustEnd(next, api.Completed)

	// Before Ready a done means nothing, whomever it is meant for.
	early := s.begin("worker-01")
	s.until(early, api.Draining)
	s.signal(early, api.MsgDone, nil)
	if m := s.received(early, api.MsgDone, 1); !strings.HasPrefix(m.Effect, "ignored") {
		t.Errorf("a done while draining: %q", m.Effect)
	}
	s.allow(ns, "web")
	s.until(early, api.Ready)
	if status := s.mustStatus(early); status.Requestors[0].DoneAt != nil {
		t.Error("the early done counted after all")
	}
}

// signalAnyRun addresses a workflow ID without a run, as scripts do.
func (s *site) signalAnyRun(run client.WorkflowRun, name string, payload any) {
	s.Helper()
	if err := s.temporal.SignalWorkflow(s.ctx, run.GetID(), "", name, payload); err != nil {
		s.Fatal(err)
	}
}

func TestAStartFromTheUILeadsToTheCanonicalMaintenance(t *testing.T) {
	s := newSite(t, "")
	const spec = `{"node":"worker-01","requestor":"ops","reason":"kernel"}`
	canonical := api.MaintenanceID(s.cluster, "worker-01", "ops")
	// The second time it runs already with the same specification, which is no error.
	for _, id := range []string{"6c8b6f0e-1d0c-4c5e-9d3e-5a0f4c9e2b11", "a-name-somebody-typed"} {
		run, err := s.startAs(id, spec)
		if err != nil {
			t.Fatal(err)
		}
		result, err := s.end(run)
		if err != nil {
			t.Fatal(err)
		}
		if result.WorkflowID != canonical || !strings.Contains(result.Message, canonical) {
			t.Errorf("it leads to %q and says %q", result.WorkflowID, result.Message)
		}
		s.until(s.runOf("worker-01"), api.Ready)
	}

	run, err := s.startAs("another-random-id", `{"node":"worker-01","requestor":"ops","reason":"firmware"}`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.end(run)
	var conflict *temporal.ApplicationError
	if !errors.As(err, &conflict) || conflict.Type() != api.ErrorConflict ||
		!strings.Contains(err.Error(), "kernel") || !strings.Contains(err.Error(), "firmware") {
		t.Errorf("a second start with another reason: %v, want an error that shows both", err)
	}
	status := s.mustStatus(s.runOf("worker-01"))
	if status.Phase != api.Ready || status.Spec.Reason != "kernel" {
		t.Errorf("the running maintenance is %s for %q", status.Phase, status.Spec.Reason)
	}
	s.done(s.runOf("worker-01"))
}

func TestTwoRequestorsOfOneNodeRunOneAfterTheOther(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 5}")
	nodes := s.watchNodes()
	before := s.imprint("worker-01")
	ops := s.begin("worker-01")
	s.until(ops, api.Ready)
	net := s.start("worker-01", "net", `{"node":"worker-01","requestor":"net"}`)
	s.waitsFor(net, "worker-01 is in maintenance for ops")
	s.done(ops)
	s.until(net, api.Ready)
	s.mustShow("worker-01", net.GetRunID(), api.Ready)
	s.done(net)
	s.back("worker-01", before)
	s.nobodyHolds(nodes)
	if taken := nodes.taken("worker-01"); taken != 2 {
		t.Errorf("the node was taken %d times, want once by each", taken)
	}
}

func TestTheNodeIsReleasedWhenAllRequestorsAreDone(t *testing.T) {
	s := newSite(t, "")
	before := s.imprint("worker-01")
	run := s.beginWith("worker-01", `"additionalRequestors":["net","storage"]`)
	s.until(run, api.Ready)
	for _, who := range []string{"bios", "power"} {
		if _, err := s.tell(run, api.MsgJoin, api.Membership{Requestor: who}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.tell(run, api.MsgJoin, api.Membership{Requestor: "bios"}); err == nil {
		t.Error("bios joined twice")
	}
	if _, err := s.tell(run, api.MsgDone, api.Done{Requestor: "stranger"}); err == nil {
		t.Error("somebody who shares nothing was done")
	}
	if _, err := s.tell(run, api.MsgLeave, api.Membership{Requestor: "ops"}); err == nil {
		t.Error("the maintenance's own requestor left it")
	}
	s.signal(run, api.MsgLeave, api.Membership{Requestor: "power"})
	s.signal(run, api.MsgDone, nil)
	for _, who := range []string{"net", "storage"} {
		s.signal(run, api.MsgDone, api.Done{Requestor: who})
		s.signal(run, api.MsgDone, api.Done{Requestor: who})
	}
	s.received(run, api.MsgDone, 5)
	if status := s.mustStatus(run); status.Phase != api.Ready || !strings.Contains(status.WaitingFor, "bios") {
		t.Errorf("bios is not done, and the maintenance is %s, waiting for %s", status.Phase, status.WaitingFor)
	}
	s.mustShow("worker-01", run.GetRunID(), api.Ready)
	s.signal(run, api.MsgDone, api.Done{Requestor: "bios"})
	s.mustEnd(run, api.Completed)
	s.back("worker-01", before)
}

// messages are all that a requestor or a person sends.
var messages = []string{
	api.MsgDone, api.MsgFailed, api.MsgRetry, api.MsgCancel, api.MsgExtend,
	api.MsgStarted, api.MsgDrained, api.MsgJoin, api.MsgLeave,
}

// ownSignals are those that only Drydock sends.
var ownSignals = []string{
	api.SignalSlotGranted, api.SignalSlotPending, api.SignalSlotRefused,
	api.SignalNodeChanged, api.SignalHold, api.SignalDrainBlocked, api.SignalTarget,
}

// badPayloads are what no message accepts.
var badPayloads = []string{`"text"`, `["a"]`, `{"nonsense":1}`, `7`, `{"by":7}`, `{"comment":null}`}

func TestBadSignalsAreRecordedAndHarmless(t *testing.T) {
	s := newSite(t, "")
	run := s.begin("worker-01")
	before := s.untilHeld(run)
	for _, name := range slices.Concat(messages, ownSignals) {
		for _, payload := range badPayloads {
			s.signal(run, name, json.RawMessage(payload))
		}
		s.received(run, name, len(badPayloads))
		all := s.mustStatus(run).Messages
		for i, m := range all[len(all)-len(badPayloads):] {
			if m.Name != name || !strings.HasPrefix(m.Effect, "ignored") {
				t.Errorf("%s with %s: %+v", name, badPayloads[i], m)
			}
		}
	}
	after := s.mustStatus(run)
	before.Messages, after.Messages = nil, nil
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("bad signals changed the maintenance:\n%s", diff)
	}
	s.done(run)
}

func TestBadUpdatesAreRefused(t *testing.T) {
	s := newSite(t, "")
	run := s.begin("worker-01")
	before := s.untilHeld(run)
	for _, name := range messages {
		for _, payload := range badPayloads {
			if effect, err := s.tell(run, name, json.RawMessage(payload)); err == nil {
				t.Errorf("%s with %s is accepted: %s", name, payload, effect)
			}
		}
	}
	for name, want := range map[string]string{api.MsgJoin: "requestor", api.MsgRetry: "Ready", api.MsgDrained: "Ready"} {
		if _, err := s.tell(run, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s without payload: %v, want it refused for %s", name, err, want)
		}
	}
	if diff := cmp.Diff(before, s.mustStatus(run)); diff != "" {
		t.Errorf("refused updates changed the maintenance:\n%s", diff)
	}
	if effect, err := s.tell(run, api.MsgStarted); err != nil || effect == "" {
		t.Errorf("started without payload: %q, %v", effect, err)
	}
	if _, err := s.tell(run, api.MsgExtend, json.RawMessage(`{"for":"-1h"}`)); err == nil || !strings.Contains(err.Error(), "for") {
		t.Errorf("a negative extension: %v, want it refused with the field named", err)
	}
	if effect, err := s.tell(run, api.MsgDone); err != nil || effect != "ops is done" {
		t.Errorf("done: %q, %v", effect, err)
	}
	s.mustEnd(run, api.Completed)
}
