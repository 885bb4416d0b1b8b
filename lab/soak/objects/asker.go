package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/witness"
	"drydock.dev/drydock/lab/world"
)

// asker asks for maintenances by objects, and ends them.
type asker struct {
	options
	*world.World
	bridge  *devstack.Bridge
	objects dynamic.ResourceInterface
	judge   *judge
}

// askers is how many requests are sent at a time.
const askers = 16

// create makes objects of a prefix, with further fields in their specs.
func (a *asker) create(ctx context.Context, prefix string, count int, further map[string]any) error {
	var all errgroup.Group
	all.SetLimit(askers)
	for i := range count {
		all.Go(func() error {
			spec := map[string]any{"node": world.NodeName(i % a.Nodes), "drain": map[string]any{"mode": "none"}}
			maps.Copy(spec, further)
			_, err := a.objects.Create(ctx, world.Maintenance(fmt.Sprintf("%s-%d", prefix, i), spec), metav1.CreateOptions{})
			return err
		})
	}
	return all.Wait()
}

// maintain asks for all maintenances at once, ends each when its node is Ready, and judges them.
func (a *asker) maintain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.Settle)
	defer cancel()
	began := time.Now()
	if err := witness.Objects(ctx, a.objects, a.judge.see, a.judge.fail); err != nil {
		return err
	}
	var all errgroup.Group
	killing, stop := context.WithCancel(ctx)
	defer stop()
	all.Go(func() error { return a.goWrong(killing) })
	all.Go(func() error {
		defer stop()
		if err := a.create(ctx, "asks", a.options.objects, nil); err != nil {
			return err
		}
		world.Say("%d objects are there", a.options.objects)
		return a.end(ctx)
	})
	if err := all.Wait(); err != nil {
		return err
	}
	if err := a.isOnce(ctx); err != nil {
		return err
	}
	_, peak, err := world.Resident(a.bridge.PID())
	if err != nil {
		return err
	}
	world.Say("%d maintenances ended in %s; %s; the last bridge had %.0f MB at most",
		a.options.objects, time.Since(began).Round(time.Second), a.judge.tell(), peak)
	return a.judge.verdict(a.options.objects)
}

// end ends what is Ready until all have ended: an object of an even number is deleted, which gives its node back, and one of an odd number
// is told done.
func (a *asker) end(ctx context.Context) error {
	said := time.Now()
	for world.Sleep(ctx, 500*time.Millisecond) == nil {
		if err := a.judge.lost(); err != nil {
			return err
		}
		ready, ended := a.judge.ready()
		if ended == a.options.objects {
			return nil
		}
		if time.Since(said) > 15*time.Second {
			said = time.Now()
			world.Say("%s", a.judge.tell())
		}
		var all errgroup.Group
		all.SetLimit(askers)
		for _, o := range ready {
			all.Go(func() error { return a.endOne(ctx, o) })
		}
		if err := all.Wait(); err != nil {
			return err
		}
	}
	return fmt.Errorf("not all have ended: %s: %w", a.judge.tell(), ctx.Err())
}

func (a *asker) endOne(ctx context.Context, o handed) (err error) {
	if o.deletes {
		err = a.objects.Delete(ctx, o.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &o.uid}})
	} else {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"done"}}}`, v1alpha1.Annotation(api.MsgDone))
		_, err = a.objects.Patch(ctx, o.name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// isOnce looks whether each object had one maintenance, which was completed.
func (a *asker) isOnce(ctx context.Context) error {
	drydock := client.New(a.Temporal.Client, client.Options{})
	return world.Eventually(ctx, time.Minute, "each object had one maintenance", func() error {
		all, err := drydock.List(ctx, client.ListOptions{})
		if err != nil {
			return err
		}
		runs := map[string]int{}
		var problems []error
		for _, m := range all {
			if runs[m.Requestor]++; runs[m.Requestor] > 1 || m.Running() {
				problems = append(problems, fmt.Errorf("%s: %d maintenances, the last %s", m.WorkflowID, runs[m.Requestor], m.Execution))
			}
		}
		if len(runs) != a.options.objects {
			problems = append(problems, fmt.Errorf("%d maintenances for %d objects", len(runs), a.options.objects))
		}
		return errors.Join(problems...)
	})
}

// wait has further objects whose maintenances wait, and reads the memory of a bridge that begins with them.
func (a *asker) wait(ctx context.Context) error {
	if a.waiting == 0 {
		return nil
	}
	tomorrow := time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	if err := a.create(ctx, "waits", a.waiting, map[string]any{"notBefore": tomorrow}); err != nil {
		return err
	}
	if err := world.Eventually(ctx, a.Settle, "all objects show that they wait", func() error {
		if known := a.count(ctx); known < a.waiting {
			return fmt.Errorf("%d of %d", known, a.waiting)
		}
		return nil
	}); err != nil {
		return err
	}
	now, peak, err := world.Resident(a.bridge.PID())
	if err != nil {
		return err
	}
	world.Say("%d objects wait: the bridge that started them has %.0f MB, and had %.0f at most", a.waiting, now, peak)
	a.bridge.Kill()
	if err := a.startBridge(ctx); err != nil {
		return err
	}
	if err := world.Sleep(ctx, restful); err != nil {
		return err
	}
	if now, peak, err = world.Resident(a.bridge.PID()); err != nil {
		return err
	}
	world.Say("a bridge that finds them has %.0f MB %s after it started, and had %.0f at most", now, restful, peak)
	if peak > maxMemory {
		return fmt.Errorf("the bridge needs %.0f MB for %d objects, and %d are allowed", peak, a.waiting, maxMemory)
	}
	return nil
}

const (
	// restful is how long a bridge has to look at all objects after it has started.
	restful = time.Minute
	// maxMemory is what a bridge may need for all objects that wait, in MB.
	maxMemory = 150
)

// count counts the objects that wait and show a phase.
func (a *asker) count(ctx context.Context) (known int) {
	list, err := a.objects.List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0
	}
	for _, o := range list.Items {
		if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); phase != "" && !api.Phase(phase).Ended() {
			known++
		}
	}
	return known
}
