package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/plan"
)

// TestSlowAPlanHasItsNodesRebooted has a plan do its nodes' work by the worker, which is killed on the way and comes back with
// a configuration that has the work no more.
func TestSlowAPlanHasItsNodesRebooted(t *testing.T) {
	s := site.Prepare(t, "scheduler: {maxParallel: 10}\n")
	ns := s.WorkNamespace()
	without := s.Options.Config
	const reboot = "devcluster.drydock.dev/reboot"
	s.Options.Config += fmt.Sprintf("work:\n  reboot: {job: {templateFile: %s, namespace: %s}, success: newBootID, deadline: 10m}\n",
		s.ExampleJob("reboot", map[string]string{reboot: "4s", world.CompletionDelay: "1h"}), ns)
	s.StartWorker()
	nodes := []string{"worker-01", "worker-02", "worker-03"}
	before, boots := s.Imprints(), map[string]string{}
	for _, node := range nodes {
		boots[node] = s.Node(node).Status.NodeInfo.BootID
	}
	s.Exits(s.Drydock("plan", "create", "typo", "worker-04", "--work", "rebot", "--yes"), 2, `there is no "rebot"; the worker knows reboot`)
	s.Exits(s.Drydock("plan", "create", "kernel", "worker-01", "worker-02", "worker-03", "--work", "reboot", "--max-parallel", "2", "--yes"), 0, "plan started")

	first := s.Temporal.GetWorkflow(s.Ctx, api.MaintenanceID(s.Cluster, "worker-01", "plan-kernel"), "")
	s.UntilStatus(first, "its Job runs", func(status api.Status) bool { return site.WorkRuns(status) && status.RunningWork().Job != "" })
	second := s.Temporal.GetWorkflow(s.Ctx, api.MaintenanceID(s.Cluster, "worker-02", "plan-kernel"), "")
	s.UntilStatus(second, "its Job runs", func(status api.Status) bool { return site.WorkRuns(status) && status.RunningWork().Job != "" })
	s.Worker.Kill()
	with := s.Options.Config
	s.Options.Config = without
	s.StartWorker()
	s.Completes(ns, "worker-01")
	s.Completes(ns, "worker-02")
	// What was begun goes well without its entry; what is begun from now on needs it.
	s.MustEnd(first, api.Completed)
	s.MustEnd(second, api.Completed)
	untilShown(s, "kernel", "has ended without worker-03", func(p api.Plan) bool { return p.Phase == api.PlanIncomplete && p.Counts.Done == 2 })
	s.Exits(s.Drydock("plan", "status", "kernel"), 0, `there is no "reboot"`)
	s.ExampleJob("reboot", map[string]string{reboot: "4s", world.CompletionDelay: "2s"})
	old := s.Worker
	s.Options.Config = with
	s.StartWorker()
	old.Kill()
	s.Exits(s.Drydock("plan", "create", "rest", "worker-03", "--work", "reboot", "--yes", "--wait"), 0, "1 of 1 done")
	for _, node := range nodes {
		s.Back(node, before[node])
		if now := s.Node(node).Status.NodeInfo.BootID; now == boots[node] {
			t.Errorf("%s was not rebooted", node)
		}
	}
	if created := s.WorksOf(ns); len(created) != len(nodes) {
		t.Errorf("%d Jobs for %d nodes: %v", len(created), len(nodes), created)
	}
}

// TestSlowAPlanWaitsForItsWindow has a plan wait for a window that is closed: nothing is touched, nothing is under way, and the
// plan can be paused and cancelled. Another one begins when its window opens.
func TestSlowAPlanWaitsForItsWindow(t *testing.T) {
	s := site.Prepare(t, "")
	opens := soon()
	far := opens.AddDate(0, 6, 0)
	s.Options.Config += fmt.Sprintf(`
windows:
  soon: {from: %s, to: %q, except: [2020-01-01]}
  far: {cron: "0 0 1 %d *", for: 1h, timezone: Asia/Kathmandu}
`, opens.Format("15:04"), opens.Add(time.Hour).Format("15:04"), far.Month())
	s.StartWorker()
	before := s.Imprints()
	s.Exits(s.Drydock("plan", "create", "typo", "worker-01", "--window", "sun", "--yes"), 2, `has no window "sun"`)
	s.Exits(s.Drydock("plan", "create", "later", "worker-01", "worker-02", "--window", "far", "--yes"), 0, "plan started")
	untilShown(s, "later", "waits for its window", func(p api.Plan) bool { return strings.Contains(fmt.Sprint(p.WaitingFor, p.Slowest), "window far ") })
	s.Exits(s.Drydock("plan", "status", "later"), 0, "window far does not open before ")
	quiet(s)
	s.MustDrydock("plan", "pause", "later", "--comment", "not this half-year")
	s.MustDrydock("plan", "cancel", "later", "--yes")
	untilShown(s, "later", "is cancelled", func(p api.Plan) bool { return p.Phase == api.PlanCancelled })
	s.Eventually("nobody waits for window far", func() error {
		if waiting := s.State().Pending; len(waiting) > 0 {
			return fmt.Errorf("%+v", waiting)
		}
		return nil
	})
	if touched := s.Touched(); len(touched) > 0 {
		t.Errorf("touched while the windows were closed: %+v", touched)
	}
	s.Exits(s.Drydock("plan", "create", "tonight", "worker-03", "--window", "soon", "--ready-timeout", "1s", "--on-ready-timeout", "release", "--yes"), 0, "plan started")
	// A freeze that ends before the window opens changes nothing.
	s.MustDrydock("freeze", "--comment", "audit")
	s.MustDrydock("thaw")
	s.Within(time.Until(opens)+site.Patience, "the window opens", func() error {
		if p := planOf(s, "tonight"); p.Phase != api.PlanCompleted {
			return errors.New(string(p.Phase) + ": " + p.WaitingFor)
		}
		return nil
	})
	p := planOf(s, "tonight", "--all")
	if since := p.Nodes[0].Since; *p.Counts != (plan.Counts{Total: 1, Done: 1}) || since.Before(opens) {
		t.Errorf("%+v, done at %s, the window opened %s", *p.Counts, since, opens)
	}
	for name, imprint := range before {
		s.Back(name, imprint)
	}
}
