// Package maintenance is the kind NodeMaintenance of drydock.dev: each object asks for one maintenance.
package maintenance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/serviceerror"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/mirror"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/spec"
)

// Kind implements mirror.Kind.
type Kind struct{}

// Resource implements mirror.Kind.
func (Kind) Resource() string { return "nodemaintenances.drydock.dev" }

// New implements mirror.Kind.
func (Kind) New() v1alpha1.Object { return &v1alpha1.NodeMaintenance{} }

// Messages implements mirror.Kind.
func (Kind) Messages() []string { return v1alpha1.Messages() }

// Read implements mirror.Kind.
func (k Kind) Read(o v1alpha1.Object, drydock *client.Client) (mirror.Asked, error) {
	m := &mirrored{Kind: k, object: o.(*v1alpha1.NodeMaintenance), drydock: drydock}
	return m, m.decode()
}

// mirrored is an object that is being reconciled, with the maintenance that it asks for.
type mirrored struct {
	Kind
	object  *v1alpha1.NodeMaintenance
	input   client.Input
	asked   spec.Maintenance
	drydock *client.Client
	view    client.View
}

// decode reads what the object asks for, as the workflow will.
func (o *mirrored) decode() (err error) {
	if o.input, err = mirror.Input(o.Kind, o.object, v1alpha1.Absent(o.object.Name)); err != nil {
		return err
	}
	if o.asked, err = o.input.Decode(); err != nil {
		return err
	}
	return o.asked.Reserved()
}

// View implements mirror.Asked.
func (o *mirrored) View() mirror.View {
	return mirror.View{
		Running: o.view.Running(), Over: o.view.Phase().Ended(), Status: statusOf(o.view), End: end(o.view.Phase()), Again: pause(o.view),
	}
}

// pause is after which time a maintenance that runs is looked at again without being called for. One that has not read its input yet may
// refuse it, and end without a call; where many begin at once, to look at each every few seconds would keep them from beginning.
func pause(v client.View) time.Duration {
	if v.Status == nil || v.Status.Spec.Type == "" {
		return min(max(mirror.AskAgain, time.Since(v.Started)), time.Minute)
	}
	return 0
}

// end are the messages that end the maintenance of an object that is deleted: before the node is ready it is cancelled, and at Ready the
// requestor is done. In any other phase it ends by itself, or a person has to decide.
func end(phase api.Phase) []string {
	switch phase {
	case "", api.RequestorFailed, api.Validating, api.Releasing, api.Completed, api.Failed, api.Cancelled, api.NodeGone:
		return nil
	case api.Ready:
		return []string{api.MsgDone}
	default:
		return []string{api.MsgCancel}
	}
}

// Find implements mirror.Asked: the maintenance is among those of the node that began after the object.
func (o *mirrored) Find(ctx context.Context) (found bool, err error) {
	if o.asked.Node == "" { // its spec is not read, and was not before: it does not change
		return false, nil
	}
	all, err := o.drydock.List(ctx, client.ListOptions{Node: o.asked.Node})
	if err != nil {
		return false, err
	}
	// The lists of Temporal lag behind.
	if latest, ok, err := o.drydock.Latest(ctx, o.asked.Node, o.asked.Requestor); err != nil {
		return false, err
	} else if ok && !slices.ContainsFunc(all, func(m client.Maintenance) bool { return m.RunID == latest.RunID }) {
		all = append(all, latest)
	}
	for _, m := range all {
		if m.Requestor != o.asked.Requestor || m.Started.Before(o.object.CreationTimestamp.Add(-clocks)) {
			continue
		}
		status, err := o.drydock.LastStatus(ctx, m)
		if err != nil {
			return false, err
		}
		if o.owns(status.Spec) {
			o.view, err = o.drydock.Observe(ctx, m)
			return err == nil, err
		}
	}
	return false, nil
}

// clocks is how far the clocks of the API server and of Temporal may be apart.
const clocks = 5 * time.Minute

func (o *mirrored) owns(of spec.Maintenance) bool {
	return mirror.Owns(o.Resource(), o.object, of.Object)
}

// Known implements mirror.Asked.
func (o *mirrored) Known(ctx context.Context) (err error) {
	o.view, err = o.known(ctx)
	return err
}

func (o *mirrored) known(ctx context.Context) (v client.View, err error) {
	id, run := o.object.Status.WorkflowID, o.object.Status.RunID
	cluster, node, requestor, err := api.ParseMaintenanceID(id)
	if err != nil || cluster != o.drydock.Cluster() || o.asked.Node != "" && (node != o.asked.Node || requestor != o.asked.Requestor) {
		return v, fmt.Errorf("the status names workflow %s, which is not that of this object: %w", id, mirror.ErrForeign)
	}
	v, err = o.drydock.Observe(ctx, client.Maintenance{Node: node, Requestor: requestor, WorkflowID: id, RunID: run, FirstRunID: run})
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		// The first run of a long one may be past its retention.
		latest, found, failed := o.drydock.Latest(ctx, node, requestor)
		if failed != nil {
			return v, failed
		}
		if !found || latest.FirstRunID != run {
			return v, fmt.Errorf("workflow %s has no run %s any more: %w", id, run, mirror.ErrLost)
		}
		v, err = o.drydock.Observe(ctx, latest)
	}
	if errors.Is(err, client.ErrSuperseded) {
		return v, fmt.Errorf("%w: %w", err, mirror.ErrLost)
	}
	if err == nil && v.Status != nil && v.Status.Spec.Type != "" && !o.owns(v.Status.Spec) {
		return v, fmt.Errorf("workflow %s is not that of this object: %w", id, mirror.ErrForeign)
	}
	return v, err
}

// Start implements mirror.Asked.
func (o *mirrored) Start(ctx context.Context) (err error) {
	o.view, _, err = o.drydock.Start(ctx, o.input)
	var (
		different *client.DifferentError
		releasing *client.ReleasingError
	)
	switch {
	case errors.As(err, &different) && o.owns(different.View.Status.Spec):
		o.view = different.View // a message has changed its settings since
		return nil
	case errors.As(err, &releasing) && o.owns(releasing.View.Status.Spec):
		o.view = releasing.View
		return nil
	case errors.As(err, &different), errors.As(err, &releasing):
		return &mirror.OccupiedError{
			Why: fmt.Sprintf("it begins when the maintenance of %s for %s ends, which somebody else asked for", o.asked.Node, o.asked.Requestor),
		}
	}
	return err
}

// Change implements mirror.Asked: the API server keeps a spec from changing.
func (o *mirrored) Change(context.Context, string) error { return nil }

// Say implements mirror.Asked.
func (o *mirrored) Say(ctx context.Context, name string, said api.Message) (effect string, err error) {
	payload, err := mirror.Complete(api.NodeMaintenanceType, name, nil, said, o.view.FirstRunID)
	if err != nil {
		return "", err
	}
	sent, err := o.drydock.Send(ctx, o.view.Maintenance, name, payload, said.Comment)
	return sent.Effect, err
}
