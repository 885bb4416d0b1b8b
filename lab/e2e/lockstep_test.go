package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/drainplan"
)

// listener is a workflow in the place of the lockstep that nobody works on: its history keeps what it is told.
type listener struct {
	*site
	client.WorkflowRun
}

// listen takes the lockstep's place.
func (s *site) listen() listener {
	s.Helper()
	run, err := s.temporal.ExecuteWorkflow(s.ctx, client.StartWorkflowOptions{
		ID: api.LockstepID(s.cluster), TaskQueue: s.name + "-nobody",
	}, api.LockstepType)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := s.temporal.TerminateWorkflow(s.ctx, run.GetID(), run.GetRunID(), "the test is over"); err != nil {
			s.Error(err)
		}
	})
	return listener{s, run}
}

// told is all that it was told, in order.
func (l listener) told() (all []api.NodeProgress) {
	l.Helper()
	history := l.temporal.GetWorkflowHistory(l.ctx, l.GetID(), l.GetRunID(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		if err != nil {
			l.Fatal(err)
		}
		signalled := event.GetWorkflowExecutionSignaledEventAttributes()
		if signalled.GetSignalName() != api.SignalNodeProgress {
			continue
		}
		var p api.NodeProgress
		if err := json.Unmarshal(signalled.GetInput().GetPayloads()[0].GetData(), &p); err != nil {
			l.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// hears waits until the last that it was told is as wanted.
func (l listener) hears(what string, is func(api.NodeProgress) bool) api.NodeProgress {
	l.Helper()
	var last api.NodeProgress
	l.eventually("the lockstep hears that "+what, func() error {
		all := l.told()
		if len(all) == 0 {
			return fmt.Errorf("it has heard nothing")
		}
		if last = all[len(all)-1]; !is(last) {
			return fmt.Errorf("it has heard %+v", last)
		}
		return nil
	})
	return last
}

// at tells a progress by its phase, revision and whether it is drained.
func at(phase api.Phase, revision int, drained bool) func(api.NodeProgress) bool {
	return func(p api.NodeProgress) bool {
		return p.Phase == phase && p.Revision == revision && p.Drained == drained
	}
}

func TestASharedMaintenanceIsDrainedAsFarAsItsPlansAre(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	before := s.imprint("worker-01")
	s.deployment(ns, "web", 1, on("worker-01"), slowToEnd("2s"))
	s.deployment(ns, "db", 1, on("worker-01"))
	s.daemonSet(ns, "agent", on("worker-01"))
	mirror := s.pod(ns, "mirror", "worker-01", annotated(corev1.MirrorPodAnnotationKey, "x"))
	web, db, agent := s.one(ns, "web"), s.one(ns, "db"), s.one(ns, "agent")
	pods := s.watchPods(ns)
	lockstep := s.listen()
	highest := int32(1<<31 - 1)
	frontends := drainplan.Entry{PodType: drainplan.Default, PodPriority: highest, PodSelector: "app=web"}
	applications := drainplan.Entry{PodType: drainplan.Default, PodPriority: highest}
	agents := drainplan.Entry{PodType: drainplan.DaemonSet, PodPriority: highest}
	static := drainplan.Entry{PodType: drainplan.Static, PodPriority: highest}

	run := s.start("worker-01", api.PlansRequestor, `{"node":"worker-01","lockstep":true}`)
	lockstep.hears("it waits for its first target", at(api.Pending, 0, false))
	if held := s.holders(); len(held) > 0 {
		t.Errorf("slots are held of %v", held)
	}

	s.signal(run, api.SignalTarget, api.NodeTarget{Revision: 1, Plans: []string{"kernel"}, Waits: "plan kernel to come to the stage Drain"})
	if status := s.until(run, api.Cordoned); status.WaitingFor != "plan kernel to come to the stage Drain" {
		t.Errorf("it waits for %q", status.WaitingFor)
	}
	s.mustShow("worker-01", run.GetRunID(), api.Cordoned)
	lockstep.hears("it is cordoned", at(api.Cordoned, 1, false))
	for _, pod := range s.podsOn(ns, "worker-01") {
		s.mustStay(pod)
	}

	s.signal(run, api.SignalTarget, api.NodeTarget{Revision: 2, Targets: []drainplan.Entry{frontends}, Waits: "node worker-02"})
	s.until(run, api.Ready)
	s.untilGone(web)
	s.mustStay(db)
	s.mustStay(agent)
	s.mustShow("worker-01", run.GetRunID(), api.Ready)
	lockstep.hears("web is gone", at(api.Ready, 2, true))

	// What it was told since it does not know any more: the lockstep hears that, and tells it again.
	run = s.reset(run)
	s.markedBy("worker-01", run.GetRunID())
	s.signal(run, api.SignalTarget, api.NodeTarget{Revision: 3, Targets: []drainplan.Entry{frontends, applications}})
	lockstep.hears("db is gone", at(api.Ready, 3, true))
	s.untilGone(db)
	s.mustStay(agent)

	s.signal(run, api.SignalTarget, api.NodeTarget{Revision: 4, Targets: []drainplan.Entry{applications, agents, static}, Last: true})
	lockstep.hears("the agent is gone", at(api.Ready, 4, true))
	s.untilGone(agent)
	if !hasTaint(s.node("worker-01"), k8s.MaintenanceTaint.Key) {
		t.Errorf("taints %v", s.node("worker-01").Spec.Taints)
	}
	s.mustStay(*mirror)
	status := s.mustStatus(run)
	if stays := status.Drain.Stays; len(stays) != 1 || stays[0].Pod != ns+"/mirror" || stays[0].Reason != k8s.StaticPod {
		t.Errorf("it stays: %+v", stays)
	}
	if status.ReadyDeadline == nil || !slices.ContainsFunc(status.Transitions, func(t api.Transition) bool { return t.Phase == api.Cordoned }) {
		t.Errorf("it is held until %v, after %+v", status.ReadyDeadline, status.Transitions)
	}
	s.done(run)
	end := lockstep.hears("it has ended", func(p api.NodeProgress) bool { return p.Ended })
	if end.Phase != api.Completed || end.Failure != "" || end.Drained {
		t.Errorf("of the end it heard %+v", end)
	}
	s.lived(pods, "web ends", "web is gone", "db ends", "db is gone", "agent ends", "agent is gone")
	s.back("worker-01", before)
	s.slotFree("worker-01")
	var evicted int
	for _, e := range s.evictions(ns) {
		if e.Object.Name == web.Name || e.Object.Name == db.Name {
			evicted++
		}
	}
	if evicted != 2 {
		t.Errorf("%d evictions: %+v", evicted, s.evictions(ns))
	}
}

func TestABudgetHoldsWhateverTargetIsSent(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	before := s.imprint("worker-01")
	s.guarded(ns, "web", "worker-01")
	web := s.one(ns, "web")
	lockstep := s.listen()
	run := s.start("worker-01", api.PlansRequestor, `{"node":"worker-01","lockstep":true}`)
	s.signal(run, api.SignalTarget, api.NodeTarget{
		Revision: 1 << 40, Targets: []drainplan.Entry{{PodType: drainplan.Default, PodPriority: 1<<31 - 1}}, Last: true,
	})
	blocked := lockstep.hears("a pod is in the way", func(p api.NodeProgress) bool { return p.Pending == 1 && p.Waiting != "" })
	if blocked.Phase != api.Draining || blocked.Drained || blocked.Evacuating != 0 {
		t.Errorf("it heard %+v", blocked)
	}
	s.mustStay(web)
	// The true ones go on from there.
	s.signal(run, api.SignalTarget, api.NodeTarget{Revision: 1<<40 + 1, Report: true})
	lockstep.hears("the next counts", func(p api.NodeProgress) bool { return p.Revision == 1<<40+1 })
	s.signal(run, api.MsgCancel, nil)
	s.mustEnd(run, api.Cancelled)
	s.back("worker-01", before)
	s.mustStay(web)
}
