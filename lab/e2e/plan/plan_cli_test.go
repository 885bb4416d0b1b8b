package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/docs/schemas/schematest"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/plan"
)

// planOf is a plan as the command line shows it to programs.
func planOf(s *site.Site, name string, args ...string) (p api.Plan) {
	s.Helper()
	out := s.MustDrydock(append([]string{"plan", "status", name, "-o", "json"}, args...)...)
	schematest.Holds(s.T, "plan", []byte(out))
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		s.Fatal(err)
	}
	return p
}

// untilShown waits until the command line shows a plan as wanted.
func untilShown(s *site.Site, name, what string, is func(api.Plan) bool) (p api.Plan) {
	s.Helper()
	s.Eventually("plan "+name+" "+what, func() error {
		if r := s.Drydock("plan", "status", name); r.Status != 0 {
			return errors.New(r.Out()) // whoever is to start it has not yet
		}
		if p = planOf(s, name); !is(p) {
			return fmt.Errorf("it is %s, waits for %q: %+v, %+v", p.Phase, p.WaitingFor, p.Counts, p.Nodes)
		}
		return nil
	})
	return p
}

// stateIn reports whether a node of a plan is in a state.
func stateIn(p api.Plan, node string, state plan.State) bool {
	return slices.ContainsFunc(p.Nodes, func(n api.PlanNode) bool { return n.Node == node && n.State == state.Word() })
}

// readyInPlan waits until the node's maintenance in the plan is Ready.
func readyInPlan(s *site.Site, name, node string) {
	s.Helper()
	untilShown(s, name, "has "+node+" Ready", func(p api.Plan) bool {
		return slices.ContainsFunc(p.Slowest, func(n api.SlowNode) bool { return n.Node == node && n.Phase == api.Ready })
	})
}

// Dry run, create and status say which limits a plan is larger than, those of groups too, each once with the command that raises it.
func TestAPlanThatIsLargerThanTheLimitsIsToldSo(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 2, groups: [{name: zone, groupBy: ["+corev1.LabelTopologyZone+"], maxParallel: 1}]}")
	create := []string{"plan", "create", "kernel", "worker-01", "worker-04", "worker-07", "--max-parallel", "3"} // all are of zone a
	for _, args := range [][]string{
		append(slices.Clone(create), "--dry-run", "--preflights", "0"), append(slices.Clone(create), "--yes"), {"plan", "status", "kernel"},
	} {
		out := s.Drydock(args...).Out()
		for _, want := range []string{
			"the plan goes slower than it may: needs 3 slots at once; maxParallel is 2: drydock limits set --max-parallel 3",
			"the plan goes slower than it may: needs 3 slots at once; group zone[" + corev1.LabelTopologyZone + "=zone-a] maxParallel is 1: " +
				"drydock limits set --group zone --max-parallel 3",
		} {
			if strings.Count(out, want) != 1 {
				t.Errorf("drydock %s does not say once %q:\n%s", strings.Join(args, " "), want, out)
			}
		}
	}
	if p := planOf(s, "kernel"); len(p.Warnings) != 2 {
		t.Errorf("programs are told %q", p.Warnings)
	}
}

func TestAPlanFromTheCommandLine(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 10}")
	s.Exits(s.Drydock("plan", "list"), 0, "No plans are running")
	s.Exits(s.Drydock("plan", "status", "kernel"), 1, "there is no plan kernel", "plan list --all")
	s.Exits(s.Drydock("plan", "create", "kernel", "worker-1", "--yes"), 1, `node "worker-1" does not exist`, "Nothing was started")
	s.Exits(s.Drydock("plan", "create", "kernel", "worker-01"), 2, "--yes")

	file := s.File("plan.yaml", "nodes: [worker-01, worker-02, worker-03, worker-04]\nreason: kernel 6.12\nstrategy: {canary: {nodes: 1, approval: true}}\n")
	r := s.Drydock("plan", "create", "kernel", "-f", file, "--ticket", "OPS-7", "--max-parallel", "2", "--by", "x")
	s.Exits(r, 2, "unknown flag: --by")
	s.Exits(s.Drydock("plan", "create", "kernel", "-f", file, "--ticket", "OPS-7", "--max-parallel", "2", "--yes"), 0,
		"Plan kernel over 4 nodes, 2 at a time by name: worker-01, worker-02", "plan started")
	s.Exits(s.Drydock("plan", "create", "kernel", "-f", file, "--yes"), 1, "runs already", "plan status kernel")
	readyInPlan(s, "kernel", "worker-01")
	s.Exits(s.Drydock("plan", "status", "kernel"), 0, "kernel 6.12", "OPS-7", "canary of 1 node, then approval", "0 of 4 done, 1 running, 3 waiting", "Slowest:", "worker-01")
	s.MustDrydock("done", "worker-01", "--requestor", "plan-kernel", "--yes")
	untilShown(s, "kernel", "waits for approval", func(p api.Plan) bool { return strings.Contains(p.WaitingFor, "approval") })
	s.Exits(s.Drydock("plan", "pause", "kernel", "--comment", "incident 4711", "--by", "amy"), 0, "nothing more is begun")
	s.Exits(s.Drydock("plan", "pause", "kernel"), 1, "paused already")
	s.Exits(s.Drydock("plan", "status", "kernel"), 0, "Paused", "paused by amy: incident 4711")
	s.Eventually("the list has it", func() error {
		out := s.MustDrydock("plan", "list", "-o", "json")
		schematest.Holds(t, "plans", []byte(out))
		if !strings.Contains(out, `"phase": "Paused"`) || s.MustDrydock("plan", "list", "-o", "name") != "kernel\n" {
			return errors.New(out)
		}
		return nil
	})
	s.Exits(s.Drydock("plan", "approve", "kernel", "--comment", "looks good"), 0, "goes on")
	s.Exits(s.Drydock("plan", "skip", "kernel", "worker-04", "worker-4", "--comment", "to be scrapped"), 1, "worker-04 is left out", `no node "worker-4"`)
	out := s.MustDrydock("plan", "resume", "kernel", "-o", "json")
	schematest.Holds(t, "plan-summary", []byte(out))
	readyInPlan(s, "kernel", "worker-02")
	readyInPlan(s, "kernel", "worker-03")
	s.Exits(s.Drydock("plan", "retry", "kernel", "worker-02"), 1, "is running: retry is for nodes that failed")
	s.Exits(s.Drydock("plan", "retry", "kernel", "worker-04"), 0, "worker-04 is begun anew")
	if p := planOf(s, "kernel", "--state", "waiting,done"); len(p.Nodes) != 2 || !stateIn(p, "worker-01", plan.Done) || !stateIn(p, "worker-04", plan.Waiting) {
		t.Errorf("waiting and done are %+v", p.Nodes)
	}
	if p := planOf(s, "kernel", "--all"); len(p.Nodes) != 4 {
		t.Errorf("all are %+v", p.Nodes)
	}
	watch := s.Spawn("plan", "status", "kernel", "--watch")
	watch.Says("2 running")
	s.Exits(s.Drydock("plan", "set-pace", "kernel", "2"), 1, "2 at a time already")
	s.Exits(s.Drydock("plan", "set-pace", "kernel", "0"), 1, "plan pause")
	s.Exits(s.Drydock("plan", "set-pace", "kernel", "some"), 2, "some")
	s.Exits(s.Drydock("plan", "set-pace", "kernel", "3", "--comment", "the night is short"), 0, "3 at a time from now on")
	readyInPlan(s, "kernel", "worker-04")
	s.Exits(s.Drydock("plan", "status", "kernel"), 0, "3 at a time by name", "the night is short")
	for _, node := range []string{"worker-02", "worker-03", "worker-04"} {
		s.MustDrydock("done", node, "--requestor", "plan-kernel", "--yes")
	}
	end := watch.End()
	s.Exits(end, 0, "worker-02: over", "Completed: 4 of 4 done")
	if strings.Contains(end.Stdout, "\x1b") {
		t.Errorf("a pipe gets control sequences: %q", end.Stdout)
	}
	s.Exits(s.Drydock("plan", "status", "kernel"), 0, "Completed", "4 of 4 done", "PlanBegun")
	s.Exits(s.Drydock("plan", "pause", "kernel"), 1, "plan kernel has ended", "plan status kernel")
	s.Exits(s.Drydock("plan", "attach", "kernel", "--", "true"), 1, "plan kernel has ended", "plan status kernel")
	s.Exits(s.Drydock("plan", "attach", "kernle", "--", "true"), 1, "there is no plan kernle", "plan list --all")
	s.Eventually("the list has it as ended", func() error {
		if out := s.MustDrydock("plan", "list", "--all"); !strings.Contains(out, "Completed") || !strings.Contains(out, "4/4") {
			return errors.New(out)
		}
		return nil
	})
}

func TestAPlanIsWaitedForAndCancelled(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 10}")
	quick := []string{"--ready-timeout", "1s", "--on-ready-timeout", "release", "--yes", "--wait"}
	s.Exits(s.Drydock(append([]string{"plan", "create", "quick", "worker-01", "worker-02"}, quick...)...), 0, "quick", "Completed: 2 of 2 done")
	r := s.Drydock("plan", "create", "wrong", "worker-01", "--hook", "beforeCordon=nothing", "--yes")
	s.Exits(r, 2, "plan wrong was refused", "nothing")

	// Somebody else's, as the Temporal CLI starts it.
	newPlan(s, "theirs", `{"nodes":["worker-01","worker-02"],"requestor":"net"}`)
	readyInPlan(s, "theirs", "worker-01")
	wait := s.Spawn("plan", "status", "theirs", "--watch")
	wait.Says("1 running")
	s.Exits(s.Drydock("plan", "cancel", "theirs"), 2, "plan theirs is for net", "--yes")
	s.Exits(s.Drydock("plan", "cancel", "theirs", "--yes", "--comment", "postponed"), 0, "nothing more is begun")
	s.MustDrydock("done", "worker-01", "--requestor", "net", "--yes")
	s.Exits(wait.End(), 3, "Cancelled", "postponed")

	s.Exits(s.Drydock("plan", "create", "slow", "worker-03", "--yes", "--wait", "--timeout", "1s"), 4, "timed out waiting for plan slow", "The plan goes on")
	s.Exits(s.Drydock("plan", "cancel", "slow"), 0)
	untilShown(s, "slow", "is ending", func(p api.Plan) bool { return p.Phase == api.PlanCancelled || p.Counts.Running == 1 })
}

func TestADryRunOfAPlanStartsNothing(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 10}")
	ns := s.Namespace()
	s.Deployment(ns, "web", 2, site.On("worker-02"))
	s.Budget(ns, "web", 2)
	r := s.Drydock("plan", "create", "kernel", "--all", "--max-parallel", "2", "--canary", "1", "--dry-run", "--preflights", "3")
	s.Exits(r, 5, "canary", "worker-01", "of 3 nodes would be stopped", "worker-02", "not looked at", "Duration: unknown", "Nothing was started")
	r = s.Drydock("plan", "create", "kernel", "worker-03", "worker-01", "--dry-run", "-o", "json")
	s.Exits(r, 0)
	schematest.Holds(t, "plan-preview", []byte(r.Stdout))
	var p api.PlanPreview
	if err := json.Unmarshal([]byte(r.Stdout), &p); err != nil || len(p.Waves) != 2 || p.Waves[0].Nodes[0] != "worker-01" || p.Estimate != nil {
		t.Errorf("%+v, %v", p, err)
	}
	s.Exits(s.Drydock("plan", "create", "kernel", "--selector", "no=such", "--dry-run"), 0, "over 0 nodes")
	s.Exits(s.Drydock("plan", "create", "kernel", "--selector", "no=such", "--yes"), 2, "the plan would have no node", "nothing was started")
	s.Exits(s.Drydock("plan", "create", "kernel", "--all", "--dry-run", "--kubeconfig", "/nonexistent"), 1, "needs Kubernetes", "name the nodes")

	s.MustDrydock("start", "worker-05", "--ready-timeout", "1s", "--on-ready-timeout", "release")
	s.Eventually("a maintenance says how long one takes", func() error {
		r := s.Drydock("plan", "create", "kernel", "worker-03", "--order", "fewestPods", "--dry-run")
		if !strings.Contains(r.Stdout, "the median of 1 maintenance") {
			return errors.New(r.Out())
		}
		return nil
	})
	s.Exits(s.Drydock("plan", "list", "--all"), 0, "No plans.")
}
