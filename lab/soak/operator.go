package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
)

const (
	// mostCordoned and mostBroken are how many nodes somebody else may have out of service at a time.
	mostCordoned, mostBroken = 3, 2
)

// operator is somebody else who cordons nodes, and nodes that fail by themselves.
type operator struct {
	kube    kubernetes.Interface
	journal *journal
	watcher *watcher
	dice    *rand.Rand
	nodes   int

	cordoned, broken []string
}

// cordon makes a node unschedulable that nobody holds.
func (o *operator) cordon(ctx context.Context) {
	if len(o.cordoned) >= mostCordoned {
		o.uncordon(ctx)
		return
	}
	name := world.NodeName(o.dice.IntN(o.nodes))
	if !slices.Contains(o.cordoned, name) && o.setCordon(ctx, name, true) {
		o.cordoned = append(o.cordoned, name)
	}
}

// uncordon gives back one that it cordoned, unless a maintenance holds it now.
func (o *operator) uncordon(ctx context.Context) {
	if len(o.cordoned) == 0 {
		return
	}
	name := o.cordoned[0]
	o.cordoned = o.cordoned[1:]
	if !o.setCordon(ctx, name, false) {
		o.cordoned = append(o.cordoned, name)
	}
}

// setCordon writes to the very version of the node that it has seen, so that there is no doubt whose cordon it is.
func (o *operator) setCordon(ctx context.Context, name string, to bool) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	node, err := o.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil || node.Spec.Unschedulable == to || node.Annotations[api.HoldersAnnotation] != "" {
		return false
	}
	node.Spec.Unschedulable = to
	did := map[bool]string{true: "cordon by hand", false: "uncordon by hand"}[to]
	node, err = o.kube.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
	o.journal.did(Entry{Did: did, Node: name}, err)
	if err != nil {
		return false
	}
	o.watcher.operated(node)
	return true
}

// breakNode lets a node without workloads fail, and heals those that failed before.
func (o *operator) breakNode(ctx context.Context) {
	if len(o.broken) >= mostBroken {
		o.heal(ctx)
		return
	}
	name := world.NodeName(o.nodes - 1 - o.dice.IntN(spareNodes))
	if !slices.Contains(o.broken, name) && o.setBroken(ctx, name, `"true"`) == nil {
		o.broken = append(o.broken, name)
	}
}

func (o *operator) heal(ctx context.Context) {
	o.broken = slices.DeleteFunc(o.broken, func(name string) bool { return o.setBroken(ctx, name, "null") == nil })
}

func (o *operator) setBroken(ctx context.Context, name, value string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := world.PatchNode(ctx, o.kube, name, `{"metadata":{"labels":{%q:%s}}}`, world.NotReadyLabel, value)
	o.journal.did(Entry{Did: map[bool]string{true: "heal a node", false: "break a node"}[value == "null"], Node: name}, err)
	return err
}

// tidy takes back what is left of all that; a node that is held may have to wait.
func (o *operator) tidy(ctx context.Context) {
	o.heal(ctx)
	for range o.cordoned {
		o.uncordon(ctx)
	}
}

// pause is a time between some and that many more milliseconds.
func pause(r *rand.Rand, least, more int) time.Duration {
	return time.Duration(least+r.IntN(more)) * time.Millisecond
}
