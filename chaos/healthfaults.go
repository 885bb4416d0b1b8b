package main

import (
	"context"
	"encoding/json"
	"slices"

	"drydock/api"
	"drydock/rules/health"
)

// canHappenToHealth tells whether there is something in a step of a health check to which the fault can happen.
func (c cell) canHappenToHealth() bool {
	s := c.step
	early := []string{"health-watch", "health-news", "find-checks"}
	switch k := c.kind; {
	case s.heals == "", k == resetLockstep, k == terminateLockstep:
		return false
	case k.onAPI():
		return s.requests != nil // what asks the API server nothing is not about it
	case k == resetRemediation, k == terminateRemediation:
		return !slices.Contains(early, s.name) && (s.name != "begin-remediation" && s.name != "ask-for-slot" || c.when == after) // there is none yet
	case s.heals == byObjects: // no node is held, and nobody asks for a slot
		return !slices.Contains([]kind{resetMaintenance, resetScheduler, foreign, stripMark, liftCordon}, k)
	case s.heals == byControlPlane:
		return !slices.Contains([]kind{resetMaintenance, foreign, stripMark, liftCordon}, k)
	default:
		return s.name != "lease-for-repair" && (s.name != "begin-repair" || c.when == after) || k != resetMaintenance && k != stripMark && k != liftCordon
	}
}

// poison sends the workflows of health checks what may be wrong with a message.
func (w ward) poison(ctx context.Context) error {
	if w.heals() == "" {
		return nil
	}
	if err := w.send(ctx, api.HealthCheckID(w.cluster, checkName), toCheck(w.nodes[0])); err != nil {
		return err
	}
	for _, node := range w.nodes {
		if err := w.send(ctx, api.RemediationID(w.cluster, checkName, node), toRemediation()); err != nil {
			return err
		}
	}
	return w.send(ctx, api.HealthWatchID(w.cluster), toWatch())
}

// toCheck are messages to a health check. Those who may send some of these may as well pause it: what is told of a run that is known
// is believed, and is not among them.
func toCheck(node string) []message {
	another := newUUID()
	messages := []message{
		{"chaos-knows-no-such-signal", endless()},
		{api.SignalHealthNews, api.HealthNews{RunID: another, Observation: health.Observation{Full: true, Sequence: 1 << 30}}},
		{api.SignalHealthNews, api.HealthNews{RunID: another, Ended: []string{node}}},
		{api.SignalRemediationProgress, api.RemediationProgress{Node: "no-such-node", RunID: another, Ended: true, Recovered: true}},
		{api.SignalRemediationProgress, api.RemediationProgress{Node: node, Revision: -1, RunID: another, Waiting: endless()}},
		{api.SignalRemediationProgress, api.RemediationProgress{Node: endless(), RunID: endless()}},
		{api.MsgPause, api.HealthMessage{Run: another, Message: api.Message{By: forged}}},
		{api.MsgPause, api.HealthMessage{Message: api.Message{By: endless(), Comment: endless()}, Run: another}},
		{api.MsgConfirm, api.ConfirmHealthy{Node: "no-such-node", Message: api.Message{By: forged, Comment: forged}}},
		{api.MsgConfigure, api.ConfigureHealth{Spec: json.RawMessage(`{"minHealthy":-1,"selector":7}`)}},
		{api.MsgConfigure, api.ConfigureHealth{Spec: json.RawMessage(`{}`), Run: another}},
		{api.MsgRemove, api.HealthMessage{Run: another}},
	}
	messages = append(messages, nonsense(api.SignalHealthNews)...)
	return append(messages, nonsense(api.SignalRemediationProgress)...)
}

// toRemediation are messages to a remediation of the check.
func toRemediation() []message {
	another := newUUID()
	messages := []message{
		{"chaos-knows-no-such-signal", endless()},
		{api.SignalRemediationOrder, api.RemediationOrder{RunID: another, Check: checkName, CheckRunID: another, Order: health.Order{Healthy: true, Revision: 1 << 30}}},
		{api.SignalRemediationOrder, api.RemediationOrder{Check: forged, CheckRunID: another, Order: health.Order{Healthy: true, Revision: 1 << 30}}},
		{api.SignalRemediationOrder, api.RemediationOrder{Check: checkName, CheckRunID: another, Order: health.Order{Node: "no-such-node", Healthy: true}}},
		{api.SignalRemediationOrder, api.RemediationOrder{Check: checkName, CheckRunID: another, Order: health.Order{Step: 1 << 30, Revision: 1 << 30}}},
		{api.SignalRemediationOrder, api.RemediationOrder{Check: checkName, CheckRunID: endless(), Order: health.Order{Why: endless()}}},
	}
	messages = append(messages, message{api.SignalSlotGranted, api.SlotAnswer{RequestID: another + "/1"}})
	messages = append(messages, nonsense(api.SignalSlotGranted)...)
	return append(messages, nonsense(api.SignalRemediationOrder)...)
}

// toWatch are messages to the health watch.
func toWatch() []message {
	another := newUUID()
	messages := []message{
		{"chaos-knows-no-such-signal", endless()},
		{api.SignalHealthIntent, api.HealthIntent{Name: checkName, RunID: another, Revision: 1 << 30}},
		{api.SignalHealthIntent, api.HealthIntent{Name: checkName, RunID: another, Revision: 1 << 30, Gone: true}},
		{api.SignalHealthIntent, api.HealthIntent{Name: forged, RunID: another}},
		{api.SignalHealthIntent, api.HealthIntent{Name: endless(), RunID: endless(), Revision: -1}},
	}
	return append(messages, nonsense(api.SignalHealthIntent)...)
}
