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
	p := &mirrored{Kind: k, object: o.(*v1alpha1.MaintenancePlan), plan: client.PlanOf(drydock, o.GetName()), by: drydock.By()}
	p.wrong = p.decode()
	return p, p.wrong
}

// mirrored is an object that is being reconciled, with the plan that it asks for.
type mirrored struct {
	Kind
	object *v1alpha1.MaintenancePlan
	input  json.RawMessage
	asked  plan.Plan
	// wrong is what is wrong with the spec.
	wrong error
	plan  *client.Plan
	by    string
	view  client.PlanView
}

// decode reads what the object asks for, as the workflow will.
func (p *mirrored) decode() error {
	input, err := mirror.Input(p.Kind, p.object, nil)
	if err == nil {
		p.input, err = json.Marshal(input)
	}
	if err != nil {
		return err
	}
	if p.asked, err = plan.Decode(p.object.Name, p.input); err != nil {
		return err
	}
	return p.asked.Reserved()
}

// View implements mirror.Asked.
func (p *mirrored) View() mirror.View {
	is := statusOf(p.view)
	v := mirror.View{Running: p.view.Running(), Over: is.Ended(), Status: is}
	if s := p.view.Status; s == nil || len(s.Events) == 0 {
		v.Again = mirror.AskAgain // the worker may refuse what the plan names, and it then ends without a call
	}
	if is.Phase != "" && !v.Over {
		v.End = []string{api.MsgCancel}
	}
	return v
}

func (p *mirrored) look(ctx context.Context) (err error) {
	p.view, err = p.plan.Observe(ctx, api.PlanStatusRequest{Limit: 1})
	return err
}

// seen is a look at it.
func (p *mirrored) seen(ctx context.Context) mirror.Look {
	err := p.look(ctx)
	l := mirror.Look{Run: p.view.Run, Unanswered: p.view.Unanswered, Err: err}
	if s := p.view.Status; s != nil {
		l.Answered, l.Asker = true, s.Plan.Object
	}
	return l
}

// Known implements mirror.Asked.
func (p *mirrored) Known(ctx context.Context) error { return p.seen(ctx).Check(p.Kind, p.object) }

// Find implements mirror.Asked.
func (p *mirrored) Find(ctx context.Context) (found bool, err error) {
	return p.seen(ctx).Found(p.Kind, p.object)
}

// Start implements mirror.Asked.
func (p *mirrored) Start(ctx context.Context) error {
	run, err := p.plan.Start(ctx, p.input)
	var runs *client.RunsError
	if errors.As(err, &runs) {
		return &mirror.OccupiedError{Why: fmt.Sprintf("it begins when plan %s ends, which somebody else has started", p.object.Name)}
	}
	if err == nil {
		p.view = client.PlanView{Run: client.Run{
			Name: p.object.Name, WorkflowID: p.plan.WorkflowID(), RunID: run, FirstRunID: run, Started: time.Now(),
			Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		}}
	}
	return err
}

// Change implements mirror.Asked: it sends the messages that change what the spec says otherwise. What was refused is not sent again.
func (p *mirrored) Change(ctx context.Context, before string) error {
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
		said := api.Message{ID: fmt.Sprintf("%s/%d/%s", p.object.UID, p.object.Generation, c.name), By: p.by, Comment: "the object's spec has changed"}
		if _, err := p.send(ctx, c.name, c.payload, said); err != nil {
			return err
		}
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
func (p *mirrored) Say(ctx context.Context, name string, said api.Message) (effect string, err error) {
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

func (p *mirrored) send(ctx context.Context, name string, payload any, said api.Message) (effect string, err error) {
	payload, err = mirror.Complete(api.MaintenancePlanType, name, payload, said, p.view.FirstRunID)
	if err != nil {
		return "", err
	}
	sent, err := p.plan.Send(ctx, name, payload, said.Comment)
	return sent.Effect, err
}
