package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/lab/world"
)

// scene feeds a judge, a second an event.
type scene struct {
	*judge
	found []Violation
	now   time.Time
}

func newScene(parallel, unavailable, zone int) *scene {
	s := &scene{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	s.judge = newJudge(parallel, unavailable, zone, map[string]int{"web": 2}, func(v Violation) { s.found = append(s.found, v) })
	for i := range 6 {
		s.sees(seen(i))
	}
	return s
}

func (s *scene) tick() time.Time {
	s.now = s.now.Add(time.Second)
	return s.now
}

func (s *scene) sees(nodes ...*corev1.Node) {
	for _, n := range nodes {
		s.node(s.tick(), n, false)
	}
}

func (s *scene) operator(n *corev1.Node) { s.node(s.tick(), n, true) }

func (s *scene) seesPod(p *corev1.Pod, gone bool) { s.pod(s.tick(), p, gone) }

// seen is the i-th node, of two zones in turn; in says what it is like.
func seen(i int, in ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:   fmt.Sprintf("n%d", i),
			Labels: map[string]string{corev1.LabelTopologyZone: fmt.Sprintf("z%d", i%2)}, Annotations: map[string]string{},
		},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for _, change := range in {
		change(n)
	}
	return n
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func broken(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }

func held(by ...string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		var mark k8s.Mark
		for _, who := range by {
			mark.Holders = append(mark.Holders, k8s.Holder{WorkflowID: api.MaintenanceID("", n.Name, who), RunID: who})
		}
		text, err := json.Marshal(mark)
		if err != nil {
			panic(err)
		}
		n.Annotations[api.HoldersAnnotation] = string(text)
		n.Spec.Unschedulable = true
	}
}

func web(i, on int, in ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "soak", Name: fmt.Sprintf("web-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i)), Labels: map[string]string{world.App: "web"}},
		Spec:       corev1.PodSpec{NodeName: fmt.Sprintf("n%d", on)},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	for _, change := range in {
		change(p)
	}
	return p
}

func terminating(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func evicted(s *scene, name string, after time.Duration) devstack.Audited {
	a := devstack.Audited{Received: s.now.Add(after)}
	a.Object.Namespace, a.Object.Name = "soak", name
	return a
}

func TestJudgeFindsWhatMustNeverBe(t *testing.T) {
	for _, c := range []struct {
		name string
		// what happens with maxParallel 2, maxUnavailable 3 and 2 a zone
		happens func(*scene)
		// want are the rules violated, in order
		want []string
	}{
		{name: "within all limits", happens: func(s *scene) {
			s.sees(seen(0, held("a")), seen(1, held("a")), seen(0), seen(2, held("a")))
		}},
		{name: "more held than the limit", happens: func(s *scene) {
			s.sees(seen(0, held("a")), seen(1, held("a")), seen(2, held("a")))
		}, want: []string{ruleParallel}},
		{name: "granted under the limit before", happens: func(s *scene) {
			s.limits(s.now, []int{1}, []int{3})
			s.sees(seen(0, held("a")), seen(1, held("a")))
		}},
		{name: "granted before the limit fell, and held after others were given back", happens: func(s *scene) {
			s.sees(seen(0, held("a")), seen(1, held("a")), seen(0), seen(1))
			s.limits(s.now, []int{1}, []int{3})
			s.sees(seen(2, held("a")), seen(4, held("a")))
		}},
		{name: "granted anew under a lowered limit", happens: func(s *scene) {
			s.sees(seen(0, held("a")), seen(1, held("a")))
			s.limits(s.now, []int{1}, []int{3})
			s.sees(seen(0), seen(2, held("a")))
		}, want: []string{ruleParallel}},
		{name: "one of two limits, nobody knows which", happens: func(s *scene) {
			s.limits(s.now, []int{2, 3}, []int{3})
			s.sees(seen(0, held("a")), seen(1, held("a")), seen(3, held("a")))
		}},
		{name: "more in a zone than its limit", happens: func(s *scene) {
			s.limits(s.now, []int{9}, []int{9})
			s.sees(seen(0, held("a")), seen(2, held("a")), seen(1, held("a")), seen(4, held("a")))
		}, want: []string{ruleGroup}},
		{name: "more unavailable than the limit", happens: func(s *scene) {
			s.limits(s.now, []int{9}, []int{3})
			s.sees(seen(0, held("a")), seen(1, held("a")), seen(2, held("a")), seen(3, held("a")))
		}, want: []string{ruleUnavailable}},
		{name: "nodes that fail by themselves", happens: func(s *scene) {
			s.sees(seen(0, held("a")), seen(1, held("a")), seen(2, broken), seen(3, broken), seen(4, broken))
		}},
		{name: "granted while nobody could know that nodes had failed and healed", happens: func(s *scene) {
			s.limits(s.now, []int{9}, []int{3})
			s.sees(seen(2, broken), seen(3, broken), seen(2), seen(3))
			s.sees(seen(0, held("a")), seen(1, held("a")), seen(2, held("a")), seen(3, held("a")))
		}},
		{name: "granted long after nodes had failed and healed", happens: func(s *scene) {
			s.limits(s.now, []int{9}, []int{3})
			s.sees(seen(2, broken), seen(3, broken), seen(2), seen(3))
			s.now = s.now.Add(2 * observationLag)
			s.sees(seen(0, held("a")), seen(1, held("a")), seen(2, held("a")), seen(3, held("a")))
		}, want: []string{ruleUnavailable}},
		{name: "a node that is out of service already costs nothing", happens: func(s *scene) {
			s.limits(s.now, []int{9}, []int{0})
			s.sees(seen(2, broken))
			s.sees(seen(2, broken, held("a")))
		}},
		{name: "two hold a node", happens: func(s *scene) {
			s.sees(seen(0, held("a")), seen(0, held("a", "b")))
		}, want: []string{ruleOneHolder}},
		{name: "a mark that nobody can read", happens: func(s *scene) {
			s.sees(seen(0, func(n *corev1.Node) { n.Annotations[api.HoldersAnnotation] = "nonsense" }))
		}, want: []string{ruleMark}},
		{name: "somebody else's cordon is undone", happens: func(s *scene) {
			s.operator(seen(0, cordoned))
			s.sees(seen(0, held("a")), seen(0))
		}, want: []string{ruleUncordon}},
		{name: "somebody else's cordon stays until they undo it", happens: func(s *scene) {
			s.operator(seen(0, cordoned))
			s.sees(seen(0, held("a")), seen(0, cordoned))
			s.operator(seen(0))
		}},
		{name: "our own cordon is undone", happens: func(s *scene) {
			s.sees(seen(0, held("a")), seen(0))
		}},
		{name: "an eviction under the mark", happens: func(s *scene) {
			s.seesPod(web(1, 0), false)
			s.seesPod(web(2, 1), false)
			s.seesPod(web(3, 1), false)
			s.sees(seen(0, held("a")))
			s.seesPod(web(1, 0, terminating), false)
			s.seesPod(web(1, 0, terminating), true)
		}},
		{name: "an eviction on a node without a mark", happens: func(s *scene) {
			for i := range 3 {
				s.seesPod(web(i, 0), false)
			}
			s.seesPod(web(1, 0, terminating), false)
		}, want: []string{ruleFence}},
		{name: "an eviction long after the mark has gone", happens: func(s *scene) {
			for i := range 3 {
				s.seesPod(web(i, 0), false)
			}
			s.sees(seen(0, held("a")), seen(0))
			s.now = s.now.Add(fenceSlack)
			s.seesPod(web(1, 0), true)
		}, want: []string{ruleFence}},
		{name: "too few pods are left", happens: func(s *scene) {
			s.seesPod(web(1, 0), false)
			s.seesPod(web(2, 0), false)
			s.sees(seen(0, held("a")))
			s.seesPod(web(1, 0, terminating), false)
		}, want: []string{ruleBudget}},
		{name: "too few pods before there were enough", happens: func(s *scene) {
			s.seesPod(web(1, 0), false)
			s.sees(seen(0, held("a")))
			s.seesPod(web(1, 0), true)
		}},
		{name: "a pod is evicted twice", happens: func(s *scene) {
			s.seesPod(web(1, 0), false)
			s.sees(seen(0, held("a")))
			s.seesPod(web(1, 0, terminating), false)
			s.pods.accepted([]devstack.Audited{evicted(s, "web-1", -3*time.Second), evicted(s, "web-1", -2*time.Second)})
		}, want: []string{ruleTwice}},
		{name: "a pod that terminates is evicted again", happens: func(s *scene) {
			s.seesPod(web(1, 0), false)
			s.sees(seen(0, held("a")))
			s.seesPod(web(1, 0, terminating), false)
			s.pods.accepted([]devstack.Audited{evicted(s, "web-1", -time.Second), evicted(s, "web-1", time.Second)})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(2, 3, 2)
			c.happens(s)
			var rules []string
			for _, v := range s.found {
				rules = append(rules, v.Rule)
				if v.What == "" || v.At.IsZero() {
					t.Errorf("a violation that says nothing: %+v", v)
				}
			}
			if !slices.Equal(rules, c.want) {
				t.Errorf("found %+v, want %v", s.found, c.want)
			}
		})
	}
}
