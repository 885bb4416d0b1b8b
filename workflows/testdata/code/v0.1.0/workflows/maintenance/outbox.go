package maintenance

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/delivery"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/bounds"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/notices"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"fmt"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"slices"
	"time"
)

// outbox tells the channels' workflows that there is something new. They read here what it is and outlive the
// maintenance, so that a dead channel never delays a node.
type outbox struct {
	*identity
	journal  *journal
	clock    *clock
	channels []*channel
	// known are the channels' workflows that a run before this one started, by channel.
	known map[string]string
}

// channel is where a maintenance tells of itself.
type channel struct {
	notices.Channel
	id string
	// news are the events that its workflow was not told of yet; wanted, that the channel wants one of them.
	news    []notices.Event
	wanted  bool
	started bool
}

// open begins to tell the channels that want to hear of this maintenance at all.
func (o *outbox) open() {
	o.journal.change(func(s *api.Status) { s.Groups = o.prepared.Groups })
	for _, known := range o.prepared.Channels {
		whom := known.Filter
		whom.Events = nil
		if !whom.Wants(o.journal.eventOf(api.LifecycleState{})) {
			continue
		}
		c := &channel{Channel: known, id: api.NotificationID(o.cluster, known.Name, o.spec.Node, o.spec.Requestor, o.runID)}
		if id := o.known[known.Name]; id != "" {
			c.id, c.started = id, true
		}
		o.channels = append(o.channels, c)
		o.journal.change(func(s *api.Status) {
			if !slices.Contains(s.Tells, known.Name) { // otherwise a run before this one began to tell it
				s.Tells = append(s.Tells, known.Name)
			}
		})
		workflow.GoNamed(o.clock.life, "channel "+known.Name, func(ctx workflow.Context) { o.feed(ctx, c) })
	}
}

// inform takes an event for every channel. A channel's workflow begins with the first one that the channel wants.
func (o *outbox) inform(e notices.Event) {
	for _, c := range o.channels {
		if c.started || c.wanted || c.Filter.Wants(e) {
			c.news, c.wanted = append(c.news, e), true
		}
	}
}

// feed tells a channel's workflow of what is new, however much that is by then, at once.
func (o *outbox) feed(ctx workflow.Context, c *channel) {
	for {
		if err := workflow.Await(ctx, func() bool { return len(c.news) > 0 }); err != nil {
			return
		}
		news := c.news
		err := o.pass(ctx, c, news[len(news)-1])
		if err != nil {
			workflow.GetLogger(ctx).Warn("a channel was not told", "channel", c.Name, "events", len(news), "error", err)
		}
		for _, e := range news {
			o.note(c, e, err)
		}
		c.news, c.wanted = c.news[len(news):], len(c.news) > len(news)
	}
}

// note keeps account of what a channel's workflow was told to look for; what becomes of it is that one's to know.
func (o *outbox) note(c *channel, e notices.Event, err error) {
	if !c.Filter.Wants(e) {
		return
	}
	told := api.ChannelTold{At: o.clock.now(), Channel: c.Name, Event: e.ID, State: e.State, Outcome: api.HandedOver}
	if err != nil {
		told.Outcome = bounds.Cut("not handed over: "+call.Cause(err), bounds.Text)
	}
	o.journal.change(func(s *api.Status) { s.Channels = bounded(s.Channels, told) })
}

// pass tells the channel's workflow up to which event there is something to read.
func (o *outbox) pass(ctx workflow.Context, c *channel, latest notices.Event) error {
	if c.started {
		return workflow.SignalExternalWorkflow(ctx, c.id, "", api.SignalEvent, api.Moment{Sequence: latest.Sequence, At: latest.At}).Get(ctx, nil)
	}
	ref := o.reference()
	id, err := o.start(ctx, c.id, successor{
		kind: api.NotificationType, summary: fmt.Sprintf("tells %s of the %s", c.Name, o.summary()),
		input: api.NotificationInput{Channel: c.Name, Maintenance: &ref},
	})
	if err == nil {
		c.id, c.started = id, true
	}
	return err
}

// started are the channels' workflows that were started, by channel.
func (o *outbox) started() map[string]string {
	all := map[string]string{}
	for _, c := range o.channels {
		if c.started {
			all[c.Name] = c.id
		}
	}
	return all
}

// idle tells that the channels' workflows know all that there is to tell.
func (o *outbox) idle() bool {
	return !slices.ContainsFunc(o.channels, func(c *channel) bool { return len(c.news) > 0 })
}

// flush waits until the channels' workflows know all that there is to tell.
func (o *outbox) flush() {
	o.clock.await(o.idle)
}

// reference is how other workflows name this maintenance.
func (i *identity) reference() api.Reference {
	return api.Reference{WorkflowID: i.workflowID, RunID: i.runID}
}

// successor is a workflow that outlives the maintenance.
type successor struct {
	kind, summary string
	input         any
}

const (
	// maxIDs bounds the workflow IDs under which a successor is tried to be started, askWithin the time to find out what
	// has taken one.
	maxIDs    = 5
	askWithin = 30 * time.Second
)

// start starts a successor. Where something else has taken its ID, it is started under a further one; what does the same
// already, because it was started by hand or before a reset, is as good. It returns the ID.
func (o *outbox) start(ctx workflow.Context, id string, s successor) (string, error) {
	var err error
	for n := 1; n <= maxIDs; n++ {
		at := id
		if n > 1 {
			at = fmt.Sprintf("%s/%d", id, n)
		}
		child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, call.Child(at, s.summary)), s.kind, s.input)
		if err = child.GetChildWorkflowExecution().Get(ctx, nil); err == nil || !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
			return at, err
		}
		same, asked := o.isSame(ctx, at, s)
		if same {
			return at, nil
		}
		why := "it is taken by another workflow"
		if asked != nil {
			why = "it is taken, and by what is not known: " + call.Cause(asked)
		}
		o.noteOccupied(at + ": " + why)
	}
	return id, err
}

// isSame tells whether what has taken an ID is what is to be started. Where that cannot be found out in time, it is not:
// to be told, or recorded, twice does less harm than not at all.
func (o *outbox) isSame(ctx workflow.Context, id string, s successor) (same bool, err error) {
	in := delivery.SameInput{WorkflowID: id, WorkflowType: s.kind, Maintenance: o.reference()}
	if n, ok := s.input.(api.NotificationInput); ok {
		in.Channel = n.Channel
	}
	asking := call.Within(call.Quick(ctx, "what has taken "+id), askWithin)
	err = workflow.ExecuteActivity(asking, call.Deliveries.Same, in).Get(ctx, &same)
	return same, err
}

// noteOccupied says in the status what keeps a successor from its own ID.
func (o *outbox) noteOccupied(what string) {
	workflow.GetLogger(o.clock.life).Error("a workflow that outlives the maintenance has not its own ID", "why", what)
	o.journal.change(func(s *api.Status) { s.Occupied = bounded(s.Occupied, bounds.Cut(what, bounds.Text)) })
}
