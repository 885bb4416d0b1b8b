package e2e

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
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/show"
)

// planOf is a plan as the command line shows it to programs.
func (s *site) planOf(name string, args ...string) (p show.Plan) {
	s.Helper()
	out := s.mustDrydock(append([]string{"plan", "status", name, "-o", "json"}, args...)...)
	schematest.Holds(s.T, "plan", []byte(out))
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		s.Fatal(err)
	}
	return p
}

// untilShown waits until the command line shows a plan as wanted.
func (s *site) untilShown(name, what string, is func(show.Plan) bool) (p show.Plan) {
	s.Helper()
	s.eventually("plan "+name+" "+what, func() error {
		if r := s.drydock("plan", "status", name); r.status != 0 {
			return errors.New(r.out()) // whoever is to start it has not yet
		}
		if p = s.planOf(name); !is(p) {
			return fmt.Errorf("it is %s, waits for %q: %+v, %+v", p.Phase, p.WaitingFor, p.Counts, p.Nodes)
		}
		return nil
	})
	return p
}

// stateIn tells whether a node of a plan is in a state.
func stateIn(p show.Plan, node string, state plan.State) bool {
	return slices.ContainsFunc(p.Nodes, func(n api.PlanNode) bool { return n.Node == node && n.State == state.Word() })
}

// readyInPlan waits until the node's maintenance in the plan is Ready.
func (s *site) readyInPlan(name, node string) {
	s.Helper()
	s.untilShown(name, "has "+node+" Ready", func(p show.Plan) bool {
		return slices.ContainsFunc(p.Slowest, func(n show.SlowNode) bool { return n.Node == node && n.Phase == api.Ready })
	})
}

// Dry run, create and status say which limits a plan is larger than, those of groups too, each once with the command that raises it.
func TestAPlanThatIsLargerThanTheLimitsIsToldSo(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 2, groups: [{name: zone, groupBy: ["+corev1.LabelTopologyZone+"], maxParallel: 1}]}")
	create := []string{"plan", "create", "kernel", "worker-01", "worker-04", "worker-07", "--max-parallel", "3"} // all are of zone a
	for _, args := range [][]string{
		append(slices.Clone(create), "--dry-run", "--preflights", "0"), append(slices.Clone(create), "--yes"), {"plan", "status", "kernel"},
	} {
		out := s.drydock(args...).out()
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
	if p := s.planOf("kernel"); len(p.Warnings) != 2 {
		t.Errorf("programs are told %q", p.Warnings)
	}
}

func TestAPlanFromTheCommandLine(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 10}")
	s.exits(s.drydock("plan", "list"), 0, "No plans are running")
	s.exits(s.drydock("plan", "status", "kernel"), 1, "there is no plan kernel", "plan list --all")
	s.exits(s.drydock("plan", "create", "kernel", "worker-1", "--yes"), 1, `node "worker-1" does not exist`, "Nothing was started")
	s.exits(s.drydock("plan", "create", "kernel", "worker-01"), 2, "--yes")

	file := s.file("plan.yaml", "nodes: [worker-01, worker-02, worker-03, worker-04]\nreason: kernel 6.12\nstrategy: {canary: {nodes: 1, approval: true}}\n")
	r := s.drydock("plan", "create", "kernel", "-f", file, "--ticket", "OPS-7", "--max-parallel", "2", "--by", "x")
	s.exits(r, 2, "unknown flag: --by")
	s.exits(s.drydock("plan", "create", "kernel", "-f", file, "--ticket", "OPS-7", "--max-parallel", "2", "--yes"), 0,
		"Plan kernel over 4 nodes, 2 at a time by name: worker-01, worker-02", "plan started")
	s.exits(s.drydock("plan", "create", "kernel", "-f", file, "--yes"), 1, "runs already", "plan status kernel")
	s.readyInPlan("kernel", "worker-01")
	s.exits(s.drydock("plan", "status", "kernel"), 0, "kernel 6.12", "OPS-7", "canary of 1 node, then approval", "0 of 4 done, 1 running, 3 waiting", "Slowest:", "worker-01")
	s.mustDrydock("done", "worker-01", "--requestor", "plan-kernel", "--yes")
	s.untilShown("kernel", "waits for approval", func(p show.Plan) bool { return strings.Contains(p.WaitingFor, "approval") })
	s.exits(s.drydock("plan", "pause", "kernel", "--comment", "incident 4711", "--by", "amy"), 0, "nothing more is begun")
	s.exits(s.drydock("plan", "pause", "kernel"), 1, "paused already")
	s.exits(s.drydock("plan", "status", "kernel"), 0, "Paused", "paused by amy: incident 4711")
	s.eventually("the list has it", func() error {
		out := s.mustDrydock("plan", "list", "-o", "json")
		schematest.Holds(t, "plans", []byte(out))
		if !strings.Contains(out, `"phase": "Paused"`) || s.mustDrydock("plan", "list", "-o", "name") != "kernel\n" {
			return errors.New(out)
		}
		return nil
	})
	s.exits(s.drydock("plan", "approve", "kernel", "--comment", "looks good"), 0, "goes on")
	s.exits(s.drydock("plan", "skip", "kernel", "worker-04", "worker-4", "--comment", "to be scrapped"), 1, "worker-04 is left out", `no node "worker-4"`)
	out := s.mustDrydock("plan", "resume", "kernel", "-o", "json")
	schematest.Holds(t, "plan-summary", []byte(out))
	s.readyInPlan("kernel", "worker-02")
	s.readyInPlan("kernel", "worker-03")
	s.exits(s.drydock("plan", "retry", "kernel", "worker-02"), 1, "is running: retry is for nodes that failed")
	s.exits(s.drydock("plan", "retry", "kernel", "worker-04"), 0, "worker-04 is begun anew")
	if p := s.planOf("kernel", "--state", "waiting,done"); len(p.Nodes) != 2 || !stateIn(p, "worker-01", plan.Done) || !stateIn(p, "worker-04", plan.Waiting) {
		t.Errorf("waiting and done are %+v", p.Nodes)
	}
	if p := s.planOf("kernel", "--all"); len(p.Nodes) != 4 {
		t.Errorf("all are %+v", p.Nodes)
	}
	watch := s.spawn("plan", "status", "kernel", "--watch")
	watch.says("2 running")
	for _, node := range []string{"worker-02", "worker-03"} {
		s.mustDrydock("done", node, "--requestor", "plan-kernel", "--yes")
	}
	s.readyInPlan("kernel", "worker-04")
	s.mustDrydock("done", "worker-04", "--requestor", "plan-kernel", "--yes")
	end := watch.end()
	s.exits(end, 0, "worker-02: over", "Completed: 4 of 4 done")
	if strings.Contains(end.stdout, "\x1b") {
		t.Errorf("a pipe gets control sequences: %q", end.stdout)
	}
	s.exits(s.drydock("plan", "status", "kernel"), 0, "Completed", "4 of 4 done", "PlanBegun")
	s.exits(s.drydock("plan", "pause", "kernel"), 1, "plan kernel has ended", "plan status kernel")
	s.exits(s.drydock("plan", "attach", "kernel", "--", "true"), 1, "plan kernel has ended", "plan status kernel")
	s.exits(s.drydock("plan", "attach", "kernle", "--", "true"), 1, "there is no plan kernle", "plan list --all")
	s.eventually("the list has it as ended", func() error {
		if out := s.mustDrydock("plan", "list", "--all"); !strings.Contains(out, "Completed") || !strings.Contains(out, "4/4") {
			return errors.New(out)
		}
		return nil
	})
}

func TestAPlanIsWaitedForAndCancelled(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 10}")
	quick := []string{"--ready-timeout", "1s", "--on-ready-timeout", "release", "--yes", "--wait"}
	s.exits(s.drydock(append([]string{"plan", "create", "quick", "worker-01", "worker-02"}, quick...)...), 0, "quick", "Completed: 2 of 2 done")
	r := s.drydock("plan", "create", "wrong", "worker-01", "--hook", "beforeCordon=nothing", "--yes")
	s.exits(r, 2, "plan wrong was refused", "nothing")

	// Somebody else's, as the Temporal CLI starts it.
	s.plan("theirs", `{"nodes":["worker-01","worker-02"],"requestor":"net"}`)
	s.readyInPlan("theirs", "worker-01")
	wait := s.spawn("plan", "status", "theirs", "--watch")
	wait.says("1 running")
	s.exits(s.drydock("plan", "cancel", "theirs"), 2, "plan theirs is for net", "--yes")
	s.exits(s.drydock("plan", "cancel", "theirs", "--yes", "--comment", "postponed"), 0, "nothing more is begun")
	s.mustDrydock("done", "worker-01", "--requestor", "net", "--yes")
	s.exits(wait.end(), 3, "Cancelled", "postponed")

	s.exits(s.drydock("plan", "create", "slow", "worker-03", "--yes", "--wait", "--timeout", "1s"), 4, "timed out waiting for plan slow", "The plan goes on")
	s.exits(s.drydock("plan", "cancel", "slow"), 0)
	s.untilShown("slow", "is ending", func(p show.Plan) bool { return p.Phase == api.PlanCancelled || p.Counts.Running == 1 })
}

func TestADryRunOfAPlanStartsNothing(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 10}")
	ns := s.namespace()
	s.deployment(ns, "web", 2, on("worker-02"))
	s.budget(ns, "web", 2)
	r := s.drydock("plan", "create", "kernel", "--all", "--max-parallel", "2", "--canary", "1", "--dry-run", "--preflights", "3")
	s.exits(r, 5, "canary", "worker-01", "Preflight of 3 nodes", "worker-02", "not looked at", "Duration: unknown", "Nothing was started")
	r = s.drydock("plan", "create", "kernel", "worker-03", "worker-01", "--dry-run", "-o", "json")
	s.exits(r, 0)
	schematest.Holds(t, "plan-preview", []byte(r.stdout))
	var p show.PlanPreview
	if err := json.Unmarshal([]byte(r.stdout), &p); err != nil || len(p.Waves) != 2 || p.Waves[0].Nodes[0] != "worker-01" || p.Estimate != nil {
		t.Errorf("%+v, %v", p, err)
	}
	s.exits(s.drydock("plan", "create", "kernel", "--selector", "no=such", "--dry-run"), 0, "over 0 nodes")
	s.exits(s.drydock("plan", "create", "kernel", "--all", "--dry-run", "--kubeconfig", "/nonexistent"), 1, "needs Kubernetes", "name the nodes")

	s.mustDrydock("start", "worker-05", "--ready-timeout", "1s", "--on-ready-timeout", "release")
	s.eventually("a maintenance says how long one takes", func() error {
		r := s.drydock("plan", "create", "kernel", "worker-03", "--order", "fewestPods", "--dry-run")
		if !strings.Contains(r.stdout, "the median of 1 maintenance") {
			return errors.New(r.out())
		}
		return nil
	})
	s.exits(s.drydock("plan", "list", "--all"), 0, "No plans.")
}
