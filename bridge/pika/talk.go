package pika

import (
	"context"
	"fmt"
	"slices"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
)

// talk sends the maintenance what its clients say by annotations, and that the object was deleted. A node that is not ready for production, and
// of which nobody says that it is, stays out of service until a person decides.
func (o *mirrored) talk(ctx context.Context) (said bool, err error) {
	phase := o.view.Phase()
	name, why := o.annotated(phase)
	switch {
	case o.isDeleted() && isBeforeReady(phase):
		if o.view.Status.Spec.Object.LeavesCordon() && o.view.Status.CordonedAt == nil {
			return false, nil // it takes the cordon over that PIKA's scheduler has set, and gives the node back
		}
		name, why = api.MsgCancel, deletedNow
	case name == "" && o.isDeleted() && phase == api.Ready:
		name, why = api.MsgDone, deletedNow
	case name == "" && o.isDeleted() && phase == api.Validating && !o.view.IsUndecided():
		name, why = api.MsgValidated, deletedNow
	}
	if name == "" {
		return false, nil
	}
	return true, o.say(ctx, name, why)
}

const deletedNow = "the object was deleted"

// annotated is the message that an annotation asks for, and why; empty for none.
func (o *mirrored) annotated(phase api.Phase) (name, why string) {
	key := map[api.Phase]string{api.Draining: readyAnnotation, api.Ready: workAnnotation, api.Validating: validatesAnnotation}[phase]
	value := o.object.GetAnnotations()[key]
	switch why = key + " is " + value; {
	case phase == api.Draining && value == "true" && o.view.Status.Spec.Drain.Mode == spec.ModeExternal:
		return api.MsgDrained, why
	case phase == api.Ready && value == "incomplete" && !o.hasSaid(api.MsgFailed):
		return api.MsgFailed, why
	case phase == api.Ready && value == "complete":
		return api.MsgDone, why
	case phase == api.Ready && value == "inprogress" && o.view.Status.StartedAt == nil:
		return api.MsgStarted, why
	case phase == api.Validating && value == "failed" && !o.view.IsUndecided() && !o.hasSaid(api.MsgValidationFailed):
		return api.MsgValidationFailed, why
	}
	return "", ""
}

// hasSaid reports whether the object has said something already: what a person has overruled since is not said again.
func (o *mirrored) hasSaid(name string) bool {
	return slices.ContainsFunc(o.view.Status.Messages, func(m api.Received) bool {
		return m.Name == name && m.By == o.foreign().Principal() && m.Outcome == api.Applied
	})
}

func isBeforeReady(phase api.Phase) bool {
	switch phase {
	case api.AwaitingApproval, api.Pending, api.Scheduled, api.Cordoning, api.WaitingForPods, api.Draining:
		return true
	default:
		return false
	}
}

func (o *mirrored) say(ctx context.Context, name, comment string) error {
	return o.foreign().Say(ctx, o.Drydock, o.view, name, fmt.Sprint(len(o.view.Status.Transitions)+o.view.Status.TransitionsDropped), comment)
}
