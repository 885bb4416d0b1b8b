package controller

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/call"
)

// Effect is an Activity, a Start, a Signal or a Cancel.
type Effect interface {
	meta() Meta
	// content is written as JSON to compare effects: two of the same content are the same effect.
	content() any
	// begin issues the command. The future is ready once the outcome is known.
	begin(ctx workflow.Context) workflow.Future
}

// Meta is what all effects have.
type Meta struct {
	Key     Key
	Summary string
	// Repeat is the time after which an effect that succeeded may begin again; it doubles up to ten minutes. Zero is a second. An effect of
	// other content begins at once.
	Repeat time.Duration
	// AtOnce bounds how many effects of the key's kind are under way; 0 is no bound. Others begin once one of these has ended.
	AtOnce int
}

func (m Meta) meta() Meta { return m }

// Call is how an activity is called.
type Call struct {
	// Func is a stub of package call. The activity is repeated until it succeeds, or until Within or Attempts are used up.
	Func     any
	Within   time.Duration
	Attempts int32
	// Pause bounds the pause between two attempts; zero is 30 s, or 10 s with a Heartbeat.
	Pause time.Duration
	// Heartbeat is the heartbeat timeout of an activity that runs for as long as it takes: heartbeats are billed, and this says how rare they
	// may be. Zero is an activity of a few requests.
	Heartbeat time.Duration
	Lane      api.Lane
	// Local makes it a local activity, for what the worker itself knows. The other fields but Func do not count then.
	Local bool
}

func (c Call) run(ctx workflow.Context, summary string, input any) workflow.Future {
	if c.Local {
		return workflow.ExecuteLocalActivity(call.Local(ctx), c.Func, input)
	}
	if c.Heartbeat > 0 {
		ctx = workflow.WithHeartbeatTimeout(call.Long(ctx, summary), c.Heartbeat)
	} else {
		ctx = call.Quick(ctx, summary)
	}
	if c.Within > 0 {
		ctx = call.Within(ctx, c.Within)
	}
	if c.Attempts > 0 {
		ctx = call.Times(ctx, c.Attempts)
	}
	if c.Pause > 0 {
		ctx = call.Pausing(ctx, c.Pause)
	}
	if c.Lane != "" {
		ctx = call.In(ctx, c.Lane)
	}
	return workflow.ExecuteActivity(ctx, c.Func, input)
}

// Activity calls an activity.
type Activity struct {
	Meta
	Call  Call
	Input any
}

func (a Activity) content() any { return a.Input }

func (a Activity) begin(ctx workflow.Context) workflow.Future {
	return a.Call.run(ctx, a.Summary, a.Input)
}

// Start starts a child that outlives this workflow. Its outcome has the child's run, and comes before anything that the child sends.
type Start struct {
	Meta
	Type, ID string
	Input    any
	// Attributes are search attributes of the keyword type.
	Attributes map[string]string
	// Memo is what lists of workflows show of it.
	Memo map[string]any
	// Once refuses the start where a workflow of this ID has ended.
	Once bool
}

func (s Start) content() any { return []any{s.Type, s.ID, s.Input} }

// begin returns the child itself, whose start is what the frame waits for.
func (s Start) begin(ctx workflow.Context) workflow.Future {
	options := call.Child(s.ID, s.Summary)
	options.Memo = s.Memo
	if s.Once {
		options.WorkflowIDReusePolicy = enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	}
	options.TypedSearchAttributes = temporal.NewSearchAttributes(keywords(s.Attributes)...)
	return workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, options), s.Type, s.Input)
}

// keywords are search attributes in the order of their names.
func keywords(attributes map[string]string) []temporal.SearchAttributeUpdate {
	var all []temporal.SearchAttributeUpdate
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		all = append(all, temporal.NewSearchAttributeKeyKeyword(name).ValueSet(attributes[name]))
	}
	return all
}

// Signal sends a signal to the latest run of a workflow ID.
type Signal struct {
	Meta
	To, Name string
	Payload  any
}

func (s Signal) content() any { return []any{s.To, s.Name, s.Payload} }

func (s Signal) begin(ctx workflow.Context) workflow.Future {
	return workflow.SignalExternalWorkflow(ctx, s.To, "", s.Name, s.Payload)
}

// Cancel requests the cancellation of the latest run of a workflow ID.
type Cancel struct {
	Meta
	To string
}

func (c Cancel) content() any { return c.To }

func (c Cancel) begin(ctx workflow.Context) workflow.Future {
	return workflow.RequestCancelExternalWorkflow(ctx, c.To, "")
}

// digest returns a checksum of the content of an effect or a watch, and its size in bytes.
func digest(content any) (sum uint64, size int) {
	data, err := json.Marshal(content)
	if err != nil {
		panic("what is to be under way cannot be written as JSON: " + err.Error()) // the SDK would fail the workflow task too
	}
	h := fnv.New64a()
	_, _ = h.Write(data)
	return h.Sum64() | 1, len(data) // Retry.Same of zero is none
}

// isNew reports whether a content differs from the last one, whose digest it replaces.
func isNew(last *uint64, content any) bool {
	before := *last
	*last, _ = digest(content)
	return *last != before
}
