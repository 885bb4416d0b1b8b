package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/drainplan"
)

// inLockstep is the input of a plan that begins in a stage, with a tier for each app.
func inLockstep(s *site.Site, stage api.Stage, nodes []string, apps ...string) string {
	s.Helper()
	var tiers []drainplan.Entry
	for i, app := range apps {
		tiers = append(tiers, drainplan.Entry{PodType: drainplan.Default, PodPriority: int32(1000 * (i + 1)), PodSelector: "app=" + app})
	}
	input, err := json.Marshal(map[string]any{
		"nodes": nodes, "strategy": map[string]any{"type": "allAtOnce"}, "stage": stage,
		"drainPlan": map[string]any{"tiers": tiers, "include": []string{}},
	})
	if err != nil {
		s.Fatal(err)
	}
	return string(input)
}

// untilDrained waits until a plan in lockstep says that its nodes are drained.
func untilDrained(s *site.Site, run client.WorkflowRun) {
	s.Helper()
	untilPlan(s, run, "is drained", func(status api.PlanStatus) bool { return status.Stages != nil && status.Stages.Drained.Status })
}

// Neither of two plans waits for the other for ever, whatever the order of their tiers is, and a worker that is lost costs no
// pod a second eviction.
func TestSlowPlansOfOppositeTiersEnd(t *testing.T) {
	t.Parallel()
	const many = 50
	s := site.PrepareOf(t, site.OwnLane(t, many), site.Shared.Temporal, fmt.Sprintf("scheduler: {maxParallel: %d, maxUnavailable: %d}", many, many))
	s.StartWorker()
	ns := s.Namespace()
	before := s.Imprints()
	nodes := slices.Sorted(maps.Keys(before))
	for _, app := range []string{"x", "y"} {
		s.Deployment(ns, app, many, apart(nodes...), site.SlowToEnd("1s"))
	}
	pods := s.Pods(ns)
	plans := []client.WorkflowRun{
		newPlan(s, "a", inLockstep(s, api.StageDrain, nodes, "x", "y")),
		newPlan(s, "b", inLockstep(s, api.StageDrain, nodes, "y", "x")),
	}
	s.Eventually("pods are evicted", func() error {
		if len(s.Accepted(ns)) == 0 {
			return errors.New("none yet")
		}
		return nil
	})
	s.Worker.Kill()
	s.StartWorker()
	for _, plan := range plans {
		untilDrained(s, plan)
	}
	for _, pod := range pods {
		s.UntilGone(pod)
	}
	evicted, unanswered := s.Accepted(ns), map[string]bool{}
	for _, e := range s.Evictions(ns) {
		if evicted[e.Object.Name] == 0 && e.Status.Code == http.StatusGatewayTimeout {
			unanswered[e.Object.Name] = true // the worker was killed before the answer came
		}
	}
	if len(evicted)+len(unanswered) != 2*many {
		t.Errorf("the eviction of %d pods was accepted, and of %d not answered: want %d", len(evicted), len(unanswered), 2*many)
	}
	for pod, times := range evicted {
		if times != 1 {
			t.Errorf("the eviction of pod %s was accepted %d times", pod, times)
		}
	}
	for i, name := range []string{"a", "b"} {
		for _, node := range nodes {
			if !s.Node(node).Spec.Unschedulable {
				t.Errorf("%s was given back while plan %s holds it", node, name)
			}
		}
		s.MustDrydock("plan", "set-stage", name, string(api.StageComplete))
		if end := planEnds(s, plans[i]); end.Phase != api.PlanCompleted {
			t.Errorf("plan %s ended %s: %s", name, end.Phase, end.Failure)
		}
	}
	for name, imprint := range before {
		s.Back(name, imprint)
	}
}

func TestAPlanInLockstepIsCancelledInEveryStage(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 3}")
	ns := s.Namespace()
	before := s.Imprints()
	s.Guarded(ns, "held", "worker-01")
	s.Deployment(ns, "web", 1, site.On("worker-02"))
	held := s.One(ns, "held")
	nodes := []string{"worker-01", "worker-02", "worker-03"}
	for stage, is := range map[api.Stage]func(api.PlanStatus) bool{
		api.StageIdle:   func(status api.PlanStatus) bool { return status.Phase == api.PlanRunning },
		api.StageCordon: func(status api.PlanStatus) bool { return status.Stages.Nodes.Cordoned == len(nodes) },
		// A budget keeps one node from being drained, the others are.
		api.StageDrain: func(status api.PlanStatus) bool {
			return status.Stages.Nodes.Drained == len(nodes)-1 && status.Stages.Nodes.Pending == 1
		},
	} {
		s.Sub(string(stage), func(s *site.Site) {
			name := strings.ToLower(string(stage))
			run := newPlan(s, name, inLockstep(s, stage, nodes, "held", "web"))
			untilPlan(s, run, "is in stage "+string(stage), func(status api.PlanStatus) bool {
				return status.Stages != nil && status.Stages.Stage == stage && is(status)
			})
			for _, node := range nodes {
				if held := s.Node(node).Spec.Unschedulable; held != (stage != api.StageIdle) {
					s.Errorf("%s is unschedulable: %t", node, held)
				}
			}
			s.MustDrydock("plan", "cancel", name, "--yes", "--comment", "postponed")
			if end := planEnds(s, run); end.Phase != api.PlanCancelled {
				s.Errorf("it ended %s: %s", end.Phase, end.Failure)
			}
			for _, node := range nodes {
				s.Back(node, before[node])
			}
			s.MustStay(held)
		})
	}
}
