package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/drainplan"
)

func TestPodsLeaveTierByTier(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	low, middle, high := priorityOf(s, "low", 100), priorityOf(s, "middle", 2000), priorityOf(s, "high", 5000)
	// The last tier's pod is the oldest and the first by name, so that neither age nor name explains the order.
	s.Deployment(ns, "api", 1, site.On("worker-01"), high, site.SlowToEnd("1s"))
	s.Deployment(ns, "cache", 1, site.On("worker-01"), middle, site.SlowToEnd("2s"))
	s.Deployment(ns, "postgres", 1, site.On("worker-01"), middle, site.Kept)
	s.Cleanup(func() { s.LetGo(ns) })
	s.Deployment(ns, "web", 1, site.On("worker-01"), low, site.SlowToEnd("2s"))
	pods := watchPods(s, ns)

	// The KEP's own form, not in the order of the drain.
	run := s.BeginWith("worker-01", `"drain":{"plan":[
		{"podType":"Default","podPriority":2000},
		{"podType":"Default","podPriority":1000},
		{"podType":"Default","podPriority":2000,"podSelector":{"matchLabels":{"app":"postgres"}}}]}`)
	var status api.Maintenance
	s.Eventually("the command line shows the second tier", func() error {
		if status = s.Shown("worker-01"); status.Drain == nil || status.Drain.Tier != 2 {
			return fmt.Errorf("%s, drain %+v", status.Phase, status.Drain)
		}
		return nil
	})
	// Three of the plan, and four standard ones for each of the three pod types.
	if status.Drain.Tiers != 15 {
		t.Errorf("%d tiers", status.Drain.Tiers)
	}
	want := []drainplan.Entry{
		{PodType: drainplan.Default, PodPriority: 1000},
		{PodType: drainplan.Default, PodPriority: 2000, PodSelector: "app=postgres"},
	}
	if !slices.Equal(status.Drain.Targets, want) {
		t.Errorf("targets = %+v, want %+v", status.Drain.Targets, want)
	}
	s.LetGo(ns)
	s.Until(run, api.Ready)
	lived(s, pods, "web ends", "web is gone", "postgres ends", "postgres is gone",
		"cache ends", "cache is gone", "api ends", "api is gone")
	var evicted []string
	for _, e := range s.Evictions(ns) {
		app, _, _ := strings.Cut(e.Object.Name, "-")
		evicted = append(evicted, app)
	}
	if want := []string{"web", "postgres", "cache", "api"}; !slices.Equal(evicted, want) {
		t.Errorf("evicted %v, want %v, once each", evicted, want)
	}
}

func TestATierOfDaemonSetPodsKeepsThemAwayWhileReady(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	before := s.Imprint("worker-01")
	s.DaemonSet(ns, "agent", site.On("worker-01"))
	s.Deployment(ns, "web", 1, site.On("worker-01"), site.SlowToEnd("3s"))
	agent := s.One(ns, "agent")
	pods := watchPods(s, ns)
	run := s.BeginWith("worker-01", `"drain":{"plan":{"include":["Default","DaemonSet"]}}`)
	s.Until(run, api.Ready)
	lived(s, pods, "web ends", "web is gone", "agent ends", "agent is gone")
	if deleted := s.Deletions(ns); len(deleted) != 1 || deleted[0].Object.Name != agent.Name {
		t.Errorf("deleted: %+v, want only %s", deleted, agent.Name)
	}
	s.Always("the DaemonSet's pod stays away", 3*time.Second, func() error {
		if taints := s.Node("worker-01").Spec.Taints; !slices.ContainsFunc(taints, func(taint corev1.Taint) bool {
			return taint.Key == "drydock.dev/maintenance" && taint.Effect == corev1.TaintEffectNoSchedule
		}) {
			return fmt.Errorf("taints %v", taints)
		}
		if left := s.PodsOn(ns, "worker-01"); len(left) > 0 {
			return fmt.Errorf("there are pods: %v", left)
		}
		return nil
	})
	s.Done(run)
	s.Back("worker-01", before)
	s.Eventually("the DaemonSet's pod is back", func() error {
		for _, pod := range s.PodsOn(ns, "worker-01") {
			if pod.Labels["app"] == "agent" && k8s.IsPodReady(&pod) {
				return nil
			}
		}
		return errors.New("it is not")
	})
}

func TestDaemonSetPodsThatTolerateEverythingStay(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.DaemonSet(ns, "network", site.On("worker-01"), func(p *corev1.PodTemplateSpec) {
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	})
	s.Deployment(ns, "web", 1, site.On("worker-01"))
	network, web := s.One(ns, "network"), s.One(ns, "web")
	run := s.BeginWith("worker-01", `"drain":{"plan":{"include":["Default","DaemonSet"]}}`)
	status := s.Until(run, api.Ready)
	s.UntilGone(web)
	s.MustStay(network)
	if status.Drain == nil || len(status.Drain.Stays) != 1 {
		t.Fatalf("drain = %+v, want one pod reported that stays", status.Drain)
	}
	if stays := status.Drain.Stays[0]; stays.Pod != ns+"/"+network.Name || stays.Reason != "ToleratesTaint" || stays.Owner != "DaemonSet network" {
		t.Errorf("it stays: %+v", stays)
	}
	if deleted := s.Deletions(ns); len(deleted) > 0 {
		t.Errorf("deleted: %+v", deleted)
	}
}

func TestWithoutAPlanDaemonSetPodsStay(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.DaemonSet(ns, "agent", site.On("worker-01"))
	s.Deployment(ns, "web", 1, site.On("worker-01"))
	agent, web := s.One(ns, "agent"), s.One(ns, "web")
	run := s.Begin("worker-01")
	status := s.Until(run, api.Ready)
	s.UntilGone(web)
	s.MustStay(agent)
	if site.HasTaint(s.Node("worker-01"), k8s.MaintenanceTaint.Key) {
		t.Errorf("taints %v", s.Node("worker-01").Spec.Taints)
	}
	if status.Drain == nil || status.Drain.Tiers != 0 || status.Drain.Skipped != 1 {
		t.Errorf("drain = %+v, want no tiers and one pod skipped", status.Drain)
	}
	s.Done(run)
	s.MustStay(agent)
}

// priority makes a priority class of the test and returns the option that gives it to pods.
func priorityOf(s *site.Site, name string, value int32) site.Option {
	s.Helper()
	class := &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: s.ID + "-" + name}, Value: value, PreemptionPolicy: new(corev1.PreemptNever),
	}
	classes := s.Kube.SchedulingV1().PriorityClasses()
	if _, err := classes.Create(s.Ctx, class, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := classes.Delete(s.Ctx, class.Name, metav1.DeleteOptions{}); err != nil {
			s.Error(err)
		}
	})
	return func(t *corev1.PodTemplateSpec) { t.Spec.PriorityClassName = class.Name }
}

// podWitness sees in which order the pods of a namespace are told to end and are gone, by the label app.
type podWitness struct {
	mu     sync.Mutex
	ending map[types.UID]bool
	seen   []string
	err    error
}

// watchPods begins to watch the pods of a namespace until the test ends.
func watchPods(s *site.Site, ns string) *podWitness {
	s.Helper()
	w := &podWitness{ending: map[types.UID]bool{}}
	list, err := s.Kube.CoreV1().Pods(ns).List(s.Ctx, metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	stream, err := s.Kube.CoreV1().Pods(ns).Watch(s.Ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(stream.Stop)
	go func() {
		for event := range stream.ResultChan() {
			w.see(event)
		}
	}()
	return w
}

func (w *podWitness) see(event watch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		w.err = fmt.Errorf("the witness's watch broke: %v", event.Object)
		return
	}
	if pod.DeletionTimestamp != nil && !w.ending[pod.UID] {
		w.ending[pod.UID] = true
		w.seen = append(w.seen, pod.Labels["app"]+" ends")
	}
	if event.Type == watch.Deleted {
		w.seen = append(w.seen, pod.Labels["app"]+" is gone")
	}
}

// lived waits until the witness has seen as much as it should, and checks that it is just that.
func lived(s *site.Site, w *podWitness, want ...string) {
	s.Helper()
	s.Eventually("pods end as they should", func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.err != nil || len(w.seen) < len(want) {
			return errors.Join(w.err, fmt.Errorf("seen so far: %q", w.seen))
		}
		return nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.seen, want) {
		s.Errorf("pods ended so: %q, want %q", w.seen, want)
	}
}
