// Package plan is the workflow of a maintenance plan: many nodes under one intent. The nodes of a rolling plan go in their turn, each in
// a maintenance that the plan begins. Those of a staged plan go together: the plan says what it intends, and the Lockstep does it.
package plan

import (
	"cmp"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/announce"
	"drydock.dev/drydock/workflows/controller"
	"drydock.dev/drydock/workflows/inbox"
)

// maintenancePlan is the state of a MaintenancePlan. It fits into a payload: what it is made of is bounded where it is written.
type maintenancePlan struct {
	controller.Base
	controller.Recorder
	announce.Outbox
	Phase     api.PlanPhase   `json:"phase"`
	Since     time.Time       `json:"since"`
	CreatedAt time.Time       `json:"createdAt"`
	Moves     record.PodMoves `json:"moves,omitzero"`
	Failure   string          `json:"failure,omitempty"`
	// WaitingFor and Until are what the last decision waits for.
	WaitingFor string    `json:"waitingFor,omitempty"`
	Until      time.Time `json:"until,omitzero"`
	// Stop is the end that the plan comes to, once somebody or something has decided that it ends.
	Stop       api.PlanPhase `json:"stop,omitempty"`
	StoppedWhy string        `json:"stoppedWhy,omitempty"`

	Progress      plan.Progress `json:"progress,omitzero"`
	AskedApproval bool          `json:"askedApproval,omitempty"`
	Nodes         []plan.Node   `json:"nodes,omitempty"`
	// Digest is that of the list of nodes which Nodes were last brought up to date with, and ListedAt when that was.
	Digest   string    `json:"digest,omitempty"`
	ListedAt time.Time `json:"listedAt,omitzero"`
	Warnings []string  `json:"warnings,omitempty"`
	// Known: it is known which maintenances run that this plan, or an earlier one of its name, has begun. MayRun: maintenances may run that
	// this plan has begun. Sought are the nodes whose maintenance could not be started because one of its ID ran.
	Known  bool            `json:"known,omitempty"`
	MayRun bool            `json:"mayRun,omitempty"`
	Sought map[string]bool `json:"sought,omitempty"`
	// LateRetries are the retries of nodes, with their reasons, that a reset plan has received before it knows that the nodes have failed.
	LateRetries map[string]string `json:"lateRetries,omitempty"`
	// Refused are nodes whose maintenance an earlier plan has begun, with other settings: their end is waited for, and says nothing.
	Refused map[string]bool `json:"refused,omitempty"`
	// Early is what maintenances have said of themselves whose run was not known.
	Early map[string]api.NodeNews `json:"early,omitempty"`
	// Skipping are nodes whose maintenance is taken back because somebody skips them. Orders are what maintenances were not sent yet.
	Skipping map[string]bool  `json:"skipping,omitempty"`
	Orders   map[string]order `json:"orders,omitempty"`
	// Staged is how far a plan is whose nodes go through stages together; nil of a rolling one.
	Staged *staged `json:"staged,omitempty"`
	// ReportsTo is the workflow that the plan and the maintenances that it begins report to: that of the input, until report-to names another.
	ReportsTo *spec.ReportTo `json:"reportsTo,omitempty"`
	// Asked is set where a report-to is not answered yet, Answers is its ID, and Reported is set once the end of the plan was reported.
	Asked    bool            `json:"asked,omitempty"`
	Answers  string          `json:"answers,omitempty"`
	Reported bool            `json:"reported,omitempty"`
	Events   []api.PlanEvent `json:"events,omitempty"`
	// Prepared is what the worker's configuration makes of the plan; nil is that the worker has not said so yet. Invalid is why the plan
	// cannot begin.
	Prepared *settings.Prepared `json:"prepared,omitempty"`
	Invalid  string             `json:"invalid,omitempty"`

	name  string
	spec  plan.Plan
	tiers drainplan.Plan
	// places are where nodes stand in the list; nil if that has to be found out.
	places map[string]int
}

// order is a message to the maintenance of a node.
type order struct {
	Message string `json:"message"`
	Why     string `json:"why,omitempty"`
}

var queries = []controller.Query[*maintenancePlan]{
	{Name: api.QueryStatus, Doc: "phase, counts, what it waits for, and a page of the nodes", Question: status{}},
}

// MaintenancePlan takes many nodes out of service and brings them back, in the order and at the pace of its strategy. Its
// workflow ID is api.PlanID, its input a plan.Plan in JSON. Packed is what a run hands to the next.
func MaintenancePlan(ctx workflow.Context, input converter.RawValue, packed []byte) (api.PlanResult, error) {
	p, err := newPlan(controller.Identify(ctx), inbox.Payload(input))
	if err != nil {
		return api.PlanResult{}, inbox.InvalidSpec(err)
	}
	return p.run(ctx, input, packed)
}

func (p *maintenancePlan) run(ctx workflow.Context, input converter.RawValue, packed []byte) (api.PlanResult, error) {
	err := controller.Run(ctx, p, controller.Program[*maintenancePlan]{
		Type: api.MaintenancePlanType, Messages: messages, Queries: queries, Input: input,
	}, packed)
	return p.result(), err
}

func newPlan(info controller.Info, input []byte) (*maintenancePlan, error) {
	cluster, name, err := api.ParsePlanID(info.WorkflowID)
	if err = info.Check(cluster, err); err != nil {
		return nil, err
	}
	p := &maintenancePlan{
		name: name, Sought: map[string]bool{}, LateRetries: map[string]string{}, Refused: map[string]bool{}, Early: map[string]api.NodeNews{},
		Skipping: map[string]bool{}, Orders: map[string]order{},
	}
	if p.spec, err = plan.Decode(name, input); err != nil {
		return nil, err
	}
	if err := cmp.Or(p.spec.Reserved(), api.CheckReportToOf(p.spec.ReportTo)); err != nil {
		return nil, err
	}
	p.tiers, err = p.spec.Tiers()
	return p, err
}

func (p *maintenancePlan) Begin(now time.Time) {
	p.Phase, p.Since, p.CreatedAt, p.ReportsTo = api.PlanRunning, now, p.Info.Started, p.spec.ReportTo
	if p.spec.Together() {
		p.Staged = begin(p.spec.Stage, p.CreatedAt)
	}
}

// Reset forgets what the run that was reset may have begun since, or sent to the Lockstep. That knows later revisions, of the run that was
// reset; where that had gone further than Idle, the lockstep's answer says so.
func (p *maintenancePlan) Reset(time.Time) {
	p.Known, p.MayRun, p.ListedAt = false, true, time.Time{}
	if s := p.Staged; s != nil {
		s.Asked++
		if s.Revision > 0 {
			s.Revision += revisionsOfACopy
			s.Sent = true // what was sent since is not known
			s.revise()
		}
	}
}

func (p *maintenancePlan) Cancel(now time.Time) { controller.CancelAs(p, cancel{}, now) }

func (p *maintenancePlan) selection() plan.Selection {
	if p.Staged != nil && p.Staged.Selection != nil {
		return *p.Staged.Selection
	}
	return p.spec.Selection
}

func (p *maintenancePlan) maintenanceID(node string) string {
	return api.MaintenanceID(p.Info.Cluster, node, p.spec.Requestor)
}

// node is a node of the plan; nil is none.
func (p *maintenancePlan) node(name string) *plan.Node {
	if p.places == nil {
		p.places = make(map[string]int, len(p.Nodes))
		for i := range p.Nodes {
			p.places[p.Nodes[i].Name] = i
		}
	}
	if i, there := p.places[name]; there {
		return &p.Nodes[i]
	}
	return nil
}

// maxNote bounds what is kept of why a node is in its state, in bytes: there may be thousands.
const maxNote = 200

func setState(n *plan.Node, state plan.State, note string, now time.Time) {
	n.State, n.Since, n.Note = state, now.Unix(), bounds.Words(note, maxNote)
}
