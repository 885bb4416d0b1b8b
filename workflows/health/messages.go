package health

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/controller"
	"drydock.dev/drydock/workflows/meter"
)

var messages = []controller.Message[*check]{
	{Name: api.MsgPause, Payload: pause{}},
	{Name: api.MsgResume, Payload: resume{}},
	{Name: api.MsgConfirm, Payload: confirm{}},
	{Name: api.MsgConfigure, Payload: configure{}},
	{Name: api.MsgRemove, Payload: remove{}},
	{Name: api.SignalRemediationProgress, Payload: progress{}, FromWorkflows: true},
}

// accepts refuses messages to an earlier check of this name, or to one that ends.
func (c *check) accepts(run string) error {
	if run != "" && run != c.Info.Run && run != c.Info.Current {
		return fmt.Errorf("it is meant for run %s, and this is run %s", run, c.Info.Run)
	}
	if c.Removed {
		return errors.New("the check is ending")
	}
	return nil
}

// pause keeps anything new from beginning.
type pause struct{ api.HealthMessage }

func (m pause) Check(c *check, now time.Time) error {
	if err := c.accepts(m.Run); err != nil {
		return err
	}
	trial := c.Health
	return trial.Pause(m.By, m.Comment, now)
}

func (m pause) Apply(c *check, now time.Time) string {
	_ = c.Health.Pause(m.By, m.Comment, now) // it was checked
	return "paused: no remediation and no further step begins; what recovers is released"
}

type resume struct{ api.ResumeHealth }

func (m resume) Check(c *check, _ time.Time) error {
	if err := c.accepts(m.Run); err != nil {
		return err
	}
	if m.All && m.Of != "" {
		return errors.New("of: has no meaning with all")
	}
	switch {
	case !m.All:
		trial := c.Health
		return trial.Resume(cmp.Or(m.Of, m.By))
	case len(c.Health.Pauses) == 0:
		return errors.New("nobody has paused the check by a message: pauseRequests of its spec are changed by configure")
	}
	return nil
}

func (m resume) Apply(c *check, _ time.Time) string {
	h := &c.Health
	if m.All {
		h.Pauses = nil
	} else {
		_ = h.Resume(cmp.Or(m.Of, m.By)) // it was checked
	}
	if left := len(h.Pauses) + len(c.Spec.PauseRequests); left > 0 {
		return fmt.Sprintf("withdrawn: the check stays paused by %d more", left)
	}
	return "resumed"
}

type confirm struct{ api.ConfirmHealthy }

func (m confirm) Check(c *check, _ time.Time) error {
	if err := c.accepts(m.Run); err != nil {
		return err
	}
	if m.Comment == "" {
		return errors.New("comment: required: say what was seen of the node")
	}
	trial := c.Health
	return trial.Confirm(m.Node, m.By)
}

func (m confirm) Apply(c *check, _ time.Time) string {
	_ = c.Health.Confirm(m.Node, m.By) // it was checked
	return "its remediation is removed"
}

// configure replaces the spec, once the worker has judged it.
type configure struct{ api.ConfigureHealth }

func (m configure) Check(c *check, _ time.Time) error {
	if err := c.accepts(m.Run); err != nil {
		return err
	}
	next, err := health.Decode(m.Spec)
	if err != nil {
		return err
	}
	if c.Candidate != nil {
		return errors.New("another spec is being looked into: try again")
	}
	return c.checkEdit(next)
}

func (m configure) Apply(c *check, _ time.Time) string {
	if next, err := health.Decode(m.Spec); err == nil { // it was checked
		next.Object = c.given.Object // who asked for the check stays who did
		c.Candidate, c.Refused = &next, ""
	}
	return "configured; it counts once the worker knows all that the spec names"
}

// Settled implements controller.Settling: the answer to configure says whether the worker knows all that the spec names.
func (m configure) Settled(c *check) (done bool, err error) {
	if c.Candidate == nil && c.Refused != "" {
		err = errors.New(c.Refused)
	}
	return c.Candidate == nil, err
}

type remove struct{ api.HealthMessage }

func (m remove) Check(c *check, _ time.Time) error {
	if err := c.accepts(m.Run); err != nil {
		return err
	}
	if c.Health.Remediating() {
		return errors.New("nodes are being remediated: pause the check and wait for them, or terminate it: its remediations then end by themselves")
	}
	if !c.Known {
		return errors.New("it is being found out which remediations run: try again")
	}
	return nil
}

func (m remove) Apply(c *check, now time.Time) string {
	c.Removed, c.RemovedAt = true, now
	return "removed: nothing is remediated any more"
}

type progress struct{ api.RemediationProgress }

// maxRevision is more than anybody counts to, maxRunID bounds the ID of a run, in bytes.
const (
	maxRevision = 1 << 40
	maxRunID    = 100
)

func (m progress) Check(*check, time.Time) error {
	if err := spec.NodeName(m.Node); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	if m.RunID == "" || len(m.RunID) > maxRunID {
		return fmt.Errorf("runId: %.80q is not one", m.RunID)
	}
	if m.Revision < 0 || m.Revision > maxRevision {
		return fmt.Errorf("revision: %d is not one", m.Revision)
	}
	return nil
}

func (m progress) Apply(c *check, now time.Time) string {
	known := c.Children[m.Node]
	if known.Run != "" && known.Run != m.RunID {
		c.ignore(m, "it is run "+m.RunID+", and the present one is "+known.Run, now)
		return ""
	}
	c.Silent = slices.DeleteFunc(c.Silent, func(node string) bool { return node == m.Node })
	r := c.remediation(m.Node)
	if !c.Health.Report(m.RemediationProgress) {
		c.ignore(m, "it is over, or another runs: "+m.RunID, now)
		return ""
	}
	switch {
	case m.Ended:
		if r != nil {
			c.Took(meter.Remediations, "", now.Sub(r.BeganAt))
		}
		delete(c.Children, m.Node)
	case r == nil:
		c.ask(m.Node, now) // whether there is one at all is to be seen
	case known.Ask:
		known.Ask = false
		c.setChild(m.Node, known)
	}
	return ""
}

// ignore notes a report that does not count. Where it says that a remediation goes on, what runs is counted: that one was reset, or somebody
// has spoken in its name.
func (c *check) ignore(m progress, why string, now time.Time) {
	c.Note(now, "ignored what a remediation of "+m.Node+" says", why)
	c.Suspected = c.Suspected || !m.Ended
}
