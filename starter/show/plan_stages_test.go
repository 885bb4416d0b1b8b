package show

import (
	"io"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
)

// stagedView is the plan of KEP-4212's example that drains node five.
func stagedView() Plan {
	targets := []drainplan.Entry{
		{PodType: drainplan.Default, PodPriority: 1000}, {PodType: drainplan.Default, PodPriority: 2000, PodSelector: "app=postgres,zone in (a,b)"},
	}
	v := planView(func(s *api.PlanStatus) {
		s.WaitingFor, s.Until = "tier 2 of 3 (Default pods up to priority 2000, app=postgres): 1 of 2 nodes are drained up to it", nil
		s.Plan.Strategy = plan.Strategy{Type: plan.AllAtOnce}
		s.Plan.Requestor, s.Plan.Exclude, s.Plan.Stage, s.Plan.DrainPlan = spec.PlansRequestor, []string{"six"}, plan.Idle, &spec.Plan{Static: spec.SkipStatic}
		s.Counts, s.Warnings = plan.Counts{Total: 3, Running: 2, Failed: 1}, nil
		s.Nodes = []api.PlanNode{
			{Node: "five", State: "running", Since: startertest.Before(9 * time.Minute), Note: "Evacuating", Drain: &api.NodeDrain{Phase: api.Draining, Targets: targets, Pending: 30, Evacuating: 7}},
			{Node: "four", State: "failed", Since: startertest.Before(2 * time.Minute), Note: "it did not empty"},
			{Node: "one", State: "running", Since: startertest.Before(9 * time.Minute), Note: "Waiting for node five.", Drain: &api.NodeDrain{Phase: api.Ready, Targets: targets, Drained: true}},
		}
		s.Stages = &api.PlanStages{
			Stage: plan.Drain, Tiers: append(targets, drainplan.Entry{PodType: drainplan.Static, PodPriority: 2147483647}), Tier: 1, Revision: 2, Answered: 2,
			Begun: []api.StageBegun{
				{Stage: plan.Idle, At: startertest.Before(3 * time.Hour)},
				{Stage: plan.Cordon, At: startertest.Before(2 * time.Hour), By: "jane@laptop"}, {Stage: plan.Drain, At: startertest.Before(2 * time.Hour), By: "jane@laptop"},
			},
			Drained: api.Drained{Since: startertest.Before(2 * time.Hour), Message: "1 of 2 nodes are drained"},
			Nodes:   api.DrainCounts{Held: 2, Cordoned: 2, Drained: 1, Pending: 30, Evacuating: 7},
		}
	})
	return PlanOf(v, planID, v.Status.Nodes, 4, nil)
}

func TestPlansInStages(t *testing.T) {
	startertest.GoldenInWidths(t, "plan_stages", func(w io.Writer) { PlanStatus(w, stagedView(), startertest.Noon) })
	startertest.Golden(t, "plan_kep", func(w io.Writer) {
		output := terminal.Output{Format: terminal.FormatYAML}
		if err := output.Write(w, KEP(stagedView()), nil); err != nil {
			t.Error(err)
		}
	})
}

func TestTheDryRunOfStages(t *testing.T) {
	p := plan.Plan{Strategy: plan.Strategy{Type: plan.AllAtOnce}, DrainPlan: &spec.Plan{Include: drainplan.Types(), Static: spec.SkipStatic}}
	pods := []preflight.Pod{{Pod: "default/web-1", Tier: 1, Action: preflight.Evict}, {Pod: "kube-system/net", Tier: 7, Action: preflight.Delete}, {Pod: "kube-system/api", Tier: 11, Action: preflight.Skip}}
	startertest.GoldenInWidths(t, "plan_dry_run_stages", func(w io.Writer) {
		PlanDryRun(w, PlanPreview{
			Name: "firmware", Spec: p, Total: 2, Preflights: []preflight.Report{{Node: "one", Pods: pods}, {Node: "two", Pods: pods[:1]}},
			Waves: []PlanWave{{Nodes: []string{"one", "two"}, Shared: []preflight.Shared{{Budget: "default/web", Nodes: []string{"one", "two"}, Pods: 2, Allowed: 1}}}},
		}, false)
	})
}
