// Package plan is the kind MaintenancePlan of drydock.dev: each object asks for the plan of its name.
package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/mirror"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/plan"
)

// Kind implements mirror.Kind.
type Kind struct{}

// Resource implements mirror.Kind.
func (Kind) Resource() string { return "maintenanceplans.drydock.dev" }

// New implements mirror.Kind.
func (Kind) New() v1alpha1.Object { return &v1alpha1.MaintenancePlan{} }

// Messages implements mirror.Kind.
func (Kind) Messages() []string {
	return []string{api.MsgPause, api.MsgResume, api.MsgApprove, api.MsgSkip, api.MsgRetry, api.MsgSetStage, api.MsgCancel}
}

// Read implements mirror.Kind.
func (k Kind) Read(o v1alpha1.Object, drydock *client.Client) (mirror.Asked, error) {
	input, err := mirror.Input(k, o, nil)
	p := Of(k, o, drydock)
	return p, p.Ask(input, err)
}

// Asked is the plan that an object of some kind asks for.
type Asked struct {
	// Nodes is how many nodes of the plan are looked at, if more than one.
	Nodes int

	kind   mirror.Kind
	object v1alpha1.Object
	input  json.RawMessage
	asked  plan.Plan
	// wrong is what is wrong with the spec.
	wrong error
	plan  *client.Plan
	by    string
	view  client.PlanView
}

// Of is the plan with the name of an object. Ask says what the object asks for.
func Of(k mirror.Kind, o v1alpha1.Object, drydock *client.Client) *Asked {
	return &Asked{kind: k, object: o, plan: client.PlanOf(drydock, o.GetName()), by: drydock.By()}
}

// Ask reads the input that an object asks for, as the workflow will. Wrong is what is wrong with the object already.
func (p *Asked) Ask(input client.Input, wrong error) error {
	p.wrong = wrong
	if p.wrong == nil {
		p.input, p.wrong = json.Marshal(input)
	}
	if p.wrong == nil {
		p.asked, p.wrong = plan.Decode(p.object.GetName(), p.input)
	}
	if p.wrong == nil {
		p.wrong = p.asked.Reserved()
	}
	return p.wrong
}

// Move asks for a stage that no plan begins in.
func (p *Asked) Move(to api.Stage) { p.asked.Stage = to }

// Seen is the plan as it was seen last.
func (p *Asked) Seen() api.Plan { return p.view.Known() }

// Status is what a MaintenancePlan shows of it.
func (p *Asked) Status() *v1alpha1.MaintenancePlanStatus { return statusOf(p.view) }

// View implements mirror.Asked.
func (p *Asked) View() mirror.View {
	is := p.Status()
	v := mirror.View{Running: p.view.Running(), Over: is.Ended(), Status: is}
	if s := p.view.Status; s == nil || len(s.Events) == 0 {
		v.Again = mirror.AskAgain // the worker may refuse what the plan names, and it then ends without a call
	}
	if is.Phase != "" && !v.Over {
		v.End = []string{api.MsgCancel}
	}
	return v
}

func (p *Asked) look(ctx context.Context) (err error) {
	p.view, err = p.plan.Observe(ctx, api.PlanStatusRequest{Limit: max(p.Nodes, 1)})
	return err
}

// seen is a look at it.
func (p *Asked) seen(ctx context.Context) mirror.Look {
	err := p.look(ctx)
	l := mirror.Look{Run: p.view.Run, Unanswered: p.view.Unanswered, Err: err}
	if s := p.view.Status; s != nil {
		l.Answered, l.Asker = true, s.Plan.Object
	}
	return l
}

// Known implements mirror.Asked.
func (p *Asked) Known(ctx context.Context) error {
	return p.seen(ctx).Check(p.kind.Resource(), p.object)
}

// Find implements mirror.Asked.
func (p *Asked) Find(ctx context.Context) (found bool, err error) {
	return p.seen(ctx).Found(p.kind.Resource(), p.object)
}

// Start implements mirror.Asked.
func (p *Asked) Start(ctx context.Context) error {
	run, err := p.plan.Start(ctx, p.input)
	var runs *client.RunsError
	if errors.As(err, &runs) {
		return &mirror.OccupiedError{Why: fmt.Sprintf("it begins when plan %s ends, which somebody else has started", p.object.GetName())}
	}
	if err == nil {
		p.view = client.PlanView{Run: client.Run{
			Name: p.object.GetName(), WorkflowID: p.plan.WorkflowID(), RunID: run, FirstRunID: run, Started: time.Now(),
			Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		}}
	}
	return err
}

// Change implements mirror.Asked: it sends the messages that change what the spec says otherwise. What was refused is not sent again.
func (p *Asked) Change(ctx context.Context, before string) error {
	switch {
	case p.wrong != nil:
		return &mirror.RefusedError{Why: p.wrong.Error()}
	case p.view.Status == nil:
		return p.view.Unanswered
	}
	changes := changesTo(p.asked, *p.view.Status)
	if len(changes) > 0 && before != "" {
		return &mirror.RefusedError{Why: before}
	}
	for _, c := range changes {
		said := api.Message{ID: fmt.Sprintf("%s/%d/%s", p.object.GetUID(), p.object.GetGeneration(), c.name), By: p.by, Comment: "the object's spec has changed"}
		if _, err := p.send(ctx, c.name, c.payload, said); err != nil {
			return err
		}
	}
	if p.asked.Together() && !mirror.Same(p.asked.DrainPlan, p.view.Status.Plan.DrainPlan) { // the API server's rule sees no selectors
		return &mirror.RefusedError{Why: "drainPlan does not change: create another object"}
	}
	if len(changes) == 0 {
		return nil
	}
	return p.look(ctx)
}

// change is a message that changes a plan.
type change struct {
	name    string
	payload any
}

// changesTo are the messages by which a plan that runs becomes the one that is asked for.
func changesTo(asked plan.Plan, s api.PlanStatus) (all []change) {
	switch {
	case !asked.Together():
		if pace := asked.Strategy.MaxParallel; !pace.Equal(s.Plan.Strategy.MaxParallel) {
			all = append(all, change{api.MsgSetPace, api.SetPace{MaxParallel: pace}})
		}
		return all
	case s.MoreNames > 0 || !mirror.Same(asked.Selection, s.Plan.Selection):
		all = append(all, change{api.MsgSetSelector, api.SetSelector{Selection: asked.Selection}})
	}
	if s.Stages != nil && s.Stages.Stage.To(asked.Stage) == nil { // a message may have set a later one
		all = append(all, change{api.MsgSetStage, api.SetStage{Stage: asked.Stage}})
	}
	return all
}

// Say implements mirror.Asked. The value of an annotation that is about a node, or a stage, begins with that.
func (p *Asked) Say(ctx context.Context, name string, said api.Message) (effect string, err error) {
	var payload any
	first, rest, _ := strings.Cut(strings.TrimSpace(said.Comment), " ")
	switch name {
	case api.MsgSkip, api.MsgRetry:
		payload, said.Comment = api.NodeOfPlan{Node: first}, rest
	case api.MsgSetStage:
		payload, said.Comment = api.SetStage{Stage: api.Stage(first)}, rest
	}
	return p.send(ctx, name, payload, said)
}

func (p *Asked) send(ctx context.Context, name string, payload any, said api.Message) (effect string, err error) {
	payload, err = mirror.Complete(api.MaintenancePlanType, name, payload, said, p.view.FirstRunID)
	if err != nil {
		return "", err
	}
	sent, err := p.plan.Send(ctx, name, payload, said.Comment)
	return sent.Effect, err
}
