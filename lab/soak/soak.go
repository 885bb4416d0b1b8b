package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/witness"
	"drydock.dev/drydock/lab/world"
)

const (
	progressEvery = 10 * time.Second
	// mostOpen is how many maintenances run at a time.
	mostOpen = 40
)

// options are what a run is told.
type options struct {
	world.Trial
	length time.Duration
	log    string
}

// soak is a run.
type soak struct {
	options
	stack    *stack
	journal  *journal
	watcher  *watcher
	fleet    *fleet
	controls *controls
	operator *operator
	faults   *faults
	// imprints are what the nodes were like in the beginning.
	imprints map[string]string
	said     time.Time
}

// Parts of a run that choose by themselves.
const (
	partReceiver uint64 = iota + 1
	partSenders
	partControls
	partOperator
	partFaults
	partPace
)

// run soaks, and returns what was found that must never be.
func run(ctx context.Context, o options) (found []Violation, err error) {
	log, err := newJournal(o.log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.close()) }()
	log.did(Entry{Did: "begin", Detail: fmt.Sprintf("seed %d, %s, %d nodes", o.Seed, o.length, o.Nodes)}, nil)
	starting := fmt.Sprintf("seed %d: starting a control plane with %d nodes, Temporal and two workers", o.Seed, o.Nodes)
	err = world.Run(ctx, "soak", starting, world.Options{Nodes: o.Nodes, Audit: true}, func(w *world.World) error {
		err := soakIn(ctx, w, o, log)
		if found = log.found(); err == nil && len(found) > 0 {
			err = fmt.Errorf("%d violations", len(found))
		}
		return err
	})
	return found, err
}

// soakIn soaks in a world until it is judged.
func soakIn(ctx context.Context, w *world.World, o options, log *journal) error {
	servers := &stack{World: w, receiver: newReceiver(world.Dice(o.Seed, partReceiver))}
	// The workers end after the receiver. Nobody judges what they still send.
	defer servers.receiver.server.Config.Close()
	if err := servers.start(ctx, o.Nodes); err != nil {
		return err
	}
	defer servers.bridge.kill()
	s := newSoak(o, servers, log)
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if err := s.begin(ctx, watching); err != nil {
		return err
	}
	s.work(ctx)
	if ctx.Err() != nil {
		s.faults.recovering.Wait()
		return errors.New("interrupted: whether anything was left is not judged")
	}
	world.Say("nothing new is begun; everything is to be finished within %s", o.Settle)
	if err := s.settle(ctx, o.Settle); err != nil {
		return err
	}
	_ = world.Sleep(ctx, 2*orderedAfter) // what follows looks at the context
	ended, err := s.judgeRequests()
	world.Say("%d pods were told to end", ended)
	if err == nil && ended == 0 {
		err = errors.New("no pod was evicted: nothing was tested")
	}
	return errors.Join(err, s.judgeObjects(ctx))
}

func newSoak(o options, servers *stack, log *journal) *soak {
	s := &soak{options: o, stack: servers, journal: log, imprints: map[string]string{}}
	s.watcher = &watcher{
		judge:   newJudge(firstLimits.parallel, firstLimits.unavailable, zoneLimit, minAvailable(), log.violated),
		journal: log, latest: map[string]*corev1.Node{}, byOperator: map[int64]bool{},
	}
	s.fleet = &fleet{temporal: servers.Temporal.Client, journal: log, bridge: servers.bridge}
	s.controls = &controls{
		temporal: servers.Temporal.Client, journal: log, watcher: s.watcher, dice: world.Dice(o.Seed, partControls),
		may: []limits{firstLimits}, ever: []limits{firstLimits},
	}
	s.operator = &operator{kube: servers.Cluster.Client, journal: log, watcher: s.watcher, dice: world.Dice(o.Seed, partOperator), nodes: o.Nodes}
	s.faults = &faults{
		stack: servers, fleet: s.fleet, controls: s.controls, operator: s.operator, journal: log, dice: world.Dice(o.Seed, partFaults),
	}
	return s
}

// begin waits until all is as it is to be in the end.
func (s *soak) begin(ctx, watching context.Context) error {
	if err := s.watcher.watch(watching, s.stack.Cluster.Client); err != nil {
		return err
	}
	if err := world.Eventually(ctx, 3*time.Minute, "the workloads' pods are Ready", s.watcher.settled); err != nil {
		return err
	}
	if err := world.Eventually(ctx, time.Minute, "the scheduler answers", func() error {
		_, err := s.controls.state(ctx)
		return err
	}); err != nil {
		return err
	}
	nodes, err := s.stack.Cluster.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range nodes.Items {
		s.imprints[nodes.Items[i].Name] = witness.Imprint(&nodes.Items[i])
	}
	return nil
}

// work does everything at once until the time is over.
func (s *soak) work(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.length)
	defer cancel()
	pace := world.Dice(s.Seed, partPace)
	senders := &senders{fleet: s.fleet, dice: world.Dice(s.Seed, partSenders)}
	requestors := &requestors{fleet: s.fleet, watcher: s.watcher}
	number := 0
	var all sync.WaitGroup
	for _, part := range []struct {
		every func() time.Duration
		turn  func(context.Context)
	}{
		{func() time.Duration { return 700 * time.Millisecond }, func(ctx context.Context) {
			if len(s.fleet.active()) < mostOpen {
				number++
				s.fleet.start(ctx, newPlan(s.Seed, number, s.Nodes))
			}
		}},
		{func() time.Duration { return 500 * time.Millisecond }, requestors.turn},
		{func() time.Duration { return pause(senders.dice, 200, 1200) }, senders.turn},
		{func() time.Duration { return pause(pace, 800, 2400) }, s.faults.turn},
		{func() time.Duration { return 2 * time.Second }, s.keepLooking},
		{func() time.Duration { return progressEvery }, s.tell},
	} {
		all.Go(func() {
			for world.Sleep(ctx, part.every()) == nil {
				part.turn(ctx)
			}
		})
	}
	all.Wait()
}

// keepLooking asks what runs; Temporal may be away.
func (s *soak) keepLooking(ctx context.Context) {
	if err := s.fleet.look(ctx); err != nil {
		s.journal.did(Entry{Did: "look"}, err)
	}
	s.controls.confirm(ctx)
	s.faults.lookAtWorkers(ctx)
	s.keepBridge(ctx)
}

// keepBridge starts the bridge again where it has been killed.
func (s *soak) keepBridge(ctx context.Context) {
	if err := s.stack.bridge.keep(ctx); err != nil {
		s.journal.violated(Violation{At: time.Now(), Rule: ruleProcess, What: err.Error()})
	}
}

func (s *soak) tell(context.Context) {
	world.Say("%d started, %d open, %d nodes held; %d messages, %d faults; %d violations",
		s.journal.count("start"), len(s.fleet.openOf(api.NodeMaintenanceType)), s.watcher.held(),
		s.journal.count("message")+s.journal.count("wrong message")+s.journal.count("forged message")+s.journal.count("wrong message to the scheduler"),
		s.journal.count("reset")+s.journal.count("reset the scheduler")+s.journal.count("terminate")+s.journal.count("terminate the scheduler")+
			s.journal.count("cancel workflow")+s.journal.count("kill worker-1")+s.journal.count("kill worker-2")+s.journal.count("stop worker-1")+
			s.journal.count("stop worker-2")+s.journal.count("kill Temporal")+s.journal.count("kill the bridge"),
		len(s.journal.found()))
}
