package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"

	"github.com/google/uuid"

	"drydock.dev/drydock/api"
)

// senders say things that nobody needs: some that fit, some that come at the wrong time, and some that are nonsense.
type senders struct {
	fleet *fleet
	dice  *rand.Rand
}

func (s *senders) turn(ctx context.Context) {
	m := s.fleet.anyOf(s.dice, 10)
	if m == nil {
		return
	}
	switch n := s.dice.IntN(100); {
	case n < 55:
		name, payload := s.fitting(m)
		s.fleet.signal(ctx, m.id, name, payload, "message")
	case n < 80:
		s.fleet.signal(ctx, m.id, pick(s.dice, api.MessagesTo(api.NodeMaintenanceType)), s.nonsense(), "wrong message")
	case n < 92:
		name, payload := s.forged(m)
		s.fleet.signal(ctx, m.id, name, payload, "forged message")
	default:
		s.fleet.signal(ctx, api.SchedulerID(""), pick(s.dice, []string{api.SignalSlotRequest, api.SignalSlotRelease, "nobody-knows"}),
			s.toScheduler(m), "wrong message to the scheduler")
	}
}

// fitting is a message in the right form. Rungs that go past budgets are left out: no budget could be judged then.
func (s *senders) fitting(m *maintenance) (string, any) {
	run := m.run
	if chance(s.dice, 15) {
		run = s.uuid()
	}
	by := pick(s.dice, []string{"alice", "bob", m.requestor})
	simple := map[string]any{"by": by, "run": run}
	if chance(s.dice, 40) {
		simple["id"] = s.uuid()
	}
	with := func(key string, value any) map[string]any {
		simple[key] = value
		return simple
	}
	switch name := pick(s.dice, []string{
		api.MsgDone, api.MsgFailed, api.MsgRetry, api.MsgCancel, api.MsgExtend, api.MsgStarted, api.MsgDrained, api.MsgJoin, api.MsgLeave,
		api.MsgEscalate, api.MsgSkipPod, api.MsgRetryNow, api.MsgRetryNow, api.MsgApprove, api.MsgValidated, api.MsgValidationFailed, api.MsgHookDone, api.MsgSkipHook,
	}); name {
	case api.MsgFailed:
		return name, with("reason", "a test")
	case api.MsgCancel:
		return name, with("release", chance(s.dice, 50))
	case api.MsgExtend:
		return name, with("for", pick(s.dice, []string{"10s", "30s", "1m"}))
	case api.MsgEscalate:
		return name, with("do", pick(s.dice, []string{"notify", "giveBack", "fail"}))
	case api.MsgSkipPod:
		return name, with("pod", namespace+"/"+pick(s.dice, workloads()).name+"-0")
	case api.MsgJoin, api.MsgLeave:
		return name, map[string]any{"by": by, "requestor": pick(s.dice, []string{"second.example.com", "third.example.com", m.requestor})}
	case api.MsgHookDone, api.MsgSkipHook:
		return name, with("hook", pick(s.dice, []string{"sign-off", "ticket", "unknown"}))
	default:
		return name, simple
	}
}

// nonsense is a payload that no message has.
func (s *senders) nonsense() any {
	return pick(s.dice, []any{
		map[string]any{"unknown": true}, map[string]any{"by": 7}, map[string]any{"run": "not-a-run"}, []int{1, 2}, "text", 12.5, true,
		map[string]any{"by": strings.Repeat("x", 5000)}, map[string]any{"comment": "nul \x00 and \u202e"},
		map[string]any{"requestor": strings.Repeat("n/", 100)}, map[string]any{"pod": "../../etc"}, map[string]any{"for": "-1h"},
		json.RawMessage("null"), map[string]any{"hook": map[string]any{}},
	})
}

// forged is what only the scheduler or an activity says, from somebody who is neither. What would make a slot of its own
// is among it: it must be of no use.
func (s *senders) forged(m *maintenance) (string, any) {
	request := m.run + "/1"
	if chance(s.dice, 30) {
		request = s.uuid() + "/1"
	}
	switch name := pick(s.dice, []string{
		api.SignalSlotGranted, api.SignalSlotPending, api.SignalNodeChanged, api.SignalDrainBlocked, api.SignalTarget,
	}); name {
	case api.SignalNodeChanged:
		return name, map[string]any{"requestId": request, "uncordoned": true}
	case api.SignalTarget: // for a maintenance that plans share
		return name, map[string]any{"revision": 1 << 40, "targets": []any{map[string]any{"podType": "DaemonSet", "podPriority": 1 << 30}}, "last": true}
	case api.SignalDrainBlocked:
		return name, pick(s.dice, []any{"nonsense", map[string]any{"remaining": -3}, map[string]any{"unknown": 1}})
	default:
		return name, map[string]any{"requestId": request, "reason": "forged"}
	}
}

// toScheduler is what the scheduler must refuse or ignore: nothing that names a request of its own.
func (s *senders) toScheduler(m *maintenance) any {
	return pick(s.dice, []any{
		map[string]any{"requestId": s.uuid() + "/1"}, map[string]any{"requestId": strings.Repeat("r", 3000)},
		map[string]any{"id": m.run + "/x", "node": m.node, "requestor": m.requestor, "runId": m.run},
		map[string]any{"id": "no-run/1", "node": m.node, "requestor": m.requestor, "runId": "no-run"},
		map[string]any{"id": m.run + "/1", "node": "no/node", "requestor": m.requestor, "runId": m.run},
		"nonsense", 3, []string{"a"}, json.RawMessage("null"),
	})
}

// uuid is one that the seed chooses.
func (s *senders) uuid() string {
	var id uuid.UUID
	for i := range id {
		id[i] = byte(s.dice.UintN(256))
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id.String()
}
