// Package maintenance is the workflow of one node maintenance, from the request for a slot to the release of the node.
//
// A run is made of parts, each with its own state and files. A part has the core (identity, journal, control, admission, slot, hold),
// and a field for each other part that it uses. The steps are in this file, and what gives a node back is in release.go.
package maintenance

import (
	"errors"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/workflows/handover"
	"drydock.dev/drydock/workflows/inbox"
	"drydock.dev/drydock/workflows/meter"
	"drydock.dev/drydock/workflows/reset"
)

type core struct {
	*identity
	journal   *journal
	control   *control
	admission *admission
	slot      *slot
	hold      *hold
}

// maintenance is one run of NodeMaintenance.
type maintenance struct {
	*core
	drainer    *drainer
	hooks      *hooks
	requestors *requestors
	plans      *plans
	validator  *validator
	outbox     *outbox
	state      *state
	// unknown are the fields of the state that only a newer release knows.
	unknown handover.Unknown
}

// NodeMaintenance takes one node out of service, holds it for its requestors and brings it back. Its input is the
// JSON of spec.Maintenance. Its ID is api.MaintenanceID; a run under another ID starts that one and returns.
// Carried is the state of the run before (see state); it is refused from anybody else.
func NodeMaintenance(root workflow.Context, input, carried converter.RawValue) (result api.Result, err error) {
	var m *maintenance
	err = reset.Run(root, func(ctx workflow.Context) (string, error) { return m.confirm(ctx) }, func(ctx workflow.Context) error {
		m = newMaintenance(ctx)
		result, err = m.maintain(ctx, input, carried)
		return err
	})
	return result, err
}

func (m *maintenance) maintain(root workflow.Context, input, carried converter.RawValue) (api.Result, error) {
	continued, err := m.restore(root, carried)
	if err != nil {
		return api.Result{}, err
	}
	if err := m.listen(root); err != nil {
		return api.Result{}, err
	}
	if !continued {
		if err := m.setUp(inbox.Payload(input)); err != nil {
			return api.Result{}, err
		}
		if id := api.MaintenanceID(m.cluster, m.spec.Node, m.spec.Requestor); id != m.workflowID {
			return m.startCanonical(id)
		}
		m.register()
	}
	workflow.GoNamed(m.control.life, "guard", m.hold.guard)
	m.outbox.open()
	m.plans.open()
	err = m.run()
	if errors.Is(err, errContinue) {
		return api.Result{}, m.continueAsNew(root, input)
	}
	if err != nil {
		return api.Result{}, err
	}
	return m.result()
}

// run carries the maintenance to its end, from the beginning or from where the run before this one left it.
func (m *maintenance) run() error {
	if m.state.End == nil {
		err := m.takeSteps()
		if errors.Is(err, errContinue) {
			return err
		}
		m.beginEnd(err)
	}
	if err := m.bringBack(); err != nil {
		return err
	}
	m.control.awaitAlways(m.outbox.idle)
	m.keepRecord()
	m.plans.close()
	return nil
}

// beforeSlot are the steps in which a maintenance waits for its time, or for an approval.
var beforeSlot = []string{"begin", "approval", "preflight", "notice"}

// steps are those of a maintenance, in their order (maintenance-operator, state diagram; PIKA, approach).
func (m *maintenance) steps() []step {
	return []step{
		{"begin", m.begin},
		{"approval", m.admission.awaitApproval},
		{"preflight", m.admission.preflight},
		{"notice", m.admission.awaitNotice},
		{"target", m.plans.awaitFirst},
		{stepRestart, m.restart},
		{"backOff", m.backOff},
		{"slot", m.slot.acquire},
		{"beforeCordon", m.beforeCordon},
		{"cordon", m.hold.cordon},
		{"waitForPods", m.drainer.waitForPods},
		{stepCordoned, m.plans.holdCordoned},
		{"drain", m.drainer.drain},
		{"afterDrain", func() error { return m.hooks.step(hookAfterDrain, m.spec.Hooks.AfterDrain) }},
		{"ready", m.requestors.holdForRequestors},
		{"outOfService", func() error { return m.hold.takeOutOfService(m.requestors.work.Succeeded) }},
		{"validation", func() error { return m.validator.validate(m.drainer.plan()) }},
		{"beforeRelease", m.beforeRelease},
	}
}

func (m *maintenance) begin() error {
	meter.Started.Count(m.control.life, "")
	m.journal.announce(notices.MaintenanceUnknown, "")
	return m.control.decided()
}

func newMaintenance(root workflow.Context) *maintenance {
	life, _ := workflow.NewDisconnectedContext(root)
	s := &state{}
	c := &core{identity: identityOf(root, s)}
	o := &outbox{core: c, started: map[string]string{}, reporterState: &s.Reports}
	c.journal, c.control = newJournal(life, c.identity, s, o), &control{core: c, life: life, freezeState: &s.Freeze}
	c.admission, c.slot = &admission{core: c}, &slot{core: c, slotState: &s.Slot}
	c.hold = &hold{core: c, holdState: &s.Hold, shownState: &s.Announced, outOfServiceState: &s.OutOfService}
	p, v := &plans{core: c, targetState: &s.Target}, &validator{core: c, validatorState: &s.Validation}
	r := &requestors{core: c, work: &work{core: c, workState: &s.Work}, plans: p}
	p.requestors, p.validator = r, v
	m := &maintenance{
		core: c, state: s, drainer: &drainer{core: c, plans: p, drainState: &s.Drain}, hooks: &hooks{core: c, hooksState: &s.Hooks},
		requestors: r, plans: p, validator: v, outbox: o,
	}
	c.control.run = m
	c.control.begin()
	return m
}

// beforeCordon calls the hooks before the cordon, once it is known that Temporal was not restored to a state before the node's release.
func (m *maintenance) beforeCordon() error {
	if len(m.spec.Hooks.BeforeCordon) > 0 && changed(m.control.steps, changeCheckReleases) {
		if err := m.hold.checkReleases(); err != nil {
			return m.control.stepFailed(err)
		}
	}
	return m.hooks.step(hookBeforeCordon, m.spec.Hooks.BeforeCordon)
}

// idle reports whether a new run would lose nothing.
func (m *maintenance) idle() bool {
	return m.plans.idle() && m.hold.idle() && m.hooks.idle() && m.requestors.work.idle() && m.outbox.idle() && m.admission.idle()
}

type step struct {
	name string
	take func() error
}

// A maintenance that begins again with the slot goes on at stepRestart, one whose plans drain the node further at stepCordoned.
const (
	stepRestart  = "restart"
	stepCordoned = "cordoned"
)

// takeSteps takes the steps from where the maintenance is. One whose node was given back, or whose slot was lost, begins again with the
// slot.
func (m *maintenance) takeSteps() error {
	for {
		err := m.takeStepsOnce()
		switch {
		case errors.Is(err, errRaised):
			m.state.At = stepCordoned
		case errors.Is(err, errGivenBack):
			m.state.At, m.state.Restarting = stepRestart, givenBack
		case errors.Is(err, errSlotLost):
			m.state.At, m.state.Restarting = stepRestart, lostSlot
		default:
			return err
		}
	}
}

func (m *maintenance) takeStepsOnce() error {
	reached := m.state.At == ""
	for _, s := range m.steps() {
		if reached = reached || s.name == m.state.At; !reached {
			continue
		}
		m.state.At = s.name
		if err := s.take(); err != nil {
			return err
		}
	}
	return nil
}
