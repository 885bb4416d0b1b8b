package maintenance

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/notices"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/inbox"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/reset"
	"errors"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"
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
}

// maintenance is one run of NodeMaintenance.
type maintenance struct {
	core
	approval    *approval
	preflighter *preflighter
	slot        *slot
	hold        *hold
	drainer     *drainer
	hooks       *hooks
	requestors  *requestors
	validator   *validator
	outbox      *outbox
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
	continued, err := m.restore(root, inbox.Payload(carried))
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
	return nil
}

// steps are the life of a maintenance as its states have it (maintenance-operator, state diagram; PIKA, approach).
func (m *maintenance) steps() []step {
	return []step{
		{"begin", m.begin},
		{"approval", m.approval.awaitApproval},
		{"preflight", m.preflighter.preflight},
		{"notice", m.approval.awaitNotice},
		{stepRestart, releaser{m}.restart},
		{"backOff", releaser{m}.backOff},
		{"slot", m.slot.acquire},
		{"beforeCordon", m.hooks.beforeCordon},
		{"cordon", m.hold.cordon},
		{"waitForPods", m.drainer.waitForPods},
		{"drain", m.drainer.drain},
		{"afterDrain", m.hooks.afterDrain},
		{"ready", m.requestors.holdForRequestors},
		{"validation", m.validate},
		{"beforeRelease", releaser{m}.beforeRelease},
	}
}

func (m *maintenance) begin() error {
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
	m := &maintenance{
		core: c, approval: &approval{core: c}, preflighter: &preflighter{core: c}, slot: &slot{core: c}, hold: &hold{core: c},
		hooks: &hooks{core: c}, requestors: &requestors{c}, validator: &validator{core: c},
		outbox: &outbox{identity: i, journal: c.journal, clock: c.clock},
	}
	m.drainer = &drainer{core: c, node: m.hold}
	m.hold.slot, m.freeze.slot = m.slot.named, m.slot.named
	m.journal.inform = m.outbox.inform
	m.leave.idle = []func() bool{m.hold.idle, m.hooks.idle, m.outbox.idle}
	return m
}

func (m *maintenance) validate() error { return m.validator.validate(m.hold.BootID) }
