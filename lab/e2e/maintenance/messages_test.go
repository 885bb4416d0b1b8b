package maintenance

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

func TestALateDoneNeverTouchesTheNextMaintenance(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01")
	earlier := s.Begin("worker-02")
	s.Until(earlier, api.Ready)
	s.Done(earlier)

	next := s.Begin("worker-02")
	s.Until(next, api.Ready)
	late := api.Done{Run: earlier.GetRunID(), Message: api.Message{By: "a slow script"}}
	s.SignalAnyRun(next, api.MsgDone, late)
	s.SignalAnyRun(next, api.MsgDone, late)
	if m := s.Received(next, api.MsgDone, 2); !strings.HasPrefix(m.Effect, "ignored") || m.By != "a slow script" {
		t.Errorf("a done of an earlier run: %+v", m)
	}
	if _, err := s.Tell(next, api.MsgDone, late); err == nil || !strings.Contains(err.Error(), earlier.GetRunID()) {
		t.Errorf("an update for an earlier run: %v, want it refused with the run named", err)
	}
	for _, name := range []string{api.MsgFailed, api.MsgCancel, api.MsgRetry, api.MsgExtend, api.MsgStarted} {
		s.SignalAnyRun(next, name, map[string]string{"run": earlier.GetRunID()})
		if m := s.Received(next, name, 1); !strings.HasPrefix(m.Effect, "ignored") {
			t.Errorf("a %s of an earlier run: %q", name, m.Effect)
		}
	}
	if status := s.MustStatus(next); status.Phase != api.Ready || status.StartedAt != nil {
		t.Errorf("the next maintenance is %s, started %v", status.Phase, status.StartedAt)
	}
	s.MustShow("worker-02", next.GetRunID(), api.Ready)
	s.Signal(next, api.MsgDone, api.Done{Run: next.GetRunID()})
	s.MustEnd(next, api.Completed)

	// Before Ready a done means nothing, whomever it is meant for.
	early := s.Begin("worker-01")
	s.Until(early, api.Draining)
	s.Signal(early, api.MsgDone, nil)
	if m := s.Received(early, api.MsgDone, 1); !strings.HasPrefix(m.Effect, "ignored") {
		t.Errorf("a done while draining: %q", m.Effect)
	}
	s.Allow(ns, "web")
	s.Until(early, api.Ready)
	if status := s.MustStatus(early); status.Requestors[0].DoneAt != nil {
		t.Error("the early done counted after all")
	}
}

func TestAStartFromTheUILeadsToTheCanonicalMaintenance(t *testing.T) {
	s := site.New(t, "")
	const spec = `{"node":"worker-01","requestor":"ops","reason":"kernel"}`
	canonical := api.MaintenanceID(s.Cluster, "worker-01", "ops")
	// The second time it runs already with the same specification, which is no error.
	for _, id := range []string{"6c8b6f0e-1d0c-4c5e-9d3e-5a0f4c9e2b11", "a-name-somebody-typed"} {
		run, err := s.StartAs(id, spec)
		if err != nil {
			t.Fatal(err)
		}
		result, err := s.End(run)
		if err != nil {
			t.Fatal(err)
		}
		if result.WorkflowID != canonical || !strings.Contains(result.Message, canonical) {
			t.Errorf("it leads to %q and says %q", result.WorkflowID, result.Message)
		}
		s.Until(s.RunOf("worker-01"), api.Ready)
	}

	run, err := s.StartAs("another-random-id", `{"node":"worker-01","requestor":"ops","reason":"firmware"}`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.End(run)
	var conflict *temporal.ApplicationError
	if !errors.As(err, &conflict) || conflict.Type() != api.ErrorConflict ||
		!strings.Contains(err.Error(), "kernel") || !strings.Contains(err.Error(), "firmware") {
		t.Errorf("a second start with another reason: %v, want an error that shows both", err)
	}
	status := s.MustStatus(s.RunOf("worker-01"))
	if status.Phase != api.Ready || status.Spec.Reason != "kernel" {
		t.Errorf("the running maintenance is %s for %q", status.Phase, status.Spec.Reason)
	}
	s.Done(s.RunOf("worker-01"))
}

func TestTwoRequestorsOfOneNodeRunOneAfterTheOther(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 5}")
	nodes := s.WatchNodes()
	before := s.Imprint("worker-01")
	ops := s.Begin("worker-01")
	s.Until(ops, api.Ready)
	net := s.Start("worker-01", "net", `{"node":"worker-01","requestor":"net"}`)
	s.WaitsFor(net, "worker-01 is in maintenance for ops")
	s.Done(ops)
	s.Until(net, api.Ready)
	s.MustShow("worker-01", net.GetRunID(), api.Ready)
	s.Done(net)
	s.Back("worker-01", before)
	s.NobodyHolds(nodes)
	if taken := nodes.Taken("worker-01"); taken != 2 {
		t.Errorf("the node was taken %d times, want once by each", taken)
	}
}

func TestTheNodeIsReleasedWhenAllRequestorsAreDone(t *testing.T) {
	s := site.New(t, "")
	before := s.Imprint("worker-01")
	run := s.BeginWith("worker-01", `"additionalRequestors":["net","storage"]`)
	s.Until(run, api.Ready)
	for _, who := range []string{"bios", "power"} {
		if _, err := s.Tell(run, api.MsgJoin, api.Membership{Requestor: who}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Tell(run, api.MsgJoin, api.Membership{Requestor: "bios"}); err == nil {
		t.Error("bios joined twice")
	}
	if _, err := s.Tell(run, api.MsgDone, api.Done{Requestor: "stranger"}); err == nil {
		t.Error("somebody who shares nothing was done")
	}
	if _, err := s.Tell(run, api.MsgLeave, api.Membership{Requestor: "ops"}); err == nil {
		t.Error("the maintenance's own requestor left it")
	}
	s.Signal(run, api.MsgLeave, api.Membership{Requestor: "power"})
	s.Signal(run, api.MsgDone, nil)
	for _, who := range []string{"net", "storage"} {
		s.Signal(run, api.MsgDone, api.Done{Requestor: who})
		s.Signal(run, api.MsgDone, api.Done{Requestor: who})
	}
	s.Received(run, api.MsgDone, 5)
	if status := s.MustStatus(run); status.Phase != api.Ready || !strings.Contains(status.WaitingFor, "bios") {
		t.Errorf("bios is not done, and the maintenance is %s, waiting for %s", status.Phase, status.WaitingFor)
	}
	s.MustShow("worker-01", run.GetRunID(), api.Ready)
	s.Signal(run, api.MsgDone, api.Done{Requestor: "bios"})
	s.MustEnd(run, api.Completed)
	s.Back("worker-01", before)
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
	s := site.New(t, "")
	run := s.Begin("worker-01")
	before := s.UntilHeld(run)
	for _, name := range slices.Concat(messages, ownSignals) {
		for _, payload := range badPayloads {
			s.Signal(run, name, json.RawMessage(payload))
		}
		s.Received(run, name, len(badPayloads))
		all := s.MustStatus(run).Messages
		for i, m := range all[len(all)-len(badPayloads):] {
			if m.Name != name || !strings.HasPrefix(m.Effect, "ignored") {
				t.Errorf("%s with %s: %+v", name, badPayloads[i], m)
			}
		}
	}
	after := s.MustStatus(run)
	before.Messages, after.Messages = nil, nil
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("bad signals changed the maintenance:\n%s", diff)
	}
	s.Done(run)
}

func TestBadUpdatesAreRefused(t *testing.T) {
	s := site.New(t, "")
	run := s.Begin("worker-01")
	before := s.UntilHeld(run)
	for _, name := range messages {
		for _, payload := range badPayloads {
			if effect, err := s.Tell(run, name, json.RawMessage(payload)); err == nil {
				t.Errorf("%s with %s is accepted: %s", name, payload, effect)
			}
		}
	}
	for name, want := range map[string]string{api.MsgJoin: "requestor", api.MsgRetry: "Ready", api.MsgDrained: "Ready"} {
		if _, err := s.Tell(run, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s without payload: %v, want it refused for %s", name, err, want)
		}
	}
	if diff := cmp.Diff(before, s.MustStatus(run)); diff != "" {
		t.Errorf("refused updates changed the maintenance:\n%s", diff)
	}
	if effect, err := s.Tell(run, api.MsgStarted); err != nil || effect == "" {
		t.Errorf("started without payload: %q, %v", effect, err)
	}
	if _, err := s.Tell(run, api.MsgExtend, json.RawMessage(`{"for":"-1h"}`)); err == nil || !strings.Contains(err.Error(), "for") {
		t.Errorf("a negative extension: %v, want it refused with the field named", err)
	}
	if effect, err := s.Tell(run, api.MsgDone); err != nil || effect != "ops is done" {
		t.Errorf("done: %q, %v", effect, err)
	}
	s.MustEnd(run, api.Completed)
}
