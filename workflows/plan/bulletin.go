package plan

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities/delivery"
	"drydock/api"
	"drydock/notify"
	"drydock/rules/bounds"
	"drydock/rules/notices"
	"drydock/workflows/auditrecord"
	"drydock/workflows/call"
)

// bulletin keeps what happened to a plan, and tells the channels.
type bulletin struct {
	*core
	// telling counts messages that are under way.
	telling int
}

// maxEvents bounds the events that are kept, and keepEvents the first of them, which say how it began.
const (
	maxEvents  = 60
	keepEvents = 10
)

// noted is the state of an event that channels are not told of.
const noted notices.State = "PlanNote"

// note keeps something noteworthy that channels are not told of.
func (b *bulletin) note(message string) { b.keep(noted, message) }

func (b *bulletin) keep(state notices.State, message string) api.PlanEvent {
	sequence := 1
	if n := len(b.state.Events); n > 0 {
		sequence = b.state.Events[n-1].Sequence + 1
	}
	event := api.PlanEvent{Sequence: sequence, State: state, At: b.now(), Message: bounds.Cut(message, bounds.Text)}
	b.state.Events = append(b.state.Events, event)
	if len(b.state.Events) > maxEvents {
		b.state.Events = slices.Delete(b.state.Events, keepEvents, keepEvents+1)
	}
	return event
}

// tell keeps an event and tells the channels that want it. A dead channel delays nothing but the plan's own end.
func (b *bulletin) tell(state notices.State, message string) {
	kept := b.keep(state, message)
	event := notices.Event{
		ID: api.EventID(b.workflowID, b.runID, api.Moment{Sequence: kept.Sequence, At: kept.At}), Sequence: kept.Sequence,
		State: state, At: kept.At, Plan: b.name, Requestor: b.spec.Requestor, Owner: b.spec.Owner, Cluster: b.cluster,
		Reason: b.spec.Reason, Ticket: b.spec.Ticket, Phase: string(b.state.Phase), Message: kept.Message,
		WorkflowID: b.workflowID, RunID: b.runID,
	}
	for _, channel := range b.prepared.Channels {
		if channel.Filter.Wants(event) {
			b.deliver(channel, event)
		}
	}
}

// longestTell bounds how long a plan tries to tell a channel: it ends when all are told.
const longestTell = time.Hour

func (b *bulletin) deliver(channel notices.Channel, event notices.Event) {
	limit := min(channel.RetryFor.Std(), longestTell)
	ctx := call.Within(call.Quick(b.ctx, fmt.Sprintf("%s to %s", event.State, channel.Name)), limit)
	b.telling++
	sent := workflow.ExecuteActivity(call.In(ctx, api.LaneMessages), call.Deliveries.Deliver, delivery.DeliverInput{
		Channel: channel.Name, Events: []notices.Event{event}, Key: channel.Name + "/" + event.ID, Until: b.now().Add(limit),
	})
	workflow.GoNamed(b.ctx, "channel "+channel.Name, func(ctx workflow.Context) {
		var receipt notify.Receipt
		if err := sent.Get(ctx, &receipt); err != nil {
			b.note(fmt.Sprintf("channel %s was not told of %s: %s", channel.Name, event.State, call.Cause(err)))
		}
		b.telling--
		b.dirty = true
	})
}

// told tells that no channel waits for anything.
func (b *bulletin) told() bool { return b.telling == 0 }

// flush waits until all channels were told.
func (b *bulletin) flush() {
	_ = workflow.Await(b.ctx, b.told) // nothing cancels this context
}

// record has the plan's audit record kept, by a workflow that reads it from the plan and outlives that.
func (b *bulletin) record() {
	var attributes []temporal.SearchAttributeUpdate
	if b.prepared.Kinds {
		attributes = []temporal.SearchAttributeUpdate{api.AttributeKind.ValueSet(api.KindRecord), api.AttributeCluster.ValueSet(b.cluster)}
	}
	auditrecord.Begin(b.ctx, api.PlanRecordID(b.cluster, b.name, b.runID), "record of plan "+b.name,
		api.Reference{WorkflowID: b.workflowID, RunID: b.runID}, attributes, func(id string, why error) {
			b.note(fmt.Sprintf("the audit record was not begun as %s: %s", id, call.Cause(why)))
		})
}
