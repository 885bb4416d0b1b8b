package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/api/enums/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

func TestPodsThatArriveOnAReadyNodeAreReported(t *testing.T) {
	granted, holder := time.Now().Add(-time.Minute), api.MaintenanceID("", "n1", "ops")
	at := func(d time.Duration) activitytest.PodOption {
		return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(granted.Add(d)) }
	}
	daemon := func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }
	labelled := func(p *corev1.Pod) { p.Labels[api.WorkflowLabel] = "w" }
	ours := func(p *corev1.Pod) { labelled(p); p.OwnerReferences[0].Kind = "Job" }
	s := k8stest.New(
		activitytest.Node("n1", activitytest.Cordoned, activitytest.Marked(holder, "r"), activitytest.Labelled(api.PhaseLabel, string(api.Ready))),
		activitytest.Pod("before", at(-time.Hour)), activitytest.Pod("daemon", at(time.Second), daemon), activitytest.Pod("hook", at(time.Second), ours),
	)
	sent := make(chan api.NodeChange, 10)
	temporal := activitytest.Statuses(map[string]enums.WorkflowExecutionStatus{holder + "/r": enums.WORKFLOW_EXECUTION_STATUS_RUNNING})
	temporal.On("SignalWorkflow", mock.Anything, holder, "", api.SignalNodeChanged, mock.Anything).Return(
		func(_ context.Context, _, _, _ string, arg any) error {
			sent <- arg.(api.NodeChange)
			return nil
		})
	kube := s.Client(t)
	c := &Activities{Nodes: k8s.NewNodes(kube), Temporal: temporal, Pods: k8s.NewNodePods(kube)}
	busy := true
	c.Evictions = loadFunc(func() bool {
		if n := len(s.Requests("pods")); n > 0 {
			t.Errorf("%d requests for pods while evictions are more urgent", n)
		}
		defer func() { busy = false }()
		return busy
	})
	env := activitytest.Environment()
	stop := make(chan struct{})
	env.SetWorkerStopChannel(stop)
	env.RegisterActivity(c.WatchCluster)
	done := make(chan error, 1)
	holders := []WatchedHolder{{RequestID: "r/1", Node: "n1", WorkflowID: holder, RunID: "r", Since: granted}}
	go func() {
		_, err := env.ExecuteActivity(c.WatchCluster, WatchInput{Holders: holders, Known: []KnownMark{{Node: "n1", RunID: "r"}}})
		done <- err
	}()
	next := func() api.NodeChange {
		select {
		case change := <-sent:
			return change
		case err := <-done:
			t.Fatalf("the watch ended: %v", err)
		case <-time.After(20 * time.Second):
			t.Fatal("no signal was sent")
		}
		return api.NodeChange{}
	}
	for name, option := range map[string]activitytest.PodOption{"one": at(10 * time.Second), "two": at(10 * time.Second), "labelled": labelled} {
		s.Set(activitytest.Pod(name, at(10*time.Second), option))
		if change := next(); change.RequestID != "r/1" || change.Arrived == nil || len(change.Arrived.Pods) != 1 || change.Arrived.Pods[0].Pod != "default/"+name {
			t.Errorf("sent %+v", change.Arrived)
		}
	}
	close(stop)
	<-done
}

func TestManyNodesAreBegunToBeLookedAtOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var arrivals sentArrivals
		begun := 0
		begin := func() {
			for range 100 {
				if arrivals.mayBegin() {
					begun++
				}
			}
		}
		if begin(); begun != beginsAtOnce {
			t.Errorf("%d at once", begun)
		}
		time.Sleep(2 * time.Second)
		if begin(); begun != beginsAtOnce+2*beginsPerSecond {
			t.Errorf("%d within two seconds", begun)
		}
	})
}

type loadFunc func() bool

func (f loadFunc) Busy() bool { return f() }
