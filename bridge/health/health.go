// Package health is the kind HealthCheck of drydock.dev: each object asks for the health check of its name.
package health

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/mirror"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/health"
)

// Kind implements mirror.Kind.
type Kind struct{}

// Resource implements mirror.Kind.
func (Kind) Resource() string { return "healthchecks.drydock.dev" }

// New implements mirror.Kind.
func (Kind) New() v1alpha1.Object { return &v1alpha1.HealthCheck{} }

// Messages implements mirror.Kind.
func (Kind) Messages() []string { return []string{api.MsgPause, api.MsgResume} }

// Read implements mirror.Kind.
func (k Kind) Read(o v1alpha1.Object, drydock *client.Client) (mirror.Asked, error) {
	input, err := mirror.Input(k, o, nil)
	c := &mirrored{Asked: Of(k.Resource(), o, drydock), object: o}
	return c, c.Ask(input, err)
}

// mirrored is a HealthCheck that is being reconciled.
type mirrored struct {
	*Asked
	object v1alpha1.Object
}

// Known implements mirror.Asked.
func (c *mirrored) Known(ctx context.Context) error { return c.Look(ctx).Check(c.resource, c.object) }

// Asked is the health check that an object of some kind asks for.
type Asked struct {
	// Nodes is how many nodes that are not healthy are looked at, if more than one.
	Nodes int

	resource string
	object   metav1.Object
	input    json.RawMessage
	asked    health.Spec
	// wrong is what is wrong with the spec.
	wrong error
	check *client.HealthCheck
	by    string
	view  client.HealthCheckView
}

// Of is the health check with the name of an object. Ask says what the object asks for.
func Of(resource string, o metav1.Object, drydock *client.Client) *Asked {
	return &Asked{resource: resource, object: o, check: client.HealthCheckOf(drydock, o.GetName()), by: drydock.By()}
}

// Ask reads the input that an object asks for, as the workflow will. Wrong is what is wrong with the object already.
func (c *Asked) Ask(input client.Input, wrong error) error {
	c.wrong = wrong
	if c.wrong == nil {
		c.input, c.wrong = json.Marshal(input)
	}
	if c.wrong == nil {
		c.asked, c.wrong = health.Decode(c.input)
	}
	if c.wrong == nil {
		c.wrong = health.CheckName(c.object.GetName())
	}
	return c.wrong
}

// Seen is the check as it was seen last.
func (c *Asked) Seen() client.HealthCheckView { return c.view }

// View implements mirror.Asked.
func (c *Asked) View() mirror.View {
	v := mirror.View{Running: c.view.Running(), Status: statusOf(c.view)}
	s := c.view.Status
	switch {
	case !v.Running:
	case s == nil:
		v.Again = mirror.AskAgain
	default:
		if s.WaitingFor != "" { // the worker may refuse what the check names, and it then ends without a call
			v.Again = mirror.AskAgain
		}
		v.End = c.end(s)
	}
	if s != nil && v.Running && (c.object.GetDeletionTimestamp() != nil || isRemoved(*s)) {
		v.Again = time.Second // it ends once Kubernetes and the channels have its last events
	}
	return v
}

func isRemoved(s api.HealthStatus) bool {
	return slices.ContainsFunc(s.Messages, func(m api.Received) bool { return m.Name == api.MsgRemove && m.Outcome == api.Applied })
}

// end are the messages that end the check of an object that is deleted. While nodes are remediated it is not removed: the pause keeps further
// remediations from beginning.
func (c *Asked) end(s *api.HealthStatus) []string {
	paused := slices.ContainsFunc(s.Pauses, func(p health.PauseStatus) bool { return p.By == mirror.Principal(c.resource, c.object, "") })
	if s.Remediating > 0 && !paused {
		return []string{api.MsgPause, api.MsgRemove}
	}
	return []string{api.MsgRemove}
}

func (c *Asked) look(ctx context.Context) (err error) {
	c.view, err = c.check.Observe(ctx, api.HealthStatusRequest{Limit: max(c.Nodes, 1)})
	return err
}

// Look looks at the check.
func (c *Asked) Look(ctx context.Context) mirror.Look {
	err := c.look(ctx)
	l := mirror.Look{Run: c.view.Run, Unanswered: c.view.Unanswered, Err: err}
	if s := c.view.Status; s != nil {
		l.Answered, l.Asker = true, s.Spec.Object
	}
	return l
}

// Find implements mirror.Asked.
func (c *Asked) Find(ctx context.Context) (found bool, err error) {
	return c.Look(ctx).Found(c.resource, c.object)
}

// Start implements mirror.Asked.
func (c *Asked) Start(ctx context.Context) error {
	err := c.check.Start(ctx, c.input, "")
	var runs *client.RunsError
	if errors.As(err, &runs) {
		return &mirror.OccupiedError{
			Why: fmt.Sprintf("it begins when health check %s ends, which somebody else, or a worker's configuration, has started", c.object.GetName()),
		}
	}
	if err == nil {
		err = c.look(ctx)
	}
	return err
}

// Change implements mirror.Asked. What may not change while a node is remediated is tried again when none is.
func (c *Asked) Change(ctx context.Context, before string) error {
	s := c.view.Status
	switch {
	case c.wrong != nil:
		return &mirror.RefusedError{Why: c.wrong.Error()}
	case s == nil:
		return c.view.Unanswered
	case mirror.Same(s.Spec, c.asked):
		return nil
	}
	id := fmt.Sprintf("%s/%d/%s", c.object.GetUID(), c.object.GetGeneration(), api.MsgConfigure)
	if said := slices.ContainsFunc(s.Messages, func(r api.Received) bool { return r.ID == id && r.Outcome == api.Applied }); said {
		id += "/" + digest(s.Spec) // somebody else has changed the check since
	}
	if s.Remediating > 0 {
		if err := s.Spec.Locked(c.asked); err != nil {
			return &mirror.RefusedError{Why: err.Error()}
		}
	}
	if before != "" && slices.ContainsFunc(s.Messages, func(r api.Received) bool { return r.ID == id }) {
		return &mirror.RefusedError{Why: before} // by the worker
	}
	said := api.Message{ID: id, By: c.by, Comment: "the object's spec has changed"}
	if _, err := c.send(ctx, api.MsgConfigure, api.ConfigureHealth{Spec: c.input}, said); err != nil {
		return err
	}
	return c.look(ctx)
}

// digest is short for a spec.
func digest(s health.Spec) string {
	text, _ := json.Marshal(s) // it was read from JSON
	return fmt.Sprintf("%x", sha256.Sum256(text))[:8]
}

// Say implements mirror.Asked. Whoever may resume a check takes back all pauses.
func (c *Asked) Say(ctx context.Context, name string, said api.Message) (effect string, err error) {
	var payload any
	if name == api.MsgResume {
		payload = api.ResumeHealth{All: true}
	}
	return c.send(ctx, name, payload, said)
}

func (c *Asked) send(ctx context.Context, name string, payload any, said api.Message) (effect string, err error) {
	payload, err = mirror.Complete(api.HealthCheckType, name, payload, said, c.view.FirstRunID)
	if err != nil {
		return "", err
	}
	sent, err := c.check.Send(ctx, name, payload, said.Comment)
	return sent.Effect, err
}
