package plan

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
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/drainplan"
)

// listener is a workflow in the place of the lockstep that nobody works on: its history keeps what it is told.
type listener struct {
	*site.Site
	client.WorkflowRun
}

// listen takes the lockstep's place.
func listen(s *site.Site) listener {
	s.Helper()
	run, err := s.Temporal.ExecuteWorkflow(s.Ctx, client.StartWorkflowOptions{
		ID: api.LockstepID(s.Cluster), TaskQueue: s.ID + "-nobody",
	}, api.LockstepType)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := s.Temporal.TerminateWorkflow(s.Ctx, run.GetID(), run.GetRunID(), "the test is over"); err != nil {
			s.Error(err)
		}
	})
	return listener{s, run}
}

// told is all that it was told, in order.
func (l listener) told() (all []api.NodeProgress) {
	l.Helper()
	history := l.Temporal.GetWorkflowHistory(l.Ctx, l.GetID(), l.GetRunID(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
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
	l.Eventually("the lockstep hears that "+what, func() error {
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
	s := site.New(t, "")
	ns := s.Namespace()
	before := s.Imprint("worker-01")
	s.Deployment(ns, "web", 1, site.On("worker-01"), site.SlowToEnd("2s"))
	s.Deployment(ns, "db", 1, site.On("worker-01"))
	s.DaemonSet(ns, "agent", site.On("worker-01"))
	mirror := s.Pod(ns, "mirror", "worker-01", site.Annotated(corev1.MirrorPodAnnotationKey, "x"))
	web, db, agent := s.One(ns, "web"), s.One(ns, "db"), s.One(ns, "agent")
	pods := watchPods(s, ns)
	lockstep := listen(s)
	highest := int32(1<<31 - 1)
	frontends := drainplan.Entry{PodType: drainplan.Default, PodPriority: highest, PodSelector: "app=web"}
	applications := drainplan.Entry{PodType: drainplan.Default, PodPriority: highest}
	agents := drainplan.Entry{PodType: drainplan.DaemonSet, PodPriority: highest}
	static := drainplan.Entry{PodType: drainplan.Static, PodPriority: highest}

	run := s.Start("worker-01", api.PlansRequestor, `{"node":"worker-01","lockstep":true}`)
	lockstep.hears("it waits for its first target", at(api.Pending, 0, false))
	if held := s.Holders(); len(held) > 0 {
		t.Errorf("slots are held of %v", held)
	}

	s.Signal(run, api.SignalTarget, api.NodeTarget{Revision: 1, Plans: []string{"kernel"}, Waits: "plan kernel to come to the stage Drain"})
	if status := s.Until(run, api.Cordoned); status.WaitingFor != "plan kernel to come to the stage Drain" {
		t.Errorf("it waits for %q", status.WaitingFor)
	}
	s.MustShow("worker-01", run.GetRunID(), api.Cordoned)
	lockstep.hears("it is cordoned", at(api.Cordoned, 1, false))
	for _, pod := range s.PodsOn(ns, "worker-01") {
		s.MustStay(pod)
	}

	s.Signal(run, api.SignalTarget, api.NodeTarget{Revision: 2, Targets: []drainplan.Entry{frontends}, Waits: "node worker-02"})
	s.Until(run, api.Ready)
	s.UntilGone(web)
	s.MustStay(db)
	s.MustStay(agent)
	s.MustShow("worker-01", run.GetRunID(), api.Ready)
	lockstep.hears("web is gone", at(api.Ready, 2, true))

	// What it was told since it does not know any more: the lockstep hears that, and tells it again.
	run = s.Reset(run)
	s.MarkedBy("worker-01", run.GetRunID())
	s.Signal(run, api.SignalTarget, api.NodeTarget{Revision: 3, Targets: []drainplan.Entry{frontends, applications}})
	lockstep.hears("db is gone", at(api.Ready, 3, true))
	s.UntilGone(db)
	s.MustStay(agent)

	s.Signal(run, api.SignalTarget, api.NodeTarget{Revision: 4, Targets: []drainplan.Entry{applications, agents, static}, Last: true})
	lockstep.hears("the agent is gone", at(api.Ready, 4, true))
	s.UntilGone(agent)
	if !site.HasTaint(s.Node("worker-01"), k8s.MaintenanceTaint.Key) {
		t.Errorf("taints %v", s.Node("worker-01").Spec.Taints)
	}
	s.MustStay(*mirror)
	status := s.MustStatus(run)
	if stays := status.Drain.Stays; len(stays) != 1 || stays[0].Pod != ns+"/mirror" || stays[0].Reason != k8s.StaticPod {
		t.Errorf("it stays: %+v", stays)
	}
	if status.ReadyDeadline == nil || !slices.ContainsFunc(status.Transitions, func(t api.Transition) bool { return t.Phase == api.Cordoned }) {
		t.Errorf("it is held until %v, after %+v", status.ReadyDeadline, status.Transitions)
	}
	s.Done(run)
	end := lockstep.hears("it has ended", func(p api.NodeProgress) bool { return p.Ended })
	if end.Phase != api.Completed || end.Failure != "" || end.Drained {
		t.Errorf("of the end it heard %+v", end)
	}
	lived(s, pods, "web ends", "web is gone", "db ends", "db is gone", "agent ends", "agent is gone")
	s.Back("worker-01", before)
	s.SlotFree("worker-01")
	var evicted int
	for _, e := range s.Evictions(ns) {
		if e.Object.Name == web.Name || e.Object.Name == db.Name {
			evicted++
		}
	}
	if evicted != 2 {
		t.Errorf("%d evictions: %+v", evicted, s.Evictions(ns))
	}
}

func TestABudgetHoldsWhateverTargetIsSent(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	before := s.Imprint("worker-01")
	s.Guarded(ns, "web", "worker-01")
	web := s.One(ns, "web")
	lockstep := listen(s)
	run := s.Start("worker-01", api.PlansRequestor, `{"node":"worker-01","lockstep":true}`)
	s.Signal(run, api.SignalTarget, api.NodeTarget{
		Revision: 1 << 40, Targets: []drainplan.Entry{{PodType: drainplan.Default, PodPriority: 1<<31 - 1}}, Last: true,
	})
	blocked := lockstep.hears("a pod is in the way", func(p api.NodeProgress) bool { return p.Pending == 1 && p.Waiting != "" })
	if blocked.Phase != api.Draining || blocked.Drained || blocked.Evacuating != 0 {
		t.Errorf("it heard %+v", blocked)
	}
	s.MustStay(web)
	// The true ones go on from there.
	s.Signal(run, api.SignalTarget, api.NodeTarget{Revision: 1<<40 + 1, Report: true})
	lockstep.hears("the next counts", func(p api.NodeProgress) bool { return p.Revision == 1<<40+1 })
	s.Signal(run, api.MsgCancel, nil)
	s.MustEnd(run, api.Cancelled)
	s.Back("worker-01", before)
	s.MustStay(web)
}
