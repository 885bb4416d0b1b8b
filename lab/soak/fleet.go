package main

import (
	"cmp"
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
)

// callTimeout bounds a call to Temporal, which may be away.
const callTimeout = 15 * time.Second

// maintenance is one that was started, and what its requestor has done so far.
type maintenance struct {
	plan
	id, run string
	started time.Time

	readySince time.Time
	saidAt     map[string]time.Time
	answered   int
	failed     bool
	retried    bool
}

// fleet knows the maintenances that were started, and which workflows are open.
type fleet struct {
	temporal client.Client
	journal  *journal
	bridge   *bridge

	mu      sync.Mutex
	started []*maintenance
	open    map[string]openRun
}

// openRun is a workflow that runs.
type openRun struct{ run, kind string }

// look reads from Temporal which workflows are open.
func (f *fleet) look(ctx context.Context) error {
	open := map[string]openRun{}
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: "ExecutionStatus = 'Running'", PageSize: 1000}
	for {
		page, err := f.list(ctx, request)
		if err != nil {
			return err
		}
		for _, e := range page.Executions {
			open[e.Execution.WorkflowId] = openRun{e.Execution.RunId, e.Type.Name}
		}
		if request.NextPageToken = page.NextPageToken; len(page.NextPageToken) == 0 {
			break
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = open
	return nil
}

func (f *fleet) list(ctx context.Context, request *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return f.temporal.ListWorkflow(ctx, request)
}

// openOf are the open workflows of a type, by ID, in a fixed order.
func (f *fleet) openOf(kind string) (ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, o := range f.open {
		if o.kind == kind {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// openAll are all open workflows. Nobody changes this map: the next look makes another.
func (f *fleet) openAll() map[string]openRun {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

// active are the maintenances that were started and run, the latest of each ID, in their order.
func (f *fleet) active() (all []*maintenance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := map[string]bool{}
	for _, m := range slices.Backward(f.started) {
		_, open := f.open[m.id]
		// A workflow that was started just now may not be listed yet.
		if seen[m.id] || !open && time.Since(m.started) > 5*time.Second {
			continue
		}
		seen[m.id] = true
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *maintenance) int { return cmp.Compare(a.number, b.number) })
	return all
}

// anyOf is one of the running maintenances, or now and then one that has ended; nil if none was started.
func (f *fleet) anyOf(r *rand.Rand, endedPercent int) *maintenance {
	active := f.active()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.started) == 0 {
		return nil
	}
	if len(active) == 0 || chance(r, endedPercent) {
		return pick(r, last(f.started, 60))
	}
	return pick(r, active)
}

func (f *fleet) start(ctx context.Context, p plan) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	id := api.MaintenanceID("", p.node, p.requestor)
	if p.notice > 0 {
		p.input["notBefore"] = time.Now().Add(p.notice).UTC().Format(time.RFC3339)
	}
	input, err := json.Marshal(p.input)
	if err != nil {
		f.journal.did(Entry{Did: "start", Node: p.node, Workflow: id}, err)
		return
	}
	if p.object {
		err := f.bridge.ask(ctx, p)
		f.journal.did(Entry{Did: "start", Node: p.node, Workflow: id, Detail: "by an object: " + short(string(input)) + "; to be " + string(p.ending)}, err)
		if err == nil {
			f.add(p, id, "")
		}
		return
	}
	run, err := f.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: cmp.Or(p.alias, id), TaskQueue: api.TaskQueue("", api.DefaultTaskQueue), WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, api.NodeMaintenanceType, json.RawMessage(input))
	did := "start"
	if !p.valid {
		did = "start with a wrong input"
	}
	f.journal.did(Entry{Did: did, Node: p.node, Workflow: cmp.Or(p.alias, id), Detail: short(string(input)) + "; to be " + string(p.ending)}, err)
	if err != nil || !p.valid || p.alias != "" {
		return // what an alias starts is cancelled when it is overdue
	}
	f.add(p, id, run.GetRunID())
}

func (f *fleet) add(p plan, id, run string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = append(f.started, &maintenance{plan: p, id: id, run: run, started: time.Now(), saidAt: map[string]time.Time{}})
}

// identify finds out which run was started for an object, and reports whether one was.
func (f *fleet) identify(ctx context.Context, m *maintenance) bool {
	if m.run != "" {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	described, err := f.temporal.DescribeWorkflowExecution(ctx, m.id, "")
	if err != nil {
		return false // the bridge has not started it yet, or Temporal is away
	}
	m.run = described.WorkflowExecutionInfo.FirstRunId
	return true
}

// signal sends a message to a workflow, whichever of its runs acts.
func (f *fleet) signal(ctx context.Context, id, name string, payload any, did string) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, node, _, _ := api.ParseMaintenanceID(id)
	err := f.temporal.SignalWorkflow(ctx, id, "", name, payload)
	text, marshalErr := json.Marshal(payload)
	if marshalErr != nil {
		text = []byte(marshalErr.Error())
	}
	f.journal.did(Entry{Did: did, Node: node, Workflow: id, Detail: name + " " + short(string(text))}, err)
}
