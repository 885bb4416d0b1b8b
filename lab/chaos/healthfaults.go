package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/nodestate"
)

// backWithin bounds how long a node whose kubelet came back is still tainted as out of service.
const backWithin = 20 * time.Second

// canHappenToHealth reports whether there is something in a step of a health check to which the fault can happen.
func (c cell) canHappenToHealth() bool {
	s := c.step
	switch k := c.kind; {
	case s.heals == "", k == resetLockstep, k == terminateLockstep:
		return false
	case k == kubeletBack:
		// Before the taint is on its way the maintenance waits five minutes for the node to fall silent again.
		return s.name == "take-out-of-service" && c.when == after || slices.Contains([]string{"out-of-service", "await-out-of-service", "in-service"}, s.name)
	case k.onAPI():
		return s.requests != nil // what asks the API server nothing is not about it
	case k == resetRemediation, k == terminateRemediation:
		return s.name != "health-watch" && (s.name != "begin-remediation" && s.name != "ask-for-slot" || c.when == after) // there is none yet
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
	return nil
}

// toCheck are messages to a health check. Those who may send some of these may as well pause it: what is told of a run that is known
// is believed, and is not among them.
func toCheck(node string) []message {
	another := newUUID()
	messages := []message{
		{"chaos-knows-no-such-signal", endless()},
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
	return append(messages, nonsense(api.SignalRemediationProgress)...)
}

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

// comesBack reports whether the fault is that the first node's kubelet answers again while the node is out of service. The second node stays
// healthy then: it would be remediated as soon as the first one is well.
func (w ward) comesBack() bool { return w.cell.kind == kubeletBack }

// comeBack has the first node's kubelet answer again, and waits until it has.
func (w ward) comeBack(ctx context.Context) error {
	if err := w.isSilent(ctx, w.nodes[0], false); err != nil {
		return err
	}
	return world.Eventually(ctx, patience, "the kubelet of "+w.nodes[0]+" answers", func() error {
		if n := w.observer.node(w.nodes[0]); n == nil || nodestate.IsSilent(n) {
			return errors.New("it does not")
		}
		return nil
	})
}

// isBackInService waits until a node whose kubelet came back is out of service no more, and its maintenance has warned of that; where
// the taint was to go anyway, there is nothing to warn of.
func (w ward) isBackInService(ctx context.Context) error {
	node := w.nodes[0]
	untainted := world.Eventually(ctx, backWithin, "node "+node+" is out of service no more", func() error {
		if n := w.observer.node(node); n == nil || k8s.IsOutOfService(n) {
			return errors.New("it is")
		}
		return nil
	})
	if s := w.cell.step.name; s == "in-service" || s == "await-out-of-service" && w.cell.when == after {
		return untainted
	}
	return errors.Join(untainted, world.Eventually(ctx, patience, "an Event CameBack on node "+node, func() error {
		list, err := w.kube.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "reason=CameBack,involvedObject.name=" + node})
		if err == nil && !slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return e.LastTimestamp.After(w.since) }) {
			err = errors.New("there is none")
		}
		return err
	}))
}
