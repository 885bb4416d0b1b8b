package controller

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/handover"
	"drydock.dev/drydock/workflows/inbox"
	"drydock.dev/drydock/workflows/reset"
)

// Program is a workflow type.
type Program[C Controller] struct {
	Type     string
	Messages []Message[C]
	Queries  []Query[C]
	// Input is handed to the next run unchanged, before the state. Without it the workflow's only argument is the state.
	Input converter.RawValue
}

// Page is what people are shown in the Temporal UI: Markdown, and search attributes of the keyword type.
type Page struct {
	Details    string
	Attributes map[string]string
	// Memo is shown in lists of workflows, beside the memo that the workflow was started with.
	Memo map[string]any
	// Object is the Kubernetes object that asked for the workflow, nil where none did. The bridge is called when Shows changes. That holds no
	// text, and what is added to it stands behind a named change: otherwise running workflows would do something else in a replay.
	Object *spec.Object
	Shows  any
}

// The log warns of a state of more than noteSize bytes. One of more than maxSize fails the workflow task: the server would not take it.
const (
	noteSize = 1_000_000
	maxSize  = 1_900_000
)

// Run runs a workflow until it ends. Packed is the state that the run before has handed over, nil for the first run. A state that cannot be
// read fails the workflow task, and not the workflow.
func Run[C Controller](ctx workflow.Context, c C, p Program[C], packed []byte) error {
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	base := c.base()
	base.ctx = disconnected
	restore(ctx, c, packed)
	mail := &intake[C]{ctx: disconnected, c: c, queue: inbox.QueueOf(disconnected), rows: p.Messages}
	for _, q := range p.Queries {
		if err := q.serve(ctx, c); err != nil {
			return err
		}
	}
	if err := mail.open(ctx); err != nil {
		return err
	}
	e := &engine[C]{root: ctx, c: c, base: base, mail: mail}
	var end *End
	err := reset.Run(ctx, e.noticeReset, func(root workflow.Context) (err error) {
		procedure, cancel := workflow.NewDisconnectedContext(root) // a context belongs to its coroutine
		defer cancel()
		e.ctx, mail.ctx = procedure, procedure
		end, err = e.run()
		return err
	})
	switch {
	case err != nil:
		return err
	case end == nil:
		if p.Input.Payload() == nil {
			return workflow.NewContinueAsNewError(ctx, p.Type, pack(c))
		}
		return workflow.NewContinueAsNewError(ctx, p.Type, p.Input, pack(c))
	}
	return end.Err
}

// restore sets the state: that of the run before, or that of a workflow that begins.
func restore(ctx workflow.Context, c Controller, packed []byte) {
	base := c.base()
	base.Info = Identify(ctx)
	if len(packed) > 0 && inbox.IsContinued(ctx) {
		var data json.RawMessage
		handover.Must("the carried state", api.Unpack(packed, &data))
		unknown, err := handover.Decode(data, c)
		handover.Must("the carried state", err)
		base.unknown = unknown
		return
	}
	c.Begin(workflow.Now(ctx))
	if len(packed) > 0 {
		base.Note(workflow.Now(ctx), "ignored the second input", "that is only for a run to hand to the next")
	}
}

// pack returns the state for the next run, with the fields of newer releases that this one does not know.
func pack(c Controller) []byte {
	data, err := handover.Encode(c, c.base().unknown)
	handover.Must("the state to hand over", err)
	packed, err := api.Pack(json.RawMessage(data))
	handover.Must("the state to hand over", err)
	switch {
	case len(packed) > maxSize:
		handover.Must("the state to hand over", fmt.Errorf("it has %d bytes: the largest fields are %s", len(packed), largest(data)))
	case len(packed) > noteSize:
		workflow.GetLogger(c.base().ctx).Warn("the state grows large", "bytes", len(packed), "fields", largest(data))
	}
	return packed
}

func largest(data []byte) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(data, &fields) // it is an object
	names := slices.SortedFunc(maps.Keys(fields), func(a, b string) int {
		return cmp.Or(len(fields[b])-len(fields[a]), strings.Compare(a, b))
	})
	return strings.Join(names[:min(len(names), 3)], ", ")
}

// noticeReset makes the next turn handle a reset, and returns the ID that the server has for this run.
func (e *engine[C]) noticeReset(ctx workflow.Context) (runID string, err error) {
	e.wasReset = true
	err = workflow.ExecuteActivity(call.Quick(ctx, "see which run this is"), call.Executions.ThisRun).Get(ctx, &runID)
	return runID, err
}

// show updates what people see, where the page has changed.
func (e *engine[C]) show(now time.Time) {
	page := e.c.Page(now)
	if page.Details != e.page.Details {
		workflow.SetCurrentDetails(e.ctx, page.Details)
	}
	e.page = page
	var err error
	if len(page.Memo) > 0 && isNew(&e.base.ShownMemo, page.Memo) {
		err = workflow.UpsertMemo(e.ctx, page.Memo)
	}
	if len(page.Attributes) > 0 && !reflect.DeepEqual(page.Attributes, e.base.Shown) {
		e.base.Shown = maps.Clone(page.Attributes)
		err = errors.Join(err, workflow.UpsertTypedSearchAttributes(e.ctx, keywords(page.Attributes)...))
	}
	if err != nil {
		workflow.GetLogger(e.ctx).Error("setting the memo and the search attributes", "error", err)
	}
}

// Only returns an error where a workflow of which each cluster has one has another ID than that.
func (i Info) Only(what string, idOf func(cluster string) string) error {
	if only := idOf(i.Cluster); i.WorkflowID != only {
		return inbox.InvalidSpec(fmt.Errorf("workflow ID %.300q: that of %s on this task queue is %q", i.WorkflowID, what, only))
	}
	return nil
}

// Check takes the cluster that a workflow ID names, and the error of parsing it. Another cluster than that of the task queue is an error too.
func (i Info) Check(cluster string, err error) error {
	if err != nil || cluster == i.Cluster {
		return err
	}
	return fmt.Errorf("workflow ID %.300q is of cluster %q, and its task queue is of cluster %q", i.WorkflowID, cluster, i.Cluster)
}
