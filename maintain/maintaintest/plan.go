package maintaintest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/plan"
)

// planRun is one plan.
type planRun struct {
	*Maintenances
	plan.Plan
	name, id, run string
	// runs are the maintenances that run, by their nodes; held are those that wait for a decision.
	runs, held map[string]string
	waiting    []string
	done       int
	failed     int
	// forgiven are the failures that were known when somebody resumed the plan.
	forgiven  int
	cancelled bool
	asked     string
}

func (m *Maintenances) plan(ctx workflow.Context, input map[string]any) (api.PlanResult, error) {
	info := workflow.GetInfo(ctx).WorkflowExecution
	_, name, err := api.ParsePlanID(info.ID)
	p := &planRun{Maintenances: m, name: name, id: info.ID, run: info.RunID, runs: map[string]string{}, held: map[string]string{}}
	if err == nil {
		p.Plan, err = decode(name, input)
	}
	if err != nil {
		return api.PlanResult{}, temporal.NewNonRetryableApplicationError(err.Error(), api.ErrorInvalidSpec, nil)
	}
	p.waiting = slices.Clone(p.Nodes)
	p.listen(ctx)
	for {
		for !p.cancelled && !p.paused() && len(p.waiting) > 0 && len(p.runs) < max(p.Strategy.MaxParallel.Of(len(p.Nodes)), 1) {
			p.begin(ctx, p.waiting[0])
			p.waiting = p.waiting[1:]
		}
		over := len(p.runs) == 0 && (p.cancelled || len(p.waiting) == 0)
		if over || p.asked != "" {
			p.tell(ctx, over)
		}
		if over {
			return p.end()
		}
		runs, held, done, forgiven := len(p.runs), len(p.held), p.done+p.failed, p.forgiven
		err := workflow.Await(ctx, func() bool {
			return p.asked != "" || p.cancelled && len(p.runs) == 0 || runs != len(p.runs) || held != len(p.held) || done != p.done+p.failed || forgiven != p.forgiven
		})
		if err != nil {
			return api.PlanResult{}, err
		}
	}
}

// begin begins the maintenance of a node, and counts how it ends.
func (p *planRun) begin(ctx workflow.Context, node string) {
	p.runs[node] = "" // its run is known when it has started
	options := workflow.ChildWorkflowOptions{
		WorkflowID: api.MaintenanceID("", node, p.Requestor), ParentClosePolicy: enums.PARENT_CLOSE_POLICY_ABANDON,
	}
	child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, options), api.NodeMaintenanceType, input{
		Node: node, Requestor: p.Requestor, ReportTo: *p.ReportTo,
	})
	workflow.GoNamed(ctx, node, func(ctx workflow.Context) {
		var started workflow.Execution
		if child.GetChildWorkflowExecution().Get(ctx, &started) == nil {
			p.runs[node] = started.RunID
		}
		if err := child.Get(ctx, nil); err != nil {
			p.failed++
		} else {
			p.done++
		}
		delete(p.runs, node)
		delete(p.held, node)
	})
}

// decode reads the input as a plan does.
func decode(name string, input map[string]any) (plan.Plan, error) {
	text, err := json.Marshal(input)
	if err != nil {
		return plan.Plan{}, err
	}
	p, err := plan.Decode(name, text)
	if err == nil && (len(p.Nodes) == 0 || p.ReportTo == nil) {
		err = errors.New("nodes, reportTo: both are needed in a test")
	}
	return p, err
}

// paused reports whether more nodes have failed than the strategy lets.
func (p *planRun) paused() bool {
	return p.failed+len(p.held)-p.forgiven > p.Strategy.MaxFailures.Of(len(p.Nodes))
}

func (p *planRun) phase(over bool) api.PlanPhase {
	switch {
	case !over:
		return api.PlanRunning
	case p.cancelled:
		return api.PlanCancelled
	case p.failed > 0 || len(p.held) > 0:
		return api.PlanIncomplete
	}
	return api.PlanCompleted
}

func (p *planRun) summary() string {
	return fmt.Sprintf("%d of %d nodes are done, %d failed", p.done, len(p.Nodes), p.failed+len(p.held))
}

func (p *planRun) tell(ctx workflow.Context, over bool) {
	report := api.PlanReport{
		WorkflowID: p.id, RunID: p.run, Plan: p.name, Requestor: p.Requestor, Phase: p.phase(over), Since: workflow.Now(ctx), Message: p.summary(), Answers: p.asked,
	}
	for _, node := range p.Nodes {
		if run := p.runs[node]; run != "" {
			report.Maintenances = append(report.Maintenances, api.NodeRun{Node: node, RunID: run})
		}
	}
	p.asked = ""
	if err := workflow.SignalExternalWorkflow(ctx, p.ReportTo.Workflow, "", p.ReportTo.Signal, report).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Info("not reported", "error", err)
	}
}

func (p *planRun) end() (api.PlanResult, error) {
	result := api.PlanResult{Name: p.name, WorkflowID: p.id, RunID: p.run, Phase: p.phase(true), Message: p.summary()}
	switch result.Phase {
	case api.PlanCancelled:
		return result, temporal.NewCanceledError(result)
	case api.PlanIncomplete:
		return result, temporal.NewNonRetryableApplicationError(result.Message, api.ErrorPlanIncomplete, nil, result)
	}
	return result, nil
}

// listen takes messages. A maintenance that waits for a decision takes no place.
func (p *planRun) listen(ctx workflow.Context) {
	receive(ctx, api.MsgReportTo, func(m api.ReportTo) { p.asked = m.ID })
	receive(ctx, api.MsgCancel, func(m api.Cancel) {
		p.cancelled = true
		p.note("plan", api.MsgCancel)
		for _, node := range p.Nodes {
			if _, runs := p.runs[node]; runs {
				workflow.SignalExternalWorkflow(ctx, api.MaintenanceID("", node, p.Requestor), "", api.MsgCancel, api.Cancel{Message: m.Message, BeforeReady: true})
			}
		}
	})
	receive(ctx, api.MsgResume, func(api.Simple) { p.forgiven = p.failed + len(p.held) })
	receive(ctx, api.SignalNodeNews, func(n api.NodeNews) {
		if run, runs := p.runs[n.Node]; n.Held && runs {
			delete(p.runs, n.Node)
			p.held[n.Node] = run
		} else if run, held := p.held[n.Node]; !n.Held && held {
			delete(p.held, n.Node)
			p.runs[n.Node] = run
		}
	})
}
