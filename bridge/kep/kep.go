// Package kep is the kind NodeMaintenance as KEP-4212 has it, behind a group of ours: so that it can be tried before Kubernetes has it. Each
// object asks for the plan of its name, of strategy allAtOnce.
package kep

import (
	"encoding/json"
	"errors"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/kep/objects"
	"drydock.dev/drydock/bridge/mirror"
	bridgeplan "drydock.dev/drydock/bridge/plan"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/plan"
)

// Kind implements mirror.Kind.
type Kind struct{}

// Resource implements mirror.Kind.
func (Kind) Resource() string { return objects.Resource }

// New implements mirror.Kind.
func (Kind) New() v1alpha1.Object { return &objects.NodeMaintenance{} }

// Messages implements mirror.Kind: the KEP's object has its stage alone to say something by.
func (Kind) Messages() []string { return nil }

// What bounds the nodes of a status: an API server keeps some 1.5 MB of an object, and a drain plan may have large selectors, which are in the
// targets of each node.
const (
	maxNodes     = 100
	maxNodeBytes = 500_000
)

// cut leaves nodes out where they are too large together.
func cut(nodes []api.KEPNode, more int) ([]api.KEPNode, int) {
	for len(nodes) > 0 {
		if text, err := json.Marshal(nodes); err == nil && len(text) <= maxNodeBytes {
			break
		}
		half := len(nodes) / 2
		nodes, more = nodes[:half], more+len(nodes)-half
	}
	return nodes, more
}

// Read implements mirror.Kind.
func (k Kind) Read(o v1alpha1.Object, drydock *client.Client) (mirror.Asked, error) {
	p := asked{Asked: bridgeplan.Of(k, o, drydock), object: o.(*objects.NodeMaintenance)}
	p.Nodes = maxNodes
	input, complete, err := inputOf(k, p.object)
	if err = p.Ask(input, err); err == nil && complete {
		p.Move(api.StageComplete)
		if p.object.Status.RunID == "" {
			err = errNothing // unless the plan is found that was started for it
		}
	}
	return p, err
}

// errNothing says that an object asks for the end of nothing.
var errNothing = errors.New("spec.stage: Complete, and nothing was begun: create the object with Idle, Cordon or Drain")

// inputOf is the input of an object's plan. A plan does not begin in stage Complete.
func inputOf(k Kind, o *objects.NodeMaintenance) (input client.Input, complete bool, err error) {
	var fields map[string]any
	if err := json.Unmarshal(o.Spec.Raw, &fields); err != nil {
		return nil, false, err
	}
	if complete = fields["stage"] == string(api.StageComplete); complete {
		delete(fields, "stage")
	}
	annotations := map[string]any{}
	if include, given := o.Annotations[plan.IncludeAnnotation]; given {
		annotations[plan.IncludeAnnotation] = include
	}
	_, input, err = plan.FromKEP(map[string]any{
		"apiVersion": objects.GroupVersion.String(), "kind": "NodeMaintenance", "spec": fields,
		"metadata": map[string]any{"name": o.Name, "annotations": annotations},
	})
	if err == nil {
		mirror.AskFor(input, k.Resource(), o, "")
	}
	return input, complete, err
}

// asked implements mirror.Asked.
type asked struct {
	*bridgeplan.Asked
	object *objects.NodeMaintenance
}

// View implements mirror.Asked.
func (p asked) View() mirror.View {
	v := p.Asked.View()
	of := p.Status()
	is := &objects.Status{Shared: of.Shared, Phase: of.Phase}
	if seen := p.Seen(); seen.Stages != nil {
		for _, stage := range seen.Stages.Begun {
			is.StageStatuses = append(is.StageStatuses, objects.StageStatus{Name: stage.Stage, StartTimestamp: mirror.At(stage.At)})
		}
		is.NodeStatuses, is.MoreNodes = cut(api.KEPOf(seen).Status.NodeStatuses, seen.MoreNodes)
	} else {
		last := p.object.Status
		is.StageStatuses, is.NodeStatuses, is.MoreNodes = last.StageStatuses, last.NodeStatuses, last.MoreNodes
	}
	v.Status = is
	return v
}
