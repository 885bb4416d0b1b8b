package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/world"
)

// bridge serves the objects by which some of the maintenances are asked for.
type bridge struct {
	*world.World
	objects dynamic.ResourceInterface

	mu     sync.Mutex
	at     *devstack.Bridge
	killed bool
	starts int
}

// startBridge has the API server serve the objects, and starts their bridge.
func startBridge(ctx context.Context, w *world.World) (*bridge, error) {
	kube, err := world.Dynamic(w.Cluster.Kubeconfig)
	if err != nil {
		return nil, err
	}
	b := &bridge{World: w}
	if b.objects, err = world.DefineMaintenances(ctx, kube); err != nil {
		return nil, err
	}
	return b, b.keep(ctx)
}

// keep starts a bridge where none runs. The error says so if the last one ended by itself.
func (b *bridge) keep(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var alone error
	if b.at != nil {
		select {
		case <-b.at.Exited():
		default:
			return nil
		}
		if !b.killed {
			alone = fmt.Errorf("the bridge ended by itself: %s", b.at.Tail())
		}
	}
	b.starts++
	at, err := devstack.LaunchBridge(devstack.BridgeOptions{
		Dir: b.Dir, Name: fmt.Sprintf("bridge-%d", b.starts), Kubeconfig: b.Cluster.Kubeconfig, Temporal: b.Temporal,
		Args: []string{"--lease-namespace", "default"},
	})
	if err == nil {
		b.at, b.killed = at, false
	}
	return errors.Join(alone, err)
}

func (b *bridge) kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at != nil {
		b.at.Kill()
		b.killed = true
	}
}

// ask creates the object that asks for a maintenance.
func (b *bridge) ask(ctx context.Context, p plan) error {
	_, err := b.objects.Create(ctx, world.Maintenance(p.requestor, p.input), metav1.CreateOptions{})
	return err
}

// finish deletes all objects, whatever has become of their maintenances, and tells which are left.
func (b *bridge) finish(ctx context.Context) (left []leftover) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := b.objects.List(ctx, metav1.ListOptions{})
	if err != nil {
		return []leftover{{what: "the API server does not answer: " + err.Error()}}
	}
	for i := range list.Items {
		o := &list.Items[i]
		what := "object " + o.GetName() + " is not gone"
		if o.GetDeletionTimestamp() == nil {
			if err := b.objects.Delete(ctx, o.GetName(), metav1.DeleteOptions{}); err != nil {
				what += ": " + err.Error()
			}
		}
		left = append(left, leftover{what: what})
	}
	return left
}
