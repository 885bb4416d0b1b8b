package maintenance

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/delivery"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/workflows/call"
)

// outbox starts a workflow for each channel, and signals it new events. Those workflows read the events here and outlive the maintenance:
// a dead channel never delays a node. It also has the bridge show the maintenance, where an object asked for it (mirror.go), and signals the
// workflow that the maintenance reports to (reporter.go).
type outbox struct {
	*core
	channels []*channel
	// started are the IDs of the workflows of channels, by channel, which this run or one before it started.
	started map[string]string
	// shown is what the bridge was called for last, calling is set while it is being called.
	shown   mirrored
	calling bool
	*reporterState
	reporting bool
}

type channel struct {
	notices.Channel
	// news are the events that its workflow does not know yet.
	news []notices.Event
}

// open starts a coroutine for each channel that wants events of this maintenance, and one for the object that asked for it.
func (o *outbox) open() {
	if o.spec.Object != nil {
		workflow.GoNamed(o.control.life, "mirror", o.mirror)
	}
	workflow.GoNamed(o.control.life, "report", o.report)
	o.journal.change(func(s *api.Status) { s.Groups = o.prepared.Groups })
	for _, known := range o.prepared.Channels {
		whom := known.Filter
		whom.Events = nil
		if !whom.Wants(o.journal.eventOf(api.LifecycleState{})) {
			continue
		}
		c := &channel{Channel: known}
		o.channels = append(o.channels, c)
		o.journal.change(func(s *api.Status) {
			if !slices.Contains(s.Tells, known.Name) {
				s.Tells = append(s.Tells, known.Name)
			}
		})
		workflow.GoNamed(o.control.life, "channel "+known.Name, func(ctx workflow.Context) { o.feed(ctx, c) })
	}
}

// put adds an event for every channel. A channel's workflow is started with the first event that the channel wants.
func (o *outbox) put(e notices.Event) {
	for _, c := range o.channels {
		if o.started[c.Name] != "" || len(c.news) > 0 || c.Filter.Wants(e) {
			c.news = append(c.news, e)
		}
	}
}

// feed signals a channel's workflow, once for all new events.
func (o *outbox) feed(ctx workflow.Context, c *channel) {
	for workflow.Await(ctx, func() bool { return len(c.news) > 0 }) == nil {
		news := c.news
		err := o.signal(ctx, c, news[len(news)-1])
		if err != nil {
			workflow.GetLogger(ctx).Warn("a channel did not get its events", "channel", c.Name, "events", len(news), "error", err)
		}
		for _, e := range news {
			o.note(c, e, err)
		}
		c.news = c.news[len(news):]
	}
}

// note records which event a channel's workflow is to read; that workflow records the delivery.
func (o *outbox) note(c *channel, e notices.Event, err error) {
	if !c.Filter.Wants(e) {
		return
	}
	record := api.ChannelEvent{At: o.control.now(), Channel: c.Name, Event: e.ID, State: e.State, Outcome: api.HandedOver}
	if err != nil {
		record.Outcome = bounds.Cut("not handed over: "+call.Cause(err), bounds.Text)
	}
	o.journal.change(func(s *api.Status) { s.Channels = bounded(s.Channels, record) })
}

// signal starts or signals a channel's workflow, which reads the events up to the latest.
func (o *outbox) signal(ctx workflow.Context, c *channel, latest notices.Event) error {
	if id := o.started[c.Name]; id != "" {
		return workflow.SignalExternalWorkflow(ctx, id, "", api.SignalEvent, api.Moment{Sequence: latest.Sequence, At: latest.At}).Get(ctx, nil)
	}
	id, err := o.start(ctx, api.NotificationID(o.cluster, c.Name, o.spec.Node, o.spec.Requestor, o.runID), successor{
		kind: api.NotificationType, summary: fmt.Sprintf("tells %s of the %s", c.Name, o.summary()),
		input: api.NotificationInput{Channel: c.Name, Maintenance: new(o.reference())},
	})
	if err == nil {
		o.started[c.Name] = id
	}
	return err
}

func (o *outbox) idle() bool {
	return !o.calling && !o.isBehind() && !o.reporting && !o.reportDue() && !slices.ContainsFunc(o.channels, func(c *channel) bool { return len(c.news) > 0 })
}

func (i *identity) reference() api.Reference {
	return api.Reference{WorkflowID: i.workflowID, RunID: i.runID}
}

type successor struct {
	kind, summary string
	input         any
}

// kindOf is the search attribute of each type of successor.
var kindOf = map[string]string{api.NotificationType: api.KindNotification, api.AuditRecordType: api.KindRecord}

const (
	// maxIDs bounds the workflow IDs that are tried for a successor, askWithin the time to find out which workflow has one.
	maxIDs    = 5
	askWithin = 30 * time.Second
)

// start starts a successor and returns its ID. Where another workflow has that ID, it tries further ones. A workflow that does the same, because
// somebody or a run before a reset started it, is used as it is.
func (o *outbox) start(ctx workflow.Context, id string, s successor) (string, error) {
	var err error
	for n := 1; n <= maxIDs; n++ {
		at := api.FurtherID(id, n)
		as := call.Child(at, s.summary)
		if o.prepared.SearchAttributes && o.prepared.Kinds {
			as.TypedSearchAttributes = temporal.NewSearchAttributes(api.AttributeKind.ValueSet(kindOf[s.kind]))
		}
		child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, as), s.kind, s.input)
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

// isSame reports whether the workflow with an ID does what the successor is to do. Without an answer in time it returns false:
// a message or a record twice does less harm than none.
func (o *outbox) isSame(ctx workflow.Context, id string, s successor) (same bool, err error) {
	in := delivery.SameInput{WorkflowID: id, WorkflowType: s.kind, Maintenance: o.reference()}
	if n, ok := s.input.(api.NotificationInput); ok {
		in.Channel = n.Channel
	}
	asking := call.Within(call.Quick(ctx, "what has taken "+id), askWithin)
	return run[bool](asking, call.Deliveries.Same, in)
}

// noteOccupied shows in the status why a successor does not have its own ID.
func (o *outbox) noteOccupied(what string) {
	workflow.GetLogger(o.control.life).Error("a workflow that outlives the maintenance has not its own ID", "why", what)
	o.journal.change(func(s *api.Status) { s.Occupied = bounded(s.Occupied, bounds.Cut(what, bounds.Text)) })
}
