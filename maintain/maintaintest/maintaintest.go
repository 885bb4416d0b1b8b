// Package maintaintest stands in for Drydock in the tests of workflows that use package maintain, in the SDK's test environment.
package maintaintest

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
)

// Maintenances are the maintenances that workflows of one test environment ask for. Each is Ready after a while, whatever its node, and takes
// done, failed, retry, cancel and extend as a real one does. A test sends these with env.SignalWorkflowByID and api.MaintenanceID.
type Maintenances struct {
	// ReadyAfter is how long a node takes to become Ready; a minute if it is zero.
	ReadyAfter time.Duration
	// ReadyTimeout is how long a node may be held unless its hold is extended; for ever if it is zero.
	ReadyTimeout time.Duration
	// Refused are nodes whose maintenance fails at once, with why.
	Refused map[string]string
	// Lost are nodes that are lost once, so long after they became Ready, and become Ready again.
	Lost map[string]time.Duration

	mu   sync.Mutex
	told []string
}

// Register has an environment start these maintenances, and plans, as the children of its workflows. A plan has to name its nodes (nodes), and
// takes them in that order, strategy.maxParallel at a time, and pauses after strategy.maxFailures; nothing else of its input counts. A test environment goes on until all have ended: one about which nobody decides does so after a year.
func Register(env *testsuite.TestWorkflowEnvironment) *Maintenances {
	m := &Maintenances{}
	env.RegisterWorkflowWithOptions(m.maintain, workflow.RegisterOptions{Name: api.NodeMaintenanceType})
	env.RegisterWorkflowWithOptions(m.plan, workflow.RegisterOptions{Name: api.MaintenancePlanType})
	return m
}

// Told is what the maintenances were told, each as "<node>: <message>", in the order in which that happened.
func (m *Maintenances) Told() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.told)
}

func (m *Maintenances) note(node, what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = append(m.told, node+": "+what)
}

const year = 365 * 24 * time.Hour

// input is what is read of the input of a maintenance.
type input struct {
	Node, Requestor string
	ReportTo        spec.ReportTo `json:"reportTo"`
}

// run is one maintenance.
type run struct {
	*Maintenances
	input
	report   api.MaintenanceReport
	asked    string
	reported api.MaintenanceReport
	lost     bool
}

func (m *Maintenances) maintain(ctx workflow.Context, in input) (api.Result, error) {
	info := workflow.GetInfo(ctx)
	r := &run{Maintenances: m, input: in, report: api.MaintenanceReport{
		WorkflowID: info.WorkflowExecution.ID, RunID: info.WorkflowExecution.RunID, Node: in.Node, Requestor: in.Requestor,
	}}
	r.enter(ctx, api.Pending, "")
	r.listen(ctx)
	if why, refused := m.Refused[in.Node]; refused {
		r.enter(ctx, api.Failed, why)
	}
	workflow.GoNamed(ctx, "ready", r.becomeReady)
	workflow.GoNamed(ctx, "end", func(ctx workflow.Context) {
		if workflow.Sleep(ctx, year) == nil && !r.report.Phase.Ended() {
			r.enter(ctx, api.Cancelled, "nobody has decided for a year")
		}
	})
	for !r.report.Phase.Ended() || r.due() {
		if err := workflow.Await(ctx, r.due); err != nil {
			m.note(in.Node, "cancellation of the workflow")
			return api.Result{}, err
		}
		r.tell(ctx)
	}
	result := api.Result{WorkflowID: r.report.WorkflowID, RunID: r.report.RunID, Node: in.Node, Requestor: in.Requestor, Phase: r.report.Phase}
	switch r.report.Phase {
	case api.Failed:
		return result, temporal.NewNonRetryableApplicationError(r.report.Message, api.ErrorMaintenanceFailed, nil, result)
	case api.Cancelled:
		return result, temporal.NewCanceledError(result)
	}
	return result, nil
}

func (r *run) enter(ctx workflow.Context, phase api.Phase, message string) {
	if parent := workflow.GetInfo(ctx).ParentWorkflowExecution; parent != nil && (phase == api.RequestorFailed) != (r.report.Phase == api.RequestorFailed) {
		news := api.NodeNews{Node: r.Node, RunID: r.report.RunID, Held: phase == api.RequestorFailed, Why: message}
		workflow.SignalExternalWorkflow(ctx, parent.ID, "", api.SignalNodeNews, news) // a parent that is no plan does not read it
	}
	r.report.Phase, r.report.Since, r.report.Message, r.report.ReadyDeadline = phase, workflow.Now(ctx), message, nil
	if phase == api.Ready && r.ReadyTimeout > 0 {
		r.report.ReadyDeadline = new(r.report.Since.Add(r.ReadyTimeout))
	}
}

// becomeReady is the way of a node: it is drained, may be lost once, and is drained again.
func (r *run) becomeReady(ctx workflow.Context) {
	for r.report.Phase == api.Pending && workflow.Sleep(ctx, cmp.Or(r.ReadyAfter, time.Minute)) == nil && r.report.Phase == api.Pending {
		r.enter(ctx, api.Ready, "")
		if after, loses := r.Lost[r.Node]; loses && !r.lost {
			r.lost = true
			if workflow.Sleep(ctx, after) != nil || r.report.Phase != api.Ready {
				return
			}
			r.enter(ctx, api.Pending, "the slot was lost")
		}
	}
	for workflow.Await(ctx, func() bool { return r.report.ReadyDeadline != nil }) == nil {
		until := *r.report.ReadyDeadline
		if workflow.Sleep(ctx, until.Sub(workflow.Now(ctx))) != nil {
			return
		}
		if at := r.report.ReadyDeadline; at != nil && !at.After(until) {
			r.enter(ctx, api.RequestorFailed, fmt.Sprintf("held past readyTimeout (%s)", r.ReadyTimeout))
		}
	}
}

// due reports whether a report is due, as of a real maintenance.
func (r *run) due() bool {
	return r.asked != "" || r.standing() != r.reported.Phase || r.standing() != "" && !r.report.Since.Equal(r.reported.Since)
}

func (r *run) standing() api.Phase {
	if p := r.report.Phase; p == api.Ready || p == api.RequestorFailed || p.Ended() {
		return p
	}
	return ""
}

// tell reports. Whoever has ended is not told.
func (r *run) tell(ctx workflow.Context) {
	report := r.report
	report.Answers, r.asked = r.asked, ""
	r.reported = api.MaintenanceReport{Phase: r.standing(), Since: report.Since}
	if err := workflow.SignalExternalWorkflow(ctx, r.ReportTo.Workflow, "", r.ReportTo.Signal, report).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Info("not reported", "error", err)
	}
}

// listen takes messages.
func (r *run) listen(ctx workflow.Context) {
	receive(ctx, api.MsgReportTo, func(m api.ReportTo) { r.asked = m.ID })
	receive(ctx, api.MsgDone, func(m api.Done) {
		if r.standing() == api.Ready || r.standing() == api.RequestorFailed {
			r.report.DoneID = m.ID
			r.note(r.Node, api.MsgDone)
			r.enter(ctx, api.Completed, "")
		}
	})
	receive(ctx, api.MsgFailed, func(m api.FailedMessage) {
		if r.report.Phase == api.Ready {
			r.note(r.Node, api.MsgFailed+": "+m.Reason)
			r.enter(ctx, api.RequestorFailed, m.Reason)
		}
	})
	receive(ctx, api.MsgRetry, func(api.Simple) {
		if r.report.Phase == api.RequestorFailed {
			r.enter(ctx, api.Ready, "")
		}
	})
	receive(ctx, api.MsgExtend, func(api.Extend) {
		if at := r.report.ReadyDeadline; at != nil {
			r.note(r.Node, api.MsgExtend)
			r.report.ReadyDeadline = new(workflow.Now(ctx).Add(r.ReadyTimeout))
		}
	})
	receive(ctx, api.MsgCancel, func(m api.Cancel) {
		switch {
		case m.BeforeReady && r.standing() != "":
		case m.Release || r.report.Phase == api.Pending:
			r.note(r.Node, api.MsgCancel)
			r.enter(ctx, api.Cancelled, "cancelled by "+m.By)
		case r.report.Phase == api.Ready:
			r.enter(ctx, api.RequestorFailed, "cancelled by "+m.By)
		}
	})
}

func receive[T any](ctx workflow.Context, name string, take func(T)) {
	messages := workflow.GetSignalChannel(ctx, name)
	workflow.GoNamed(ctx, name, func(ctx workflow.Context) {
		for {
			var m T
			messages.Receive(ctx, &m)
			take(m)
		}
	})
}
