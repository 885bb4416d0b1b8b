package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/witness"
	"drydock.dev/drydock/lab/world"
)

// judge sees every version of every node, and plays the requestor: it is done as soon as a node is Ready, or has failed.
type judge struct {
	o  options
	mu sync.Mutex
	// held are the nodes that are out of service and were not given up, with their zones; failed those that are.
	held, failed map[string]string
	// taken counts how often each node was taken out of service.
	taken      map[string]int
	mostAtOnce int
	answered   map[string]bool
	wrong      []string
}

func newJudge(o options) *judge {
	return &judge{o: o, held: map[string]string{}, failed: map[string]string{}, taken: map[string]int{}, answered: map[string]bool{}}
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

func (j *judge) watch(ctx context.Context, s *stack) error {
	return witness.Nodes(ctx, s.Cluster.Client, func(_ watch.EventType, n *corev1.Node) { j.see(ctx, s, n) },
		func(err error) { j.violated("%v", err) })
}

func (j *judge) violated(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	world.Say("VIOLATED: %s", text)
	j.wrong = append(j.wrong, text)
}

// see takes one version of one node.
func (j *judge) see(ctx context.Context, s *stack, node *corev1.Node) {
	name, phase := node.Name, api.Phase(node.Labels[api.PhaseLabel])
	j.mu.Lock()
	_, was := j.held[name]
	_, gaveUp := j.failed[name]
	switch {
	case node.Spec.Unschedulable && !was && !gaveUp:
		j.held[name] = node.Labels[corev1.LabelTopologyZone]
		j.taken[name]++
	case !node.Spec.Unschedulable:
		delete(j.held, name)
		delete(j.failed, name)
	}
	if phase == api.RequestorFailed && !gaveUp {
		j.failed[name] = j.held[name]
		delete(j.held, name)
	}
	at, zones := len(j.held), map[string]bool{}
	for _, zone := range j.held {
		zones[zone] = true
	}
	j.mostAtOnce = max(j.mostAtOnce, at)
	answer := phase == api.Ready && !j.answered[name]
	j.answered[name] = j.answered[name] || answer
	j.mu.Unlock()
	if at > j.o.parallel {
		j.violated("%d nodes are held at once", at)
	}
	if len(zones) > 1 {
		j.violated("nodes of %d zones are held at once", len(zones))
	}
	if answer {
		go j.answer(ctx, s, name)
	}
}

// answer says done, or for some nodes failed, until it is heard.
func (j *judge) answer(ctx context.Context, s *stack, name string) {
	id := api.MaintenanceID("", name, requestor)
	for ctx.Err() == nil {
		var err error
		if j.failsAt(name) {
			err = s.Temporal.Client.SignalWorkflow(ctx, id, "", api.MsgFailed, api.FailedMessage{Reason: "the disk is broken"})
		} else {
			err = s.Temporal.Client.SignalWorkflow(ctx, id, "", api.MsgDone, nil)
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
	return len(j.held) + len(j.failed)
}

// heardWithin is how much later than the scheduler's decision a maintenance may note that it was granted its slot.
const heardWithin = 2 * time.Second

// windows checks that every slot was granted while the window was open.
func (j *judge) windows(ctx context.Context, temporal client.Client) error {
	var problems []error
	minutes := map[int]bool{}
	for i := range j.o.nodes {
		name := world.NodeName(i)
		value, err := temporal.QueryWorkflow(ctx, api.MaintenanceID("", name, requestor), "", api.QueryStatus)
		var status api.Status
		if err == nil {
			err = value.Get(&status)
		}
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
	world.Say("at most %d nodes were held at once", j.mostAtOnce)
	var problems []error
	for _, text := range j.wrong {
		problems = append(problems, errors.New(text))
	}
	for name, times := range j.taken {
		if times != 1 {
			problems = append(problems, fmt.Errorf("%s was taken out of service %d times", name, times))
		}
	}
	if len(j.taken) != j.o.nodes {
		problems = append(problems, fmt.Errorf("%d of %d nodes were taken out of service", len(j.taken), j.o.nodes))
	}
	return errors.Join(problems...)
}
