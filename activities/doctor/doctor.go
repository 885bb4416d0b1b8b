// Package doctor looks for what is inconsistent between the cluster, the scheduler and the maintenances, and heals it.
package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"drydock/activities/execution"
	"drydock/activities/failure"
	"drydock/activities/heartbeat"
	"drydock/activities/nodeevent"
	"drydock/k8s"
	"drydock/rules/doctor"
)

// Doctors look for what is inconsistent between the cluster, the scheduler and the maintenances, and heal it.
type Activities struct {
	Client kubernetes.Interface
	// Events are recorded on the nodes that are healed.
	Events    nodeevent.Recorder
	Temporal  client.Client
	Namespace string
}

// DoctorNames are the names of what a doctor asks and tells.
type Names struct {
	// Maintenances begins the workflow IDs of maintenances, Scheduler is the scheduler's.
	Maintenances string                   `json:"maintenances"`
	Scheduler    string                   `json:"scheduler"`
	Listed       execution.InventoryInput `json:"listed"`
	QueryState   string                   `json:"queryState"`
	QuerySlot    string                   `json:"querySlot"`
	QueryStatus  string                   `json:"queryStatus"`
	// Deliveries are the types of workflows that tell channels and keep audit records.
	Deliveries []string `json:"deliveries,omitempty"`
}

// LookInput asks for one look.
type LookInput struct {
	Names
	// Nodes are those to tell of; empty tells of all.
	Nodes []string `json:"nodes,omitempty"`
	// Runs are those to ask; nil asks all that run. It is for a second look at what the first one found.
	Runs []string `json:"runs,omitempty"`
}

const (
	// answersWithin is how long a workflow has to answer a query.
	answersWithin = 10 * time.Second
	// pageOfState is how many requests that wait are asked of the scheduler at a time.
	pageOfState = 1000
)

// Look finds what is inconsistent at one moment. It changes nothing.
func (d *Activities) Look(ctx context.Context, in LookInput) (doctor.Look, error) {
	ctx, stop := heartbeat.UntilWorkerStops(ctx)
	defer stop()
	facts, err := d.facts(ctx, in)
	if err != nil {
		return doctor.Look{}, failure.OrCause(ctx, failure.Translate(err))
	}
	look := doctor.Examine(facts, in.Nodes)
	// What visibility says of a run is late: of those that seem to be wrong it has to be known exactly.
	if err := d.describe(ctx, &facts, runsOf(look.Findings)); err != nil {
		return doctor.Look{}, failure.OrCause(ctx, err)
	}
	return doctor.Examine(facts, in.Nodes), nil
}

func runsOf(findings []doctor.Finding) []doctor.Holder {
	var runs []doctor.Holder
	for _, f := range findings {
		if f.RunID != "" {
			runs = append(runs, doctor.Holder{WorkflowID: f.WorkflowID, RunID: f.RunID})
		}
	}
	return runs
}

func (d *Activities) facts(ctx context.Context, in LookInput) (doctor.Facts, error) {
	facts := doctor.Facts{At: time.Now().UTC(), Prefix: in.Maintenances, Executions: map[string]doctor.Execution{}}
	traces, err := k8s.TracesOf(ctx, d.Client)
	if err != nil {
		return facts, err
	}
	for _, t := range traces {
		facts.Nodes = append(facts.Nodes, nodeFacts(t))
	}
	if err := d.requests(ctx, &facts); err != nil {
		return facts, err
	}
	if facts.Scheduler, err = d.scheduler(ctx, in); err != nil {
		return facts, err
	}
	if err := d.maintenances(ctx, in, &facts); err != nil {
		return facts, err
	}
	if err := d.deliveries(ctx, in, &facts); err != nil {
		return facts, err
	}
	return facts, d.describe(ctx, &facts, doctor.Referred(facts))
}

func nodeFacts(t k8s.Traces) doctor.Node {
	n := doctor.Node{
		Name: t.Name, UID: string(t.UID), Mark: t.Text, Marked: t.Marked, Tainted: t.Tainted,
		Unschedulable: t.Unschedulable, Protections: t.Protections,
	}
	if t.Phase != nil {
		n.Labelled, n.Phase = true, *t.Phase
	}
	if t.Unreadable != nil {
		n.Unreadable = t.Unreadable.Error()
		return n
	}
	for _, h := range t.Mark.Holders {
		n.Holders = append(n.Holders, doctor.Holder{WorkflowID: h.WorkflowID, RunID: h.RunID, Requestor: h.Requestor, Since: h.Since})
	}
	return n
}

// requests looks for EvictionRequests. That a worker may not list them says that it never filed any.
func (d *Activities) requests(ctx context.Context, facts *doctor.Facts) error {
	filed, err := k8s.FiledByAll(ctx, d.Client)
	switch {
	case k8s.NotServed(err):
		return nil
	case apierrors.IsForbidden(err):
		facts.Unchecked = append(facts.Unchecked, "the worker's account may not list EvictionRequests, so it has filed none")
		return nil
	case err != nil:
		return err
	}
	for _, f := range filed {
		facts.Requests = append(facts.Requests, doctor.Requests{
			Node: nodeOf(facts.Prefix, f.WorkflowID), WorkflowID: f.WorkflowID, RunID: f.RunID, Count: f.Count,
		})
	}
	return nil
}

// nodeOf is the node in a maintenance's workflow ID, empty where there is none.
func nodeOf(prefix, workflowID string) string {
	rest, ours := strings.CutPrefix(workflowID, prefix)
	if !ours {
		return ""
	}
	node, _, _ := strings.Cut(rest, "/")
	return node
}

// schedulerState is what a doctor reads of the scheduler's answer.
type schedulerState struct {
	Rebuilding bool          `json:"rebuilding"`
	Holders    []doctor.Slot `json:"holders"`
	Pending    []doctor.Slot `json:"pending"`
	NextOffset int           `json:"nextOffset"`
}

func (d *Activities) scheduler(ctx context.Context, in LookInput) (doctor.Scheduler, error) {
	s := doctor.Scheduler{WorkflowID: in.Scheduler}
	var err error
	if s.Execution, err = d.execution(ctx, in.Scheduler, ""); err != nil || !s.Running {
		return s, err
	}
	for offset := 0; ; {
		var state schedulerState
		page := map[string]int{"offset": offset, "limit": pageOfState}
		if s.Unanswered, err = d.ask(ctx, in.Scheduler, s.RunID, in.QueryState, &state, page); err != nil || s.Unanswered != "" {
			return s, err
		}
		s.Rebuilding, s.Holders, s.Pending = state.Rebuilding, state.Holders, append(s.Pending, state.Pending...)
		if state.NextOffset <= offset {
			return s, nil
		}
		offset = state.NextOffset
	}
}

// ask asks a run, and tells why there is no answer. An error says nothing of the run.
func (d *Activities) ask(ctx context.Context, workflowID, runID, query string, answer any, args ...any) (unanswered string, err error) {
	asking, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	value, err := d.Temporal.QueryWorkflow(asking, workflowID, runID, query, args...)
	var notFound *serviceerror.NotFound
	var late *serviceerror.DeadlineExceeded
	switch {
	case err == nil:
		if err := value.Get(answer); err != nil {
			return "it answers what cannot be read: " + err.Error(), nil
		}
		return "", nil
	case errors.As(err, &notFound):
		return "there is no such run", nil
	case execution.CannotAnswer(err):
		return err.Error(), nil
	case ctx.Err() == nil && (asking.Err() != nil || errors.As(err, &late)):
		return fmt.Sprintf("no answer within %s", answersWithin), nil
	default:
		return "", fmt.Errorf("querying %s of workflow %s: %w", query, workflowID, err)
	}
}

// slotAnswer is what a doctor reads of a maintenance's word on its slot.
type slotAnswer struct {
	ID        string     `json:"id"`
	Wants     bool       `json:"wants"`
	GrantedAt *time.Time `json:"grantedAt"`
	Ended     bool       `json:"ended"`
}

// statusAnswer is what a doctor reads of a maintenance's status.
type statusAnswer struct {
	Phase string    `json:"phase"`
	Since time.Time `json:"since"`
	Spec  struct {
		OnNodeReplaced string `json:"onNodeReplaced"`
	} `json:"spec"`
	ReadyDeadline *time.Time `json:"readyDeadline"`
}

func (d *Activities) maintenances(ctx context.Context, in LookInput, facts *doctor.Facts) error {
	running, err := execution.ListRunning(ctx, d.Temporal, d.Namespace, in.Listed)
	if err != nil {
		return err
	}
	facts.Maintenances = make([]doctor.Maintenance, len(running))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(execution.QueriesAtOnce)
	for i, run := range running {
		m := &facts.Maintenances[i]
		m.WorkflowID, m.RunID, m.Node = run.WorkflowID, run.RunID, nodeOf(in.Maintenances, run.WorkflowID)
		// A run under another ID only starts the maintenance that was meant.
		if m.Node != "" && (in.Runs == nil || slices.Contains(in.Runs, run.RunID)) {
			group.Go(func() error { return d.askMaintenance(ctx, in.Names, m) })
		}
	}
	return group.Wait()
}

func (d *Activities) askMaintenance(ctx context.Context, names Names, m *doctor.Maintenance) (err error) {
	var slot slotAnswer
	m.Asked = true
	if m.Unanswered, err = d.ask(ctx, m.WorkflowID, m.RunID, names.QuerySlot, &slot); err != nil || m.Unanswered != "" {
		return err
	}
	m.Ended, m.Wants, m.RequestID, m.Granted = slot.Ended, slot.Wants, slot.ID, slot.GrantedAt
	if m.Granted == nil {
		return nil
	}
	var status statusAnswer
	if m.Unanswered, err = d.ask(ctx, m.WorkflowID, m.RunID, names.QueryStatus, &status); err != nil || m.Unanswered != "" {
		return err
	}
	m.Phase, m.Since = status.Phase, status.Since
	m.AwaitsNode = status.Phase == "Ready" && status.Spec.OnNodeReplaced != "end" && status.ReadyDeadline != nil
	return nil
}

// describe adds what Temporal says of some runs.
func (d *Activities) describe(ctx context.Context, facts *doctor.Facts, runs []doctor.Holder) error {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(execution.QueriesAtOnce)
	for _, run := range runs {
		if _, known := facts.Executions[run.RunID]; known || run.RunID == facts.Scheduler.RunID {
			continue
		}
		group.Go(func() error {
			execution, err := d.execution(ctx, run.WorkflowID, run.RunID)
			mu.Lock()
			defer mu.Unlock()
			facts.Executions[run.RunID] = execution
			return err
		})
	}
	return group.Wait()
}

// execution describes a run, or the latest of a workflow.
func (d *Activities) execution(ctx context.Context, workflowID, runID string) (doctor.Execution, error) {
	described, err := d.Temporal.DescribeWorkflowExecution(ctx, workflowID, runID)
	var notFound *serviceerror.NotFound
	var invalid *serviceerror.InvalidArgument // a mark may name anything as its run
	if errors.As(err, &notFound) || errors.As(err, &invalid) {
		return doctor.Execution{RunID: runID, Status: "gone"}, nil
	}
	if err != nil {
		return doctor.Execution{}, fmt.Errorf("describing workflow %s: %w", workflowID, err)
	}
	info := described.GetWorkflowExecutionInfo()
	return doctor.Execution{
		RunID: info.GetExecution().GetRunId(), StartedAt: info.GetStartTime().AsTime(), Status: info.GetStatus().String(),
		Running: info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING,
		Attempt: int(described.GetPendingWorkflowTask().GetAttempt()),
	}, nil
}

// HealInput asks for one finding to be healed.
type HealInput struct {
	Names
	Finding doctor.Finding `json:"finding"`
	By      string         `json:"by"`
	Comment string         `json:"comment,omitempty"`
	// SignalRequest and SignalRelease are the scheduler's, SignalChanged a maintenance's.
	SignalRequest string `json:"signalRequest"`
	SignalRelease string `json:"signalRelease"`
	SignalChanged string `json:"signalChanged"`
}

// why is what a record says of the reason.
func (in HealInput) why() string {
	text := in.Finding.Text
	if in.Comment != "" {
		text += " (" + in.Comment + ")"
	}
	return text
}

// release is the payload of a slot's release, with who did it and why.
func (in HealInput) release() (json.RawMessage, error) {
	return json.Marshal(map[string]string{"requestId": in.Finding.RequestID, "by": in.By, "why": in.why()})
}
