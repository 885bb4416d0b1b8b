package maintenance

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/activities/node"
	"drydock/activities/nodeevent"
	"drydock/api"
	"drydock/rules/notices"
	"drydock/rules/spec"
	"drydock/workflows/call"
)

// holdForRequestors keeps the node out of service until all requestors are done, or somebody decides otherwise.
func (m *maintenance) holdForRequestors() error {
	m.enter(api.Ready, "")
	m.tell(notices.ObjectsDrained, "")
	m.setDeadline(m.spec.ReadyTimeout.Std())
	for {
		m.showPhase()
		m.showConditions()
		m.waiting(m.requestorsWaitedFor())
		overdue, err := m.awaitRequestors()
		if err != nil {
			return err
		}
		switch {
		case m.nodeGone != "":
			return ending{phase: api.NodeGone, message: m.nodeGone}
		case m.release:
			return ending{phase: api.Cancelled, message: m.cancelled}
		case m.allDone():
			return nil
		case overdue && m.spec.OnReadyTimeout == spec.ReleaseOnTimeout:
			m.note("held for longer than readyTimeout; released as onReadyTimeout says")
			return nil
		case overdue:
			m.requestorFailed(fmt.Sprintf("held for longer than readyTimeout (%s)", m.spec.ReadyTimeout))
		}
	}
}

// awaitRequestors waits for the next thing that matters; overdue tells that it was the deadline.
func (m *maintenance) awaitRequestors() (overdue bool, err error) {
	shown, deadline := m.status.Phase, m.status.ReadyDeadline
	matters := func() bool {
		return m.allDone() || m.release || m.nodeGone != "" || m.status.Phase != shown || m.status.ReadyDeadline != deadline
	}
	if m.status.Phase != api.Ready || deadline == nil {
		return false, workflow.Await(m.life, matters)
	}
	left := deadline.Sub(workflow.Now(m.life))
	if left <= 0 {
		return true, nil
	}
	ok, err := m.awaitUpTo(m.life, left, "readyTimeout", matters)
	return !ok, err
}

// showPhase shows on the node that it is Ready, that its requestor failed, or that it is validated. It follows the phase and never goes
// before it: whoever sees the node Ready may say done at once.
func (m *maintenance) showPhase() {
	for m.shown != m.status.Phase {
		phase, message := m.status.Phase, "the node is ready for maintenance"
		switch phase {
		case api.Validating:
			message = "the node is validated before it returns to production"
		case api.RequestorFailed:
			message = "the node stays out of service until somebody decides: " + m.status.Failure
		}
		m.attribute(api.AttributePhase.ValueSet(string(phase)))
		in := m.announcement(phase, message)
		in.Event.Warning = phase == api.RequestorFailed
		ctx := call.Quick(m.life, "show "+string(phase)+" on "+m.spec.Node)
		if err := workflow.ExecuteActivity(ctx, call.Nodes.AnnouncePhase, in).Get(ctx, nil); err != nil {
			// The node may be away for re-imaging; what is shown on it must not end the maintenance.
			workflow.GetLogger(m.life).Warn("phase not shown on the node", "phase", phase, "error", err)
		}
		m.shown = phase
	}
}

func (m *maintenance) announcement(phase api.Phase, message string) node.AnnounceInput {
	return node.AnnounceInput{
		Node: m.spec.Node, RunID: m.status.RunID, Mark: m.mark, Phase: string(phase),
		Event: nodeevent.Event{
			Reason: "Maintenance" + string(phase), Message: m.summary() + ": " + message,
			Key: fmt.Sprintf("%d/%d", m.status.Attempt, m.moment()),
		},
	}
}

func (m *maintenance) setDeadline(hold time.Duration) {
	m.status.ReadyDeadline = nil
	if hold > 0 {
		deadline := workflow.Now(m.life).Add(hold)
		m.status.ReadyDeadline = &deadline
	}
}

func (m *maintenance) requestorFailed(reason string) {
	m.status.Failure = reason
	m.status.ReadyDeadline = nil
	m.enter(api.RequestorFailed, reason)
	m.tell(notices.MaintenanceIncomplete, reason)
}

func (m *maintenance) allDone() bool {
	for _, r := range m.status.Requestors {
		if r.DoneAt == nil {
			return false
		}
	}
	return true
}

// showRequestors says anew who is waited for, after one of them was done, joined or left.
func (m *maintenance) showRequestors() {
	if m.heldByRequestor() && !m.allDone() {
		m.waiting(m.requestorsWaitedFor())
	}
}

func (m *maintenance) requestorsWaitedFor() string {
	var open []string
	for _, r := range m.status.Requestors {
		if r.DoneAt == nil {
			open = append(open, r.Name)
		}
	}
	who := strings.Join(open, ", ")
	if m.status.Phase == api.RequestorFailed {
		return fmt.Sprintf(`a decision: "retry" or "done" from %s, or "cancel" with release`, who)
	}
	return fmt.Sprintf(`"done" or "failed" from %s`, who)
}
