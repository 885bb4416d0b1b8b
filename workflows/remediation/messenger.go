package remediation

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/bounds"
	"drydock/workflows/call"
	"drydock/workflows/inbox"
	"drydock/workflows/loop"
)

const (
	// pace is the shortest time between two reports where nobody waits for one, and sayAgain the longest between two where
	// nothing has changed.
	pace     = time.Second
	sayAgain = 10 * time.Minute
	// orphanedFor is how long a remediation waits for a check that does not run, before it decides by itself.
	orphanedFor = 30 * time.Minute
	// lastWords bounds how often a remediation that has ended tries to say so: a check that does not hear it finds out.
	lastWords = 5
	// maxRevision is more than anybody counts to, maxLead far more than the orders of which one can be the first that arrives: a
	// later order would not count.
	maxRevision = 1 << 40
	maxLead     = 1 << 20
)

// messenger takes the check's orders, and tells it how far the remediation is.
type messenger struct {
	*core
	// urgent: somebody waits for a report.
	urgent, busy bool
	// failures count reports in a row that were not delivered, next is when it is tried again.
	failures int
	next     time.Time
	// said: the end was told.
	said bool
}

// listen takes every message from the first moment on.
func (r *remediation) listen(root workflow.Context) error {
	if err := r.answer(root); err != nil {
		return err
	}
	in := inbox.New(r.Ctx, inbox.Ears{
		Arrived: r.Arrived,
		Refused: func(name string, _ api.Message, _ api.Outcome, why error) {
			r.note("ignored a signal "+name, why.Error())
		},
	})
	inbox.Receive(in, api.SignalRemediationOrder, r.messenger.heard)
	r.Unread = in.Unread
	in.Open(nil)
	workflow.GoNamed(r.Ctx, "cancellation", func(ctx workflow.Context) {
		root.Done().Receive(ctx, nil)
		if r.state.Ending == "" && !r.state.Order.Healthy {
			r.state.Ending, r.Dirty = "it was cancelled", true
		}
	})
	return nil
}

// heard takes an order.
func (m *messenger) heard(o api.RemediationOrder) {
	if err := m.refused(o); err != nil {
		m.note("ignored an order", err.Error())
		return
	}
	m.urgent = m.urgent || o.Tell
	m.state.Orphaned, m.failures, m.next = time.Time{}, 0, time.Time{}
	m.state.CheckRunID = o.CheckRunID
	if o.Revision <= m.state.Order.Revision {
		return // it is done already, or being done
	}
	o.Why = bounds.Cut(o.Why, bounds.Text)
	o.Healthy = o.Healthy || m.state.Order.Healthy // it is never withdrawn
	// A check that was started anew may have more steps than there were.
	last := len(m.in.Steps) - 1
	o.Step = min(max(o.Step, m.state.Order.Step), last)
	o.TimedOut = slices.DeleteFunc(o.TimedOut, func(i int) bool { return i > last })
	o.Old = o.Old || m.state.Order.Old
	m.state.Order = o.Order
	m.state.Progress.Revision, m.urgent = o.Revision, true
}

// refused tells why an order cannot be meant for this remediation.
func (m *messenger) refused(o api.RemediationOrder) error {
	known := m.state.Order.Revision
	switch {
	case o.RunID != "" && o.RunID != m.runID:
		return fmt.Errorf("it is meant for run %.40q, and this is run %s", o.RunID, m.runID)
	case o.Check != m.identity.check:
		return fmt.Errorf("it is of check %.60q, and this is a remediation of check %s", o.Check, m.identity.check)
	case o.Node != "" && o.Node != m.node:
		return fmt.Errorf("it is about node %.60q", o.Node)
	case api.RunID(o.CheckRunID) != nil:
		return fmt.Errorf("checkRunId: %w", api.RunID(o.CheckRunID))
	case o.Revision < 0 || o.Revision > maxRevision || known > 0 && o.Revision > known+maxLead:
		return fmt.Errorf("revision: %d is not one that follows %d", o.Revision, known)
	case o.Step < 0:
		return fmt.Errorf("step: %d is negative", o.Step)
	case len(o.TimedOut) > maxSteps || slices.ContainsFunc(o.TimedOut, func(i int) bool { return i < 0 }):
		return fmt.Errorf("timedOut: %.100v: these are no steps", o.TimedOut)
	}
	return nil
}

// tell reports to the check what has changed.
func (m *messenger) tell() {
	now := m.text()
	changed := now != m.state.Told
	switch {
	case m.busy || m.done() || m.mute():
		return
	case m.Now().Before(m.next):
		m.WakeAt(m.next, "tell the check again")
		return
	case m.urgent, m.state.Progress.Ended:
	case changed:
		if due := m.state.ToldAt.Add(pace); m.Now().Before(due) {
			m.WakeAt(due, "tell the check what has changed")
			return
		}
	default:
		if due := m.state.ToldAt.Add(sayAgain); m.Now().Before(due) {
			m.WakeAt(due, "tell the check that it goes on")
			return
		}
	}
	m.send(now)
}

// mute tells that nothing has come of it yet: that it has begun the check knows, and asks where it hears no more.
func (m *messenger) mute() bool {
	p := &m.state.Progress
	return m.state.ToldAt.IsZero() && !m.urgent && !m.in.Resume && len(p.Steps) == 0 && p.Failure == "" && p.Waiting == "" && !p.Ended
}

func (m *messenger) text() string {
	text, _ := json.Marshal(m.state.Progress) // of texts, numbers and times
	return string(text)
}

func (m *messenger) send(text string) {
	m.busy, m.urgent = true, false
	final := m.state.Progress.Ended
	m.state.Told, m.state.ToldAt = text, m.Now()
	said := m.state.Progress
	said.Steps = slices.Clone(said.Steps)
	future := workflow.SignalExternalWorkflow(m.Ctx, api.HealthCheckID(m.cluster, m.identity.check), "", api.SignalRemediationProgress, said)
	m.Does("tell the check", future, func(f workflow.Future) {
		m.busy = false
		err := f.Get(m.Ctx, nil)
		if err == nil {
			m.failures, m.state.Orphaned = 0, time.Time{}
			m.said = m.said || final
			return
		}
		m.state.Told = ""
		m.next = m.Now().Add(loop.Backoff(m.failures))
		m.failures++
		var nobody *temporal.UnknownExternalWorkflowExecutionError
		if errors.As(err, &nobody) {
			if m.state.Orphaned.IsZero() {
				m.state.Orphaned = m.Now()
			}
			m.said = m.said || final // there is nobody to say it to
			return
		}
		m.note("the check could not be told", call.Cause(err))
	})
}

// done tells that the end was told, or that nobody hears it.
func (m *messenger) done() bool {
	return m.state.Progress.Ended && (m.said || m.failures >= lastWords)
}

// alone tells that the check has not run for so long that the remediation decides by itself.
func (c *core) alone() bool {
	return !c.state.Orphaned.IsZero() && c.Now().Sub(c.state.Orphaned) >= orphanedFor
}
