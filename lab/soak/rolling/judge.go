package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/witness"
	"drydock.dev/drydock/lab/world"
)

// judge sees every version of every node, and plays the requestor: it is done as soon as a node is Ready, or has failed.
type judge struct {
	o        options
	temporal *devstack.Temporal
	wrong    witness.Violations

	mu sync.Mutex
	// out are the nodes that are out of service, held those of them that were not given up.
	out, held *witness.Tally
	failed    map[string]bool
	zones     map[string]string
	answered  map[string]bool
}

func newJudge(o options, temporal *devstack.Temporal) *judge {
	return &judge{
		o: o, temporal: temporal, out: witness.NewTally(), held: witness.NewTally(),
		failed: map[string]bool{}, zones: map[string]string{}, answered: map[string]bool{},
	}
}

// failsAt says which nodes fail: one in the canary's zone, and four further on.
func (j *judge) failsAt(name string) bool {
	for i := range failing {
		if name == world.NodeName((i+1)*j.o.nodes/(failing+1)-1) {
			return true
		}
	}
	return false
}

func (j *judge) watch(ctx context.Context, kube kubernetes.Interface) error {
	return witness.Nodes(ctx, kube, func(_ watch.EventType, n *corev1.Node) { j.see(ctx, n) }, j.wrong.Broke)
}

// see takes one version of one node.
func (j *judge) see(ctx context.Context, node *corev1.Node) {
	name, phase, out := node.Name, api.Phase(node.Labels[api.PhaseLabel]), node.Spec.Unschedulable
	j.mu.Lock()
	j.zones[name] = node.Labels[corev1.LabelTopologyZone]
	j.failed[name] = out && (j.failed[name] || phase == api.RequestorFailed)
	j.out.Note(name, out)
	j.held.Note(name, out && !j.failed[name])
	held, zones := j.held.Now(), map[string]bool{}
	for _, other := range held {
		zones[j.zones[other]] = true
	}
	answer := phase == api.Ready && !j.answered[name]
	j.answered[name] = j.answered[name] || answer
	j.mu.Unlock()
	if len(held) > j.o.parallel {
		j.wrong.Add("%d nodes are held at once", len(held))
	}
	if len(zones) > 1 {
		j.wrong.Add("nodes of %d zones are held at once", len(zones))
	}
	if answer {
		go j.answer(ctx, name)
	}
}

// answer says done, or for some nodes failed, until it is heard.
func (j *judge) answer(ctx context.Context, name string) {
	id := api.MaintenanceID("", name, requestor)
	for ctx.Err() == nil {
		var err error
		if j.failsAt(name) {
			err = j.temporal.Client.SignalWorkflow(ctx, id, "", api.MsgFailed, api.FailedMessage{Reason: "the disk is broken"})
		} else {
			err = j.temporal.Client.SignalWorkflow(ctx, id, "", api.MsgDone, nil)
		}
		if err == nil {
			return
		}
		_ = world.Sleep(ctx, time.Second) // the loop looks at the context
	}
}

func (j *judge) heldNow() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.out.Now())
}

// heardWithin is how much later than the scheduler's decision a maintenance may note that it was granted its slot.
const heardWithin = 2 * time.Second

// windows checks that every slot was granted while the window was open.
func (j *judge) windows(ctx context.Context) error {
	var problems []error
	minutes := map[int]bool{}
	for i := range j.o.nodes {
		name := world.NodeName(i)
		status, err := world.Ask[api.Status](ctx, j.temporal.Client, api.MaintenanceID("", name, requestor), api.QueryStatus)
		switch {
		case err != nil:
			problems = append(problems, err)
		case status.Slot == nil || status.Slot.GrantedAt == nil:
			problems = append(problems, fmt.Errorf("%s had no slot", name))
		default:
			at := status.Slot.GrantedAt.UTC()
			minutes[at.Minute()/3] = true
			if opened := at.Truncate(3 * time.Minute); at.Sub(opened) >= openFor+heardWithin {
				problems = append(problems, fmt.Errorf("%s was granted its slot at %s, and the window was closed", name, at.Format("15:04:05.000")))
			}
		}
	}
	world.Say("slots were granted in %d openings of the window", len(minutes))
	if len(minutes) < 2 {
		problems = append(problems, errors.New("the window did not close on the way: nothing was tested"))
	}
	return errors.Join(problems...)
}

// verdict is what was wrong.
func (j *judge) verdict() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	world.Say("at most %d nodes were held at once", j.held.Most())
	var problems []error
	for _, text := range j.wrong.Found() {
		problems = append(problems, errors.New(text))
	}
	for i := range j.o.nodes {
		if name := world.NodeName(i); j.out.Times(name) != 1 {
			problems = append(problems, fmt.Errorf("%s was taken out of service %d times", name, j.out.Times(name)))
		}
	}
	return errors.Join(problems...)
}
