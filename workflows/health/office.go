package health

import (
	"cmp"
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/health"
	"drydock/workflows/inbox"
)

// office takes the messages of people and scripts.
type office struct {
	*core
	// candidate is a spec that the worker has still to be asked about; judged counts those that were, refused says why the
	// latest was not taken.
	candidate *health.Spec
	asked     int
	judged    int
	refused   string
}

// maxNews bounds the signal of what was seen, in bytes.
const maxNews = 3 << 19

// listen takes every message from the first moment on.
func (c *check) listen(root workflow.Context) error {
	if err := c.answer(root); err != nil {
		return err
	}
	in := inbox.New(c.Ctx, inbox.Ears{
		Arrived: c.Arrived,
		Known:   c.state.Knows,
		Applied: func(name string, who api.Message, effect string) {
			c.Received(&c.state.Carried, name, who, api.Applied, effect)
		},
		Refused: func(name string, who api.Message, outcome api.Outcome, why error) {
			c.Received(&c.state.Carried, name, who, outcome, "ignored: "+why.Error())
		},
	})
	o := c.office
	if err := in.Take(
		inbox.On(api.MsgPause, o.checkPause, o.applyPause),
		inbox.On(api.MsgResume, o.checkResume, o.applyResume),
		inbox.On(api.MsgConfirm, o.checkConfirm, o.applyConfirm),
		inbox.On(api.MsgConfigure, o.checkConfigure, o.applyConfigure).Settled(o.settle),
		inbox.On(api.MsgRemove, o.checkRemove, o.applyRemove),
	); err != nil {
		return err
	}
	inbox.ReceiveUpTo(in, api.SignalHealthNews, maxNews, c.lookout.heard)
	inbox.Receive(in, api.SignalRemediationProgress, c.fleet.heard)
	c.Unread = in.Unread
	in.Open(nil)
	workflow.GoNamed(c.Ctx, "cancellation", func(ctx workflow.Context) {
		root.Done().Receive(ctx, nil)
		const name = "cancellation of the workflow"
		if err := o.checkRemove(api.HealthMessage{}); err != nil {
			c.Received(&c.state.Carried, name, api.Message{}, api.Ignored, "ignored: "+err.Error())
			return
		}
		c.Received(&c.state.Carried, name, api.Message{}, api.Applied, o.applyRemove(api.HealthMessage{}))
	})
	return nil
}

// open refuses messages to an earlier check of this name, or to one that ends.
func (o *office) open(run string) error {
	if run != "" && run != o.runID && run != workflow.GetInfo(o.Ctx).WorkflowExecution.RunID {
		return fmt.Errorf("it is meant for run %s, and this is run %s", run, o.runID)
	}
	if o.state.Removed {
		return errors.New("the check is ending")
	}
	return nil
}

func (o *office) checkPause(m api.HealthMessage) error {
	if err := o.open(m.Run); err != nil {
		return err
	}
	trial := o.state.Health
	return trial.Pause(m.By, m.Comment, o.Now())
}

func (o *office) applyPause(m api.HealthMessage) string {
	_ = o.state.Health.Pause(m.By, m.Comment, o.Now()) // it was checked
	return "paused: no remediation and no further step begins; what recovers is released"
}

func (o *office) checkResume(m api.ResumeHealth) error {
	if err := o.open(m.Run); err != nil {
		return err
	}
	if m.All && m.Of != "" {
		return errors.New("of: has no meaning with all")
	}
	switch {
	case !m.All:
		trial := o.state.Health
		return trial.Resume(cmp.Or(m.Of, m.By))
	case len(o.state.Health.Pauses) == 0:
		return errors.New("nobody has paused the check by a message: pauseRequests of its spec are changed by configure")
	}
	return nil
}

func (o *office) applyResume(m api.ResumeHealth) string {
	h := &o.state.Health
	if m.All {
		h.Pauses = nil
	} else {
		_ = h.Resume(cmp.Or(m.Of, m.By)) // it was checked
	}
	if left := len(h.Pauses) + len(o.state.Spec.PauseRequests); left > 0 {
		return fmt.Sprintf("withdrawn: the check stays paused by %d more", left)
	}
	return "resumed"
}

func (o *office) checkConfirm(m api.ConfirmHealthy) error {
	if err := o.open(m.Run); err != nil {
		return err
	}
	if m.Comment == "" {
		return errors.New("comment: required: say what was seen of the node")
	}
	trial := o.state.Health
	return trial.Confirm(m.Node, m.By)
}

func (o *office) applyConfirm(m api.ConfirmHealthy) string {
	_ = o.state.Health.Confirm(m.Node, m.By) // it was checked
	return "its remediation is removed"
}

func (o *office) checkConfigure(m api.ConfigureHealth) error {
	if err := o.open(m.Run); err != nil {
		return err
	}
	next, err := health.Decode(m.Spec)
	if err != nil {
		return err
	}
	if o.candidate != nil {
		return errors.New("another spec is being looked into: try again")
	}
	return o.checkEdit(next)
}

// checkEdit refuses what may not change while nodes are remediated.
func (o *office) checkEdit(next health.Spec) error {
	if !o.state.Health.Remediating() {
		return nil
	}
	return o.state.Spec.Locked(next)
}

func (o *office) applyConfigure(m api.ConfigureHealth) string {
	next, err := health.Decode(m.Spec)
	if err != nil {
		return "" // it was decoded a moment ago
	}
	o.candidate = &next
	o.asked++
	return "configured; it counts once the worker knows all that the spec names"
}

// settle has whoever configures the check hear whether the worker knows all that the spec names.
func (o *office) settle(ctx workflow.Context) error {
	asked := o.asked
	if err := workflow.Await(ctx, func() bool { return o.judged >= asked }); err != nil {
		return err
	}
	if o.refused != "" {
		return errors.New(o.refused)
	}
	return nil
}

// judge has the worker look into a spec, and takes it.
func (c *check) judge() {
	o := c.office
	if o.candidate == nil {
		return
	}
	next := *o.candidate
	prepared, err := c.resolve(c.Ctx, next)
	if err == nil {
		err = o.checkEdit(next)
	}
	if err == nil {
		c.state.Health.Reconfigured(c.state.Spec, next)
		prepared.Starter = c.state.Prepared.Starter
		c.state.Spec, c.state.Prepared = next, &prepared
		c.bulletin.reopen()
	}
	if o.refused = ""; err != nil {
		o.refused = "the spec is refused: " + err.Error()
		c.note("refused a spec", err.Error())
	}
	o.candidate = nil
	o.judged++
}

func (o *office) checkRemove(m api.HealthMessage) error {
	if err := o.open(m.Run); err != nil {
		return err
	}
	if o.state.Health.Remediating() {
		return errors.New("nodes are being remediated: pause the check and wait for them, or terminate it: its remediations then end by themselves")
	}
	if !o.state.Known {
		return errors.New("it is being found out which remediations run: try again")
	}
	return nil
}

func (o *office) applyRemove(api.HealthMessage) string {
	o.state.Removed = true
	return "removed: nothing is remediated any more"
}
