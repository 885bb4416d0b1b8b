package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
)

// faults lets things happen that nobody means to happen: resets, terminations, and processes that end.
type faults struct {
	stack    *stack
	fleet    *fleet
	controls *controls
	operator *operator
	journal  *journal
	dice     *rand.Rand

	// recovering are processes that are to come back.
	recovering   sync.WaitGroup
	temporalDown atomic.Bool
}

// fault is one kind, and how often it is chosen.
type fault struct {
	weight int
	happen func(*faults, context.Context)
}

var kinds = []fault{
	{16, func(f *faults, ctx context.Context) { f.resetMaintenance(ctx, 20) }},
	{2, func(f *faults, ctx context.Context) { f.resetScheduler(ctx) }},
	{8, func(f *faults, ctx context.Context) { f.endMaintenance(ctx, "terminate", f.terminate) }},
	{5, func(f *faults, ctx context.Context) { f.endMaintenance(ctx, "cancel workflow", f.cancelWorkflow) }},
	{2, func(f *faults, ctx context.Context) { f.terminateScheduler(ctx) }},
	{3, func(f *faults, ctx context.Context) { f.controls.freeze(ctx, false) }},
	{4, func(f *faults, ctx context.Context) { f.controls.freeze(ctx, true) }},
	{12, func(f *faults, ctx context.Context) { f.controls.thaw(ctx, chance(f.dice, 50)) }},
	{8, func(f *faults, ctx context.Context) { f.controls.setLimits(ctx) }},
	{3, func(f *faults, ctx context.Context) { f.controls.setWrongLimits(ctx) }},
	{8, func(f *faults, ctx context.Context) { f.operator.cordon(ctx) }},
	{8, func(f *faults, ctx context.Context) { f.operator.uncordon(ctx) }},
	{4, func(f *faults, ctx context.Context) { f.operator.breakNode(ctx) }},
	{4, func(f *faults, ctx context.Context) { f.operator.heal(ctx) }},
	{7, func(f *faults, ctx context.Context) { f.endWorker(ctx, true) }},
	{2, func(f *faults, ctx context.Context) { f.endWorker(ctx, false) }},
	{1, func(f *faults, ctx context.Context) { f.endWorker(ctx, true); f.endWorker(ctx, true) }},
	{2, func(f *faults, ctx context.Context) { f.killTemporal(ctx) }},
	{3, func(f *faults, _ context.Context) {
		f.stack.bridge.kill()
		f.journal.did(Entry{Did: "kill the bridge"}, nil)
	}},
}

func (f *faults) turn(ctx context.Context) {
	all := 0
	for _, k := range kinds {
		all += k.weight
	}
	n := f.dice.IntN(all)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			k.happen(f, ctx)
			return
		}
	}
}

// resetMaintenance lets a maintenance go on from an earlier point of its history, now and then one that has ended.
func (f *faults) resetMaintenance(ctx context.Context, endedPercent int) {
	m := f.fleet.anyOf(f.dice, endedPercent)
	if m == nil {
		return
	}
	to, err := f.reset(ctx, m.id, 0)
	f.journal.did(Entry{Did: "reset", Node: m.node, Workflow: m.id, Detail: to}, err)
}

// resetScheduler goes back a little: what operators decided before that must hold.
func (f *faults) resetScheduler(ctx context.Context) {
	f.controls.doubt()
	to, err := f.reset(ctx, api.SchedulerID(""), 50)
	f.journal.did(Entry{Did: "reset the scheduler", Workflow: api.SchedulerID(""), Detail: to}, err)
}

// reset goes back to one of the workflow tasks of the latest run, the first from percent on.
func (f *faults) reset(ctx context.Context, id string, percent int) (to string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return world.ResetByChance(ctx, f.stack.Temporal.Client, f.dice, id, percent)
}

func (f *faults) endMaintenance(ctx context.Context, did string, end func(context.Context, string) error) {
	active := f.fleet.active()
	if len(active) == 0 {
		return
	}
	m := pick(f.dice, active)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	f.journal.did(Entry{Did: did, Node: m.node, Workflow: m.id}, end(ctx, m.id))
}

func (f *faults) terminate(ctx context.Context, id string) error {
	return f.stack.Temporal.Client.TerminateWorkflow(ctx, id, "", "soak: by hand")
}

func (f *faults) cancelWorkflow(ctx context.Context, id string) error {
	return f.stack.Temporal.Client.CancelWorkflow(ctx, id, "")
}

// terminateScheduler ends the scheduler; the workers start another.
func (f *faults) terminateScheduler(ctx context.Context) {
	f.controls.doubt()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	f.journal.did(Entry{Did: "terminate the scheduler", Workflow: api.SchedulerID("")}, f.terminate(ctx, api.SchedulerID("")))
}

// endWorker ends a worker that runs, and starts it again a little later.
func (f *faults) endWorker(ctx context.Context, kill bool) {
	w := pick(f.dice, f.stack.Workers)
	away := pause(f.dice, 0, 12000)
	at := w.Take()
	if at == nil {
		return
	}
	did, err := "kill "+w.Name, error(nil)
	if kill {
		at.Kill()
	} else {
		did = "stop " + w.Name
		err = at.Stop(time.Minute)
	}
	f.journal.did(Entry{Did: did, Detail: "for " + away.String()}, err)
	f.recovering.Go(func() {
		_ = world.Sleep(ctx, away) // what follows looks at the context
		err := w.Start(context.WithoutCancel(ctx))
		f.journal.did(Entry{Did: "start " + w.Name}, err)
		if err != nil {
			f.journal.violated(Violation{At: time.Now(), Rule: ruleProcess, What: w.Name + " does not start: " + err.Error()})
		}
	})
}

// killTemporal ends the Temporal server, and starts it again a little later with what it has on disk.
func (f *faults) killTemporal(ctx context.Context) {
	if !f.temporalDown.CompareAndSwap(false, true) {
		return
	}
	away := pause(f.dice, 500, 10000)
	f.stack.Temporal.Kill()
	f.journal.did(Entry{Did: "kill Temporal", Detail: "for " + away.String()}, nil)
	f.recovering.Go(func() {
		_ = world.Sleep(ctx, away) // what follows looks at the context
		err := f.stack.Temporal.Start(context.WithoutCancel(ctx))
		f.journal.did(Entry{Did: "start Temporal"}, err)
		if err != nil {
			f.journal.violated(Violation{At: time.Now(), Rule: ruleProcess, What: "Temporal does not start: " + err.Error()})
			return
		}
		f.temporalDown.Store(false)
	})
}

// lookAtWorkers finds workers that ended by themselves, and starts them again.
func (f *faults) lookAtWorkers(ctx context.Context) {
	for _, w := range f.stack.Workers {
		said, ended := w.Ended()
		if !ended {
			continue
		}
		f.journal.violated(Violation{At: time.Now(), Rule: ruleProcess, What: w.Name + " ended by itself: " + said})
		f.recovering.Go(func() {
			f.journal.did(Entry{Did: "start " + w.Name}, w.Start(context.WithoutCancel(ctx)))
		})
	}
}
