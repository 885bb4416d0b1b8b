// Package maintenance is the workflow of one node maintenance, from the request for a slot to the release of the node.
//
// A run is made of parts, each with its own state and file. A part takes the core (identity, journal, stop, freeze,
// clock, announcer) and knows no other part; what needs several of them stands in this file and in release.go.
package maintenance

import (
	"errors"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/notices"
	"drydock/rules/validation"
	"drydock/workflows/handover"
	"drydock/workflows/inbox"
	"drydock/workflows/maintenance/outofservice"
	"drydock/workflows/maintenance/target"
	"drydock/workflows/maintenance/work"
	"drydock/workflows/meter"
	"drydock/workflows/reset"
)

// core is what every part of a maintenance takes.
type core struct {
	*identity
	journal   *journal
	stop      *stop
	freeze    *freeze
	clock     *clock
	leave     *leave
	announcer *announcer
	inquiries *inquiries
}

// maintenance is one run of NodeMaintenance.
type maintenance struct {
	core
	approval    *approval
	preflighter *preflighter
	slot        *slot
	hold        *hold
	drainer     *drainer
	exceptions  *exceptions
	hooks       *hooks
	requestors  *requestors
	// outOfService has pods and volumes leave a node that is off.
	outOfService *outofservice.OutOfService
	validator    *validator
	outbox       *outbox
	reporter     *reporter
	target       *target.Target
	procedure
}

// NodeMaintenance takes one node out of service, holds it for its requestors and brings it back. Its input is the
// JSON of spec.Maintenance. It is addressed by api.MaintenanceID; a run under another ID starts that one and returns.
// Carried is what a run hands to the next (see state); nobody else has a say in it.
func NodeMaintenance(root workflow.Context, input, carried converter.RawValue) (result api.Result, err error) {
	var m *maintenance
	err = reset.Run(root, func(ctx workflow.Context) (string, error) { return m.confirm(ctx) }, func(ctx workflow.Context) error {
		m = newMaintenance(ctx)
		result, err = m.maintain(ctx, input, carried)
		return err
	})
	return result, err
}

// maintain is the maintenance of a run, whose input is that of the first run, and the state of the run before it.
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
	m.open()
	err = m.run()
	if errors.Is(err, errContinue) {
		return api.Result{}, m.continueAsNew(root, input)
	}
	if err != nil {
		return api.Result{}, err
	}
	return m.result()
}

// run is the maintenance from beginning to end, or from where the run before this one left it.
func (m *maintenance) run() error {
	if m.end == nil {
		err := m.goOn(m.steps())
		if errors.Is(err, errContinue) {
			return err
		}
		releaser{m}.beginEnd(endingOf(err))
	}
	// Whatever happened, the node and the slot go back, on a context that no cancellation reaches.
	if err := (releaser{m}).bringBack(); err != nil {
		return err
	}
	m.outbox.flush()
	releaser{m}.keepRecord()
	m.target.Close()
	return nil
}

// beforeSlot are the steps in which a maintenance waits for its time, or for somebody's word.
var beforeSlot = []string{"begin", "approval", "preflight", "notice"}

// steps are the life of a maintenance as its states have it (maintenance-operator, state diagram; PIKA, approach).
func (m *maintenance) steps() []step {
	return []step{
		{"begin", m.begin},
		{"approval", m.approval.awaitApproval},
		{"preflight", m.preflighter.preflight},
		{"notice", m.approval.awaitNotice},
		{"target", m.target.AwaitFirst},
		{stepRestart, releaser{m}.restart},
		{"backOff", releaser{m}.backOff},
		{"slot", m.slot.acquire},
		{"beforeCordon", m.hooks.beforeCordon},
		{"cordon", m.hold.cordon},
		{"waitForPods", m.drainer.waitForPods},
		{stepCordoned, m.target.HoldCordoned},
		{"drain", m.drainer.drain},
		{"afterDrain", m.hooks.afterDrain},
		{"ready", m.requestors.holdForRequestors},
		{"outOfService", m.outOfService.Move},
		{"validation", m.validate},
		{"beforeRelease", releaser{m}.beforeRelease},
	}
}

func (m *maintenance) begin() error {
	meter.Started.Count(m.clock.life, "")
	m.journal.tell(notices.MaintenanceUnknown, "")
	return m.stop.decided()
}

func newMaintenance(root workflow.Context) *maintenance {
	life, _ := workflow.NewDisconnectedContext(root)
	i := identityOf(root)
	c := core{identity: i, journal: newJournal(life, i), clock: &clock{life: life}, leave: &leave{life: life}}
	c.stop = newStop(i, c.clock)
	c.freeze = &freeze{journal: c.journal, stop: c.stop, clock: c.clock}
	c.announcer = &announcer{identity: i, journal: c.journal, stop: c.stop, clock: c.clock}
	c.inquiries = &inquiries{identity: i, journal: c.journal, stop: c.stop, clock: c.clock}
	m := &maintenance{
		core: c, approval: &approval{core: c}, preflighter: &preflighter{core: c}, slot: &slot{core: c}, hold: &hold{core: c},
		hooks: &hooks{core: c}, requestors: &requestors{core: c, work: newWork(c)}, validator: &validator{core: c},
		outbox: &outbox{identity: i, journal: c.journal, clock: c.clock},
	}
	m.exceptions = &exceptions{core: c}
	m.target = newTarget(m)
	m.requestors.target = m.target
	m.outOfService = newOutOfService(m)
	m.requestors.handed = m.outOfService.Begin
	m.drainer = &drainer{core: c, node: m.hold, exceptions: m.exceptions, target: m.target}
	m.validator.drainPlan = m.drainer.plan
	m.exceptions.tryAgain = func() { m.drainer.retryNow = true }
	m.hold.slot, m.freeze.slot = m.slot.named, m.slot.named
	m.journal.inform = m.outbox.inform
	m.reporter = &reporter{core: c, undecided: m.validator.undecided}
	m.leave.idle = []func() bool{m.reporter.idle, m.hold.idle, m.hooks.idle, m.requestors.work.Idle, m.outbox.idle, m.inquiries.idle, m.target.Idle}
	return m
}

// newWork is what the worker does for the requestor. Only a maintenance that names work comes to it, and no worker that
// did not know work has taken one: there is no history without it to go on with.
func newWork(c core) *work.Work {
	return &work.Work{Host: work.Host{
		Life: c.clock.life, Plan: func() *validation.Work { return c.prepared.Work }, Subject: c.subject,
		Change: c.journal.change, Note: c.journal.note, Waiting: c.journal.waiting, AwaitUpTo: c.clock.awaitUpTo,
	}}
}

// newTarget is how far the plans that share the maintenance want it to go. A maintenance of its own comes to none of it.
func newTarget(m *maintenance) *target.Target {
	return &target.Target{Host: target.Host{
		Lockstep: func() string { return api.LockstepID(m.cluster) },
		Shared:   func() bool { return m.spec.Lockstep },
		Status:   m.journal.status,
		Ends: func() bool {
			return m.stop.refuse() != nil || m.journal.ending() != nil || m.journal.phase() == api.Validating
		},
		ThisRun: m.thisRun,
		Refused: func(why error) {
			m.journal.received(api.SignalTarget, api.Message{}, api.Ignored, ignored+why.Error())
		},
		Change:  m.journal.change,
		Enter:   func(phase api.Phase) { m.journal.enter(phase, "") },
		Waiting: m.journal.waiting,
		Show:    func() { m.announcer.showPhase(); m.announcer.showConditions() },
		Follow:  m.requestors.show,
		Join:    m.slot.join,
		Life:    m.clock.life,
		Await: func(condition func() bool) error {
			if err := m.stop.await(func() bool { return condition() || m.leave.due() }); err != nil || condition() {
				return err
			}
			return errContinue
		},
		AwaitUpTo: m.clock.awaitUpTo,
	}}
}

func (m *maintenance) validate() error { return m.validator.validate(m.hold.BootID) }

// step is one part of the procedure.
type step struct {
	name string
	take func() error
}

// stepRestart is where a maintenance goes on that begins again with the slot, stepCordoned where one does that plans share
// and whose node they drain further.
const (
	stepRestart  = "restart"
	stepCordoned = "cordoned"
)

// procedure is where a maintenance is in its steps. A run goes on where the run before it was.
type procedure struct {
	// at is the step that it has come to, restarting why it begins again with the slot.
	at         string
	restarting error
	// end is how it ends, once that is decided.
	end *ending
	// unknown is what a newer release handed over.
	unknown handover.Unknown
}

// goOn takes the steps from where it is. A node that was given back, or whose slot was lost, is begun again with the slot.
func (p *procedure) goOn(steps []step) error {
	for {
		err := p.take(steps)
		switch {
		case errors.Is(err, errRaised):
			p.at = stepCordoned
		case errors.Is(err, errGivenBack), errors.Is(err, errSlotLost):
			p.at, p.restarting = stepRestart, err
		default:
			return err
		}
	}
}

func (p *procedure) take(steps []step) error {
	reached := p.at == ""
	for _, s := range steps {
		if reached = reached || s.name == p.at; !reached {
			continue
		}
		p.at = s.name
		if err := s.take(); err != nil {
			return err
		}
	}
	return nil
}
