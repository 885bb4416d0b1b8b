package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// PlansRequestor is the requestor of the maintenances that plans of strategy allAtOnce share, and of no others.
const PlansRequestor = "plans"

// Reserved refuses the name of those who share maintenances to a maintenance of one's own.
func (m Maintenance) Reserved() error {
	if m.Requestor == PlansRequestor && !m.Lockstep {
		return fmt.Errorf("requestor: %q is that of the maintenances which plans share (lockstep): choose another name", PlansRequestor)
	}
	return nil
}

// validateShared refuses what plans cannot share, or what has no meaning where they say which pods leave when.
func (m Maintenance) validateShared(p *problems) {
	refuse := func(given bool, field, why string) {
		if given {
			p.add(field, why)
		}
	}
	refuse(m.Requestor != PlansRequestor, "requestor", fmt.Sprintf("%q: a maintenance with lockstep has the requestor %q", m.Requestor, PlansRequestor))
	refuse(!m.Cordon, "cordon", "false: plans that share a maintenance hold its node cordoned; leave it out")
	refuse(m.WaitForPodCompletion != nil, "waitForPodCompletion",
		"plans that share a maintenance say which pods leave when: leave it out, and give those pods a later tier in the plan's drainPlan")
	refuse(m.Preflight == PreflightWait || m.Preflight == PreflightFail, "preflight",
		m.Preflight+": it is not known beforehand how far plans drain a node that they share: leave it out, and look at the plan's dry run")
	refuse(m.Drain.Mode == ModeExternal || m.Drain.Mode == ModeNone, "drain.mode",
		fmt.Sprintf("%s: a maintenance that plans share is drained up to one tier after the other: use %s or %s", m.Drain.Mode, ModeEvict, ModeWait))
	refuse(m.Drain.Plan != nil, "drain.plan", "the tiers of a maintenance that plans share are theirs: leave it out, and use the plan's drainPlan")
	refuse(len(m.Hooks.AfterDrain) > 0, "hooks.afterDrain",
		"plans that share a maintenance drain its node several times: leave it out, and use hooks.beforeRelease or the plan's own progress")
	refuse(m.Work != "", "work", "its end would end the maintenance for all plans that share it: leave it out, and do the work before the plan is completed")
	for i, rung := range m.Drain.Escalation {
		refuse(rung.Do == GiveBack, fmt.Sprintf("drain.escalation[%d].do", i), noGiveBack)
	}
	refuse(m.SLA != nil && m.SLA.Do == GiveBack, "sla.do", noGiveBack)
}

const noGiveBack = "giveBack: what plans drain together is not given back by one node alone: use notify, bypassBudget, kill or fail"

// RungFits refuses a rung that has no meaning in the maintenance.
func (m Maintenance) RungFits(rung string) error {
	if m.Lockstep && rung == GiveBack {
		return errors.New("do: " + noGiveBack)
	}
	return RungFits(rung, m.Drain.Mode)
}

// sharedDefaults are the defaults of a maintenance that plans share: what has no meaning there is left out. The rung
// giveBack only notifies.
func sharedDefaults(defaults []byte) ([]byte, error) {
	var m Maintenance
	if err := DecodeStrict(defaults, &m); err != nil {
		return nil, err
	}
	m.Requestor, m.Cordon, m.Preflight = PlansRequestor, true, PreflightOff
	m.WaitForPodCompletion, m.Work, m.Hooks.AfterDrain, m.Drain.Plan = nil, "", nil, nil
	if m.Drain.Mode == ModeExternal || m.Drain.Mode == ModeNone {
		m.Drain.Mode = ModeEvict
	}
	m.Drain.Escalation = slices.Clone(m.Drain.Escalation)
	for i, rung := range m.Drain.Escalation {
		if rung.Do == GiveBack {
			m.Drain.Escalation[i].Do = Notify
		}
	}
	if m.SLA != nil && m.SLA.Do == GiveBack {
		m.SLA.Do = ""
	}
	return json.Marshal(m)
}
