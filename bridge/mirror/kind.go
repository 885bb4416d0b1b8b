// Package mirror reconciles Kubernetes objects with the workflows that they ask for. Each object asks for one workflow, which is found again
// by the object's UID, and shows it. The workflow is the truth: what the object says of it is overwritten, and a workflow that Temporal has
// lost is not started again. Packages beside this one have what differs between the kinds of objects.
package mirror

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/spec"
)

// Kind is a kind of objects.
type Kind interface {
	// Resource is what the objects are, as kubectl has it: nodemaintenances.drydock.dev.
	Resource() string
	// New is an object without content.
	New() v1alpha1.Object
	// Messages are those that annotations send.
	Messages() []string
	// Read reads what an object asks for, as the workflow will. The error says what is wrong with that; what was started for the object before
	// is followed all the same.
	Read(o v1alpha1.Object, drydock *client.Client) (Asked, error)
}

// Asked is the workflow that an object asks for. Known, Find and Start look at it, and View is what they have seen.
type Asked interface {
	// Known looks at the workflow that the object's status names. The error is ErrLost or ErrForeign where that is not the object's.
	Known(ctx context.Context) error
	// Find looks for the object's workflow where the status names none: the bridge may have been stopped before it wrote the status.
	Find(ctx context.Context) (found bool, err error)
	// Start starts the workflow. The error is an OccupiedError where another one has its place.
	Start(ctx context.Context) error
	View() View
	// Change has the workflow follow a spec that has changed, and looks at it again. A change that is refused is a RefusedError, or one of
	// package client. Before is why this change was refused before: it is tried again where that may have become possible.
	Change(ctx context.Context, before string) error
	// Say sends the workflow a message, and returns the effect. The comment is an annotation's value.
	Say(ctx context.Context, name string, said api.Message) (effect string, err error)
}

// View is how a workflow stands.
type View struct {
	// Running: the workflow has not ended. Over: nothing becomes of it any more, though it may still run.
	Running, Over bool
	// Status is what the object shows of it.
	Status v1alpha1.Status
	// End are the messages that end the workflow of an object that is deleted. Without any it ends by itself, or a person has to decide.
	End []string
	// Again is when to look again without being called for; zero is after lookAgain.
	Again time.Duration
}

var (
	// ErrLost marks the error of a workflow that Temporal has no more.
	ErrLost = errors.New("delete the object, and create it again to ask for another")
	// ErrForeign marks the error of a workflow that is not the object's.
	ErrForeign = errors.New("look whether --cluster is that of the workers, and who wrote the status")
)

// OccupiedError says that a workflow runs that is not the object's and has its place.
type OccupiedError struct{ Why string }

func (e *OccupiedError) Error() string { return e.Why }

// RefusedError says why a workflow does not follow a spec that has changed.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return e.Why }

// Input is the input of an object's workflow, with fields for those that the spec leaves out, and the object as who asked for it.
func Input(k Kind, o v1alpha1.Object, absent map[string]string) (client.Input, error) {
	given, origin, err := o.Asks().Input(absent)
	if err != nil {
		return nil, err
	}
	input := client.Input{}
	if err := json.Unmarshal(given, &input); err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	for _, own := range drydocks {
		if _, given := input[own]; given {
			return nil, fmt.Errorf("%s: Drydock alone sets it", own)
		}
	}
	AskFor(input, k.Resource(), o, origin.RequestedBy)
	return input, nil
}

// AskFor has an input name the object that asks for it, and the Kubernetes user who created that; empty where nobody says so.
func AskFor(input client.Input, resource string, o metav1.Object, user string) {
	asks := objectOf(resource, o)
	asks.RequestedBy = user
	input["object"] = asks
}

// Merged is an input with settings in place of its own fields: a JSON merge patch, or empty.
func Merged(given client.Input, settings json.RawMessage) (client.Input, error) {
	text, err := json.Marshal(given)
	if err == nil && len(settings) > 0 {
		text, err = jsonpatch.MergePatch(text, settings)
	}
	input := client.Input{}
	if err == nil {
		err = json.Unmarshal(text, &input)
	}
	return input, err
}

// drydocks are fields of inputs that no object has.
var drydocks = []string{"object", "lockstep", "remediation"}

// Owns reports whether an object has asked for a workflow whose input names who did.
func Owns(resource string, o metav1.Object, asker *spec.Object) bool {
	return asker != nil && asker.Resource == resource && asker.Namespace == o.GetNamespace() && asker.Name == o.GetName() && asker.UID == string(o.GetUID())
}

// Principal is who acts by an object: a user, where one is known.
func Principal(resource string, o metav1.Object, user string) string {
	return v1alpha1.Said(cmp.Or(user, objectOf(resource, o).String()))
}

func objectOf(resource string, o metav1.Object) spec.Object {
	return spec.Object{Resource: resource, Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID())}
}

// Look is a look at a workflow that has the name of its object.
type Look struct {
	client.Run
	// Asker is who asked for the workflow, if Answered. Unanswered is why no worker has said so.
	Asker      *spec.Object
	Answered   bool
	Unanswered error
	// Err is why nothing was seen.
	Err error
}

// Check returns why the workflow is not the one that the object's status names.
func (l Look) Check(resource string, o v1alpha1.Object) error {
	names := o.Shows().Common()
	var none *client.NoneError
	switch {
	case errors.As(l.Err, &none):
		return fmt.Errorf("%w: %w", l.Err, ErrLost)
	case l.Err != nil:
		return l.Err
	case names.WorkflowID != l.WorkflowID:
		return fmt.Errorf("the status names workflow %s, which is not that of this object: %w", names.WorkflowID, ErrForeign)
	case names.RunID != l.FirstRunID:
		return fmt.Errorf("workflow %s has no run %s any more, or another has begun since: %w", names.WorkflowID, names.RunID, ErrLost)
	case l.Answered && !Owns(resource, o, l.Asker):
		return fmt.Errorf("workflow %s is not that of this object: %w", names.WorkflowID, ErrForeign)
	}
	return nil
}

// Found reports whether the workflow is that of an object whose status names none. One that has ended, and of which no worker says who asked
// for it, is none.
func (l Look) Found(resource string, o metav1.Object) (bool, error) {
	var none *client.NoneError
	switch {
	case errors.As(l.Err, &none):
		return false, nil
	case l.Err != nil:
		return false, l.Err
	case l.Answered:
		return Owns(resource, o, l.Asker), nil
	case l.Running():
		return false, l.Unanswered
	}
	return false, nil
}

// Complete is the payload of a message to workflows of a type, with who says it.
func Complete(workflowType, name string, payload any, said api.Message, run string) (any, error) {
	declared, known := api.MessageOf(workflowType, name)
	if !known {
		return nil, fmt.Errorf("a %s takes no message %q", workflowType, name)
	}
	complete, _, err := declared.Complete(payload, said, run)
	return complete, err
}

// Same reports whether two values are the same as JSON.
func Same(a, b any) bool {
	var read [2]any
	for i, value := range []any{a, b} {
		data, err := json.Marshal(value)
		if err != nil || json.Unmarshal(data, &read[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(read[0], read[1])
}

// Condition is a condition of a status.
func Condition(kind string, is bool, reason, message string) metav1.Condition {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// At is a time as the API server keeps it.
func At(t time.Time) *metav1.Time { return &metav1.Time{Time: t.UTC().Truncate(time.Second)} }

// approvals are the messages that need the admission policies.
var approvals = []string{api.MsgApprove, api.MsgDeny}

func isApproval(name string) bool { return slices.Contains(approvals, name) }
