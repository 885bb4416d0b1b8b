package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/show"
)

// TestAPlanHasItsNodesRebooted has a plan do its nodes' work by the worker, which is killed on the way and comes back with
// a configuration that has the work no more.
func TestAPlanHasItsNodesRebooted(t *testing.T) {
	slow(t)
	s := prepareSite(t, "scheduler: {maxParallel: 10}\n")
	ns := s.workNamespace()
	without := s.options.Config
	const reboot = "devcluster.drydock.dev/reboot"
	s.options.Config += fmt.Sprintf("work:\n  reboot: {job: {templateFile: %s, namespace: %s}, success: newBootID, deadline: 10m}\n",
		s.exampleJob("reboot", map[string]string{reboot: "4s", world.CompletionDelay: "1h"}), ns)
	s.startWorker()
	nodes := []string{"worker-01", "worker-02", "worker-03"}
	before, boots := s.imprints(), map[string]string{}
	for _, node := range nodes {
		boots[node] = s.node(node).Status.NodeInfo.BootID
	}
	s.exits(s.drydock("plan", "create", "typo", "worker-04", "--work", "rebot", "--yes"), 2, `there is no "rebot"; the worker knows reboot`)
	s.exits(s.drydock("plan", "create", "kernel", "worker-01", "worker-02", "worker-03", "--work", "reboot", "--max-parallel", "2", "--yes"), 0, "plan started")

	first := s.temporal.GetWorkflow(s.ctx, api.MaintenanceID(s.cluster, "worker-01", "plan-kernel"), "")
	s.untilStatus(first, "its Job runs", func(status api.Status) bool { return workRuns(status) && status.RunningWork().Job != "" })
	second := s.temporal.GetWorkflow(s.ctx, api.MaintenanceID(s.cluster, "worker-02", "plan-kernel"), "")
	s.untilStatus(second, "its Job runs", func(status api.Status) bool { return workRuns(status) && status.RunningWork().Job != "" })
	s.worker.Kill()
	with := s.options.Config
	s.options.Config = without
	s.startWorker()
	s.completes(ns, "worker-01")
	s.completes(ns, "worker-02")
	// What was begun goes well without its entry; what is begun from now on needs it.
	s.mustEnd(first, api.Completed)
	s.mustEnd(second, api.Completed)
	s.untilShown("kernel", "has ended without worker-03", func(p show.Plan) bool { return p.Phase == api.PlanIncomplete && p.Counts.Done == 2 })
	s.exits(s.drydock("plan", "status", "kernel"), 0, `there is no "reboot"`)
	s.exampleJob("reboot", map[string]string{reboot: "4s", world.CompletionDelay: "2s"})
	old := s.worker
	s.options.Config = with
	s.startWorker()
	old.Kill()
	s.exits(s.drydock("plan", "create", "rest", "worker-03", "--work", "reboot", "--yes", "--wait"), 0, "1 of 1 done")
	for _, node := range nodes {
		s.back(node, before[node])
		if now := s.node(node).Status.NodeInfo.BootID; now == boots[node] {
			t.Errorf("%s was not rebooted", node)
		}
	}
	if created := s.worksOf(ns); len(created) != len(nodes) {
		t.Errorf("%d Jobs for %d nodes: %v", len(created), len(nodes), created)
	}
}

// TestAPlanWaitsForItsWindow has a plan wait for a window that is closed: nothing is touched, nothing is under way, and the
// plan can be paused and cancelled. Another one begins when its window opens.
func TestAPlanWaitsForItsWindow(t *testing.T) {
	slow(t)
	s := prepareSite(t, "")
	opens := soon()
	far := opens.AddDate(0, 6, 0)
	s.options.Config += fmt.Sprintf(`
windows:
  soon: {from: %s, to: %q, except: [2020-01-01]}
  far: {cron: "0 0 1 %d *", for: 1h, timezone: Asia/Kathmandu}
`, opens.Format("15:04"), opens.Add(time.Hour).Format("15:04"), far.Month())
	s.startWorker()
	before := s.imprints()
	s.exits(s.drydock("plan", "create", "typo", "worker-01", "--window", "sun", "--yes"), 2, `has no window "sun"`)
	s.exits(s.drydock("plan", "create", "later", "worker-01", "worker-02", "--window", "far", "--yes"), 0, "plan started")
	s.untilShown("later", "waits for its window", func(p show.Plan) bool { return strings.Contains(fmt.Sprint(p.WaitingFor, p.Slowest), "window far ") })
	s.exits(s.drydock("plan", "status", "later"), 0, "window far does not open before ")
	s.quiet()
	s.mustDrydock("plan", "pause", "later", "--comment", "not this half-year")
	s.mustDrydock("plan", "cancel", "later", "--yes")
	s.untilShown("later", "is cancelled", func(p show.Plan) bool { return p.Phase == api.PlanCancelled })
	s.eventually("nobody waits for window far", func() error {
		if waiting := s.state().Pending; len(waiting) > 0 {
			return fmt.Errorf("%+v", waiting)
		}
		return nil
	})
	if touched := s.touched(); len(touched) > 0 {
		t.Errorf("touched while the windows were closed: %+v", touched)
	}
	s.exits(s.drydock("plan", "create", "tonight", "worker-03", "--window", "soon", "--ready-timeout", "1s", "--on-ready-timeout", "release", "--yes"), 0, "plan started")
	// A freeze that ends before the window opens changes nothing.
	s.mustDrydock("freeze", "--reason", "audit")
	s.mustDrydock("thaw")
	s.within(time.Until(opens)+patience, "the window opens", func() error {
		if p := s.planOf("tonight"); p.Phase != api.PlanCompleted {
			return errors.New(string(p.Phase) + ": " + p.WaitingFor)
		}
		return nil
	})
	p := s.planOf("tonight", "--all")
	if since := p.Nodes[0].Since; *p.Counts != (plan.Counts{Total: 1, Done: 1}) || since.Before(opens) {
		t.Errorf("%+v, done at %s, the window opened %s", *p.Counts, since, opens)
	}
	for name, imprint := range before {
		s.back(name, imprint)
	}
}
