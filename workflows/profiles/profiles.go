// Package profiles is the workflow that decides for a cluster by the profiles of its nodes: it has one activity evaluate all nodes,
// and begins the transitions and notifications that are due.
package profiles

import (
	"go.temporal.io/sdk/workflow"

	activity "drydock/activities/profile"
	"drydock/api"
	"drydock/workflows/call"
	"drydock/workflows/inbox"
	"drydock/workflows/loop"
	"drydock/workflows/reset"
)

// profiles is one run of Profiles. It is made of parts, which share the core.
type profiles struct {
	*core
	ledger  *ledger
	lookout *lookout
	post    *post
}

// core is what all parts share.
type core struct {
	*loop.Loop
	cluster string
	state   state
	// changed has the nodes be evaluated anew.
	changed func()
}

// state is all that a run hands to the next.
type state struct {
	loop.Carried
	// Run is the run that decides, Known that it knows which transitions run.
	Run   string `json:"run,omitempty"`
	Known bool   `json:"known,omitempty"`
	// UnderWay are transitions until the nodes show their ends, Failed those that were not carried out, Sending notifications,
	// Leaving maintenances that were told to end.
	UnderWay []activity.UnderWay `json:"underWay,omitempty"`
	Failed   []failed            `json:"failed,omitempty"`
	Sending  []activity.Notice   `json:"sending,omitempty"`
	Leaving  []activity.Left     `json:"leaving,omitempty"`
	// Problem says why the file is not in force as it stands, Absent that no worker has one.
	Problem string `json:"problem,omitempty"`
}

// failed is a transition that was not carried out so many times in a row.
type failed struct {
	activity.Failed
	InARow int `json:"inARow"`
}

// Profiles decides for a cluster. There is one, under api.ProfilesID, which workers that have profiles start; it ends when a worker
// has none. Packed is what a run hands to the next.
func Profiles(ctx workflow.Context, packed []byte) error {
	cluster, err := inbox.Only(ctx, "the profiles", api.ProfilesID)
	if err != nil {
		return err
	}
	// What is under way is seen to its end, also where somebody cancels this.
	life, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	c := &core{Loop: &loop.Loop{Ctx: life, Dirty: true}, cluster: cluster}
	p := assemble(c)
	if err := inbox.Carried(ctx, packed, func(data []byte) error { return api.Unpack(data, &c.state) }, c.note); err != nil {
		return err
	}
	c.ContinueAfter = c.state.ContinueAfter
	if err := p.listen(); err != nil {
		return err
	}
	return reset.Run(ctx, p.wasReset, func(root workflow.Context) error {
		c.Ctx, _ = workflow.NewDisconnectedContext(root)
		return p.run(root)
	})
}

// assemble puts the parts together.
func assemble(c *core) *profiles {
	p := &profiles{core: c, ledger: &ledger{core: c}, lookout: &lookout{core: c}, post: &post{core: c}}
	p.lookout.ledger, p.lookout.post = p.ledger, p.post
	c.changed = p.lookout.anew
	return p
}

// listen takes queries, and no message: nobody but the nodes has anything to say.
func (p *profiles) listen() error {
	in := inbox.New(p.Ctx, inbox.Ears{Arrived: p.Arrived, Refused: func(name string, _ api.Message, _ api.Outcome, why error) {
		p.note("ignored a signal "+name, why.Error())
	}})
	p.Unread = in.Unread
	in.Open(nil)
	return p.answer()
}

// run decides whenever something happened, until no worker has profiles. A cancellation ends it too: what is under way goes on.
func (p *profiles) run(root workflow.Context) error {
	cancelled := false
	workflow.GoNamed(root, "cancellation", func(ctx workflow.Context) {
		ctx.Done().Receive(ctx, nil)
		cancelled, p.Dirty = true, true
	})
	p.post.resume()
	for {
		p.Dirty = false
		switch {
		case cancelled:
			p.lookout.rest()
			return root.Err()
		case p.Leaving():
			p.lookout.rest()
			p.post.rest()
			if p.IsIdle() {
				return p.continueAsNew()
			}
		case p.step():
			p.lookout.rest()
			p.post.rest()
			p.describe()
			return nil
		}
		p.describe()
		if err := p.Await(); err != nil {
			return err
		}
	}
}

// step does what is to be done now, and tells whether it is all over.
func (p *profiles) step() (over bool) {
	if !p.ledger.know() {
		return false
	}
	p.lookout.keep()
	return p.lookout.absent && p.IsIdle()
}

func (p *profiles) continueAsNew() error {
	packed, err := api.Pack(p.state)
	if err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(p.Ctx, api.ProfilesType, packed)
}

// wasReset has what runs looked for anew: what was begun since is not in the history of this run.
func (p *profiles) wasReset(ctx workflow.Context) (runID string, err error) {
	p.note("looking for the transitions that run", "this run was reset: what was begun since is not in its history")
	p.state.Known = false
	p.lookout.rest()
	err = workflow.ExecuteActivity(call.Quick(ctx, "see which run this is"), call.Executions.ThisRun).Get(ctx, &runID)
	if err == nil {
		p.state.Run = runID
	}
	p.Dirty = true
	return runID, err
}

func (c *core) note(what, why string) { c.Note(&c.state.Carried, what, why) }

func (c *core) warn(what, why string) { c.Warn(&c.state.Carried, what, why) }
