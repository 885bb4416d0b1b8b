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
	"drydock/workflows/inbox"
)

// core is what every part of a maintenance takes.
type core struct {
	*identity
	journal   *journal
	stop      *stop
	freeze    *freeze
	clock     *clock
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
}

// NodeMaintenance takes one node out of service, holds it for its requestors and brings it back. Its input is the
// JSON of spec.Maintenance. It is addressed by api.MaintenanceID; a run under another ID starts that one and returns.
func NodeMaintenance(root workflow.Context, input converter.RawValue) (api.Result, error) {
	m := newMaintenance(root)
	if err := m.listen(root); err != nil {
		return api.Result{}, err
	}
	if err := m.setUp(inbox.Payload(input)); err != nil {
		return api.Result{}, err
	}
	if id := api.MaintenanceID(m.cluster, m.spec.Node, m.spec.Requestor); id != m.workflowID {
		return m.startCanonical(id)
	}
	m.register()
	m.outbox.open()
	return m.run()
}

// run is the maintenance from beginning to end.
func (m *maintenance) run() (api.Result, error) {
	err := m.procedure()
	// Whatever happened, the node and the slot go back, on a context that no cancellation reaches.
	m.bringBack(err)
	m.outbox.flush()
	m.keepRecord()
	return m.result(err)
}

// procedure is the life of a maintenance as its states have it (maintenance-operator, state diagram; PIKA, approach).
func (m *maintenance) procedure() error {
	m.journal.tell(notices.MaintenanceUnknown, "")
	if err := inOrder(m.approval.awaitApproval, m.preflighter.preflight, m.approval.awaitNotice); err != nil {
		return err
	}
	for {
		err := inOrder(m.slot.acquire, m.hooks.beforeCordon, m.hold.cordon, m.drainer.waitForPods, m.drainer.drain, m.hooks.afterDrain)
		if err == nil {
			break
		}
		if !errors.Is(err, errGivenBack) {
			return err
		}
		if err := m.giveBack(); err != nil {
			return err
		}
	}
	return inOrder(m.requestors.holdForRequestors, m.validate, m.beforeRelease)
}

func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func newMaintenance(root workflow.Context) *maintenance {
	life, _ := workflow.NewDisconnectedContext(root)
	steps, end := workflow.WithCancel(life)
	i := identityOf(root)
	c := core{
		identity: i, journal: newJournal(life, i), clock: &clock{life: life},
		stop: &stop{identity: i, steps: steps, end: end},
	}
	c.freeze = &freeze{journal: c.journal, stop: c.stop, clock: c.clock}
	c.announcer = &announcer{identity: i, journal: c.journal, stop: c.stop, clock: c.clock}
	m := &maintenance{
		core: c, approval: &approval{core: c}, preflighter: &preflighter{core: c}, slot: &slot{core: c}, hold: &hold{core: c},
		hooks: &hooks{core: c}, requestors: &requestors{c}, validator: &validator{core: c},
		outbox: &outbox{identity: i, journal: c.journal, clock: c.clock},
	}
	m.drainer = &drainer{core: c, node: m.hold}
	m.journal.inform = m.outbox.inform
	return m
}

func (m *maintenance) validate() error { return m.validator.validate(m.hold.bootID) }
