package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"drydock.dev/drydock/activities/account"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/notices"
)

// ReadInput asks for the events of a maintenance behind a moment, on behalf of a channel.
type ReadInput struct {
	Channel     string        `json:"channel"`
	Maintenance api.Reference `json:"maintenance"`
	After       api.Moment    `json:"after,omitzero"`
}

// Read is what happened.
type Read struct {
	// Plan is the channel's.
	Plan   notices.Channel `json:"plan"`
	Events []notices.Event `json:"events,omitempty"`
	// Lost counts events that the maintenance does not keep any more; More: there are further ones.
	Lost int  `json:"lost,omitempty"`
	More bool `json:"more,omitempty"`
	// Closed: the maintenance has closed, and these are its last events. Unanswered says why it cannot tell them.
	Closed     bool   `json:"closed,omitempty"`
	Unanswered string `json:"unanswered,omitempty"`
}

// eventsAtOnce bounds the events that are read at once: they are handed from run to run.
const eventsAtOnce = 20

// ReadEvents reads from a maintenance the events for a channel. Errors: NotAMaintenance; Undeliverable, where this
// is none of its channels, or none of this worker's.
func (n *Activities) ReadEvents(ctx context.Context, in ReadInput) (Read, error) {
	plan, err := n.plan(in.Channel)
	if err != nil {
		return Read{}, err
	}
	a, err := account.Of(ctx, n.Temporal, in.Maintenance, 0)
	if err != nil {
		return Read{}, err
	}
	read := Read{Plan: plan, Closed: a.Closed != nil, Unanswered: a.Unanswered}
	if a.Unanswered != "" {
		return read, nil
	}
	if !slices.Contains(a.Status.Tells, in.Channel) {
		return Read{}, undeliverable(fmt.Errorf("maintenance %s does not tell channel %s", in.Maintenance.WorkflowID, in.Channel))
	}
	read.Events, read.Lost, read.More = api.EventsAfter(a.Status, a.Cluster, in.After, eventsAtOnce)
	read.Closed = read.Closed && !read.More
	return read, nil
}

func (n *Activities) plan(channel string) (notices.Channel, error) {
	plan, err := n.Senders.Plan(channel)
	if err != nil {
		return plan, undeliverable(err)
	}
	return plan, nil
}

func undeliverable(err error) error {
	return temporal.NewNonRetryableApplicationError(bounds.Cut(err.Error(), bounds.Text), api.ErrorUndeliverable, nil)
}

// GatherInput asks for events of many maintenances, on behalf of a channel. Without events it asks for the channel's plan.
type GatherInput struct {
	Channel string               `json:"channel"`
	Events  []api.EventReference `json:"events,omitempty"`
}

// Gathered are the events that were found, in the order of the request, with short texts.
type Gathered struct {
	Plan   notices.Channel `json:"plan"`
	Events []notices.Event `json:"events,omitempty"`
	// Refused counts those that there are not, Why says so of the last of them.
	Refused int    `json:"refused,omitempty"`
	Why     string `json:"why,omitempty"`
}

// Gather reads events of many maintenances from them. What is referred to and cannot be found is counted, and keeps
// nothing else from being sent. Errors: Undeliverable, where this is no channel of this worker's.
func (n *Activities) Gather(ctx context.Context, in GatherInput) (Gathered, error) {
	plan, err := n.plan(in.Channel)
	if err != nil {
		return Gathered{}, err
	}
	accounts, refused, err := n.accounts(ctx, in.Events)
	if err != nil {
		return Gathered{}, err
	}
	g := Gathered{Plan: plan}
	for _, ref := range in.Events {
		why := refused[ref.Reference]
		if why == nil {
			var e notices.Event
			if e, why = eventOf(accounts[ref.Reference], ref, plan); why == nil {
				g.Events = append(g.Events, shortened(e))
				continue
			}
		}
		g.Refused++
		g.Why = bounds.Cut(why.Error(), bounds.Text)
	}
	return g, nil
}

// accounts reads what each of the maintenances says, or why it is none.
func (n *Activities) accounts(ctx context.Context, events []api.EventReference) (map[api.Reference]account.Account, map[api.Reference]error, error) {
	accounts, refused := map[api.Reference]account.Account{}, map[api.Reference]error{}
	var mu sync.Mutex
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(execution.QueriesAtOnce)
	asked := map[api.Reference]bool{}
	for _, e := range events {
		ref := e.Reference
		if asked[ref] {
			continue
		}
		asked[ref] = true
		group.Go(func() error {
			a, err := account.Of(groupCtx, n.Temporal, ref, 0)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				accounts[ref] = a
			case isRefused(ctx, err):
				refused[ref] = err
			default:
				return err
			}
			return nil
		})
	}
	return accounts, refused, group.Wait()
}

// wedgedAfter is the attempt from which on a maintenance that cannot answer does not hold up the others.
const wedgedAfter = 4

func isRefused(ctx context.Context, err error) bool {
	var cause *temporal.ApplicationError
	if errors.As(err, &cause) && cause.Type() == api.ErrorNotAMaintenance {
		return true
	}
	return execution.CannotAnswer(err) && activity.GetInfo(ctx).Attempt >= wedgedAfter
}

// eventOf finds an event in an account, if the channel wants it.
func eventOf(a account.Account, ref api.EventReference, plan notices.Channel) (notices.Event, error) {
	switch {
	case a.Unanswered != "":
		return notices.Event{}, fmt.Errorf("maintenance %s cannot answer: %s", ref.WorkflowID, a.Unanswered)
	case !slices.Contains(a.Status.Tells, plan.Name):
		return notices.Event{}, fmt.Errorf("maintenance %s does not tell channel %s", ref.WorkflowID, plan.Name)
	}
	at := slices.IndexFunc(a.Status.States, func(s api.LifecycleState) bool { return s.Moment().Compare(ref.Moment) == 0 })
	if at < 0 {
		return notices.Event{}, fmt.Errorf("maintenance %s has no event %d of %s", ref.WorkflowID, ref.Sequence, ref.At.UTC())
	}
	e := api.EventOf(a.Status, a.Cluster, a.Status.States[at])
	if !plan.Filter.Wants(e) {
		return notices.Event{}, fmt.Errorf("channel %s is not told of %s of maintenance %s", plan.Name, e.State, ref.WorkflowID)
	}
	return e, nil
}

// gatheredText bounds a text of one event of many, in bytes.
const gatheredText = 256

// shortened is an event among many.
func shortened(e notices.Event) notices.Event {
	for _, text := range []*string{&e.Message, &e.Owner, &e.Reason, &e.Ticket} {
		*text = bounds.Cut(*text, gatheredText)
	}
	e.MoreBlockers += len(e.Blockers) - min(1, len(e.Blockers))
	e.Blockers = e.Blockers[:min(1, len(e.Blockers))]
	e.Groups = e.Groups[:min(3, len(e.Groups))]
	return e
}

// SameInput asks whether a workflow of that ID does what another is to do: to keep the record of a maintenance, or to
// tell a channel of it.
type SameInput struct {
	WorkflowID   string        `json:"workflowId"`
	WorkflowType string        `json:"workflowType"`
	Maintenance  api.Reference `json:"maintenance"`
	Channel      string        `json:"channel,omitempty"`
}

// Same reports whether a running workflow does that: its type, its task queue and what it was started with.
func (n *Activities) Same(ctx context.Context, in SameInput) (bool, error) {
	described, err := n.Temporal.DescribeWorkflowExecution(ctx, in.WorkflowID, "")
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("describing workflow %s: %w", in.WorkflowID, err)
	}
	info := described.GetWorkflowExecutionInfo()
	if info.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return false, nil
	}
	return Does(ctx, n.Temporal, activity.GetInfo(ctx).TaskQueue, in, info)
}

// Does reports whether a workflow does that on a task queue, or did.
func Does(ctx context.Context, temporal client.Client, queue string, in SameInput, info *workflowpb.WorkflowExecutionInfo) (bool, error) {
	if info.GetType().GetName() != in.WorkflowType || info.GetTaskQueue() != queue {
		return false, nil
	}
	events := temporal.GetWorkflowHistory(ctx, in.WorkflowID, info.GetExecution().GetRunId(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if !events.HasNext() {
		return false, fmt.Errorf("workflow %s has no history", in.WorkflowID)
	}
	began, err := events.Next()
	if err != nil {
		return false, fmt.Errorf("reading the input of workflow %s: %w", in.WorkflowID, err)
	}
	// Inputs of both types; one that cannot be read is that of something else.
	var input struct {
		api.Reference
		Channel     string         `json:"channel"`
		Maintenance *api.Reference `json:"maintenance"`
	}
	payloads := began.GetWorkflowExecutionStartedEventAttributes().GetInput()
	if err := converter.GetDefaultDataConverter().FromPayloads(payloads, &input); err != nil {
		return false, nil //nolint:nilerr // see above
	}
	if in.Channel == "" {
		return input.Reference == in.Maintenance, nil
	}
	return input.Channel == in.Channel && input.Maintenance != nil && *input.Maintenance == in.Maintenance, nil
}
