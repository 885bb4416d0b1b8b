package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/show"
)

// quickly is a maintenance that ends by itself.
const quickly = `"maintenance":{"readyTimeout":"1s","onReadyTimeout":"release"}`

// plan starts a plan from JSON, as the Temporal CLI does.
func (s *site) plan(name, input string) client.WorkflowRun {
	s.Helper()
	run, err := s.temporal.ExecuteWorkflow(s.ctx, client.StartWorkflowOptions{
		ID: api.PlanID(s.cluster, name), TaskQueue: api.TaskQueue(s.cluster, "drydock"),
	}, api.MaintenancePlanType, json.RawMessage(input))
	if err != nil {
		s.Fatal(err)
	}
	return run
}

func (s *site) planStatus(run client.WorkflowRun) (status api.PlanStatus, err error) {
	value, err := s.temporal.QueryWorkflow(s.ctx, run.GetID(), "", api.QueryStatus, api.PlanStatusRequest{Limit: 1000})
	if err == nil {
		err = value.Get(&status)
	}
	return status, err
}

// untilPlan waits until the status of a plan is as wanted.
func (s *site) untilPlan(run client.WorkflowRun, what string, is func(api.PlanStatus) bool) (status api.PlanStatus) {
	s.Helper()
	s.eventually("the plan "+what, func() (err error) {
		if status, err = s.planStatus(run); err != nil {
			return err
		}
		if !is(status) {
			return fmt.Errorf("it is %s, waits for %q, %+v: %s", status.Phase, status.WaitingFor, status.Counts, status.Failure)
		}
		return nil
	})
	return status
}

// planEnds waits for the end of a plan and returns its result, the failed ones' out of the error.
func (s *site) planEnds(run client.WorkflowRun) (status api.PlanStatus) {
	s.Helper()
	return s.untilPlan(run, "has ended", func(status api.PlanStatus) bool { return status.Phase.Ended() })
}

func TestAPlanRollsOverItsNodesInItsOrder(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 10}")
	ns := s.namespace()
	s.deployment(ns, "web", 6)
	s.budget(ns, "web", 5)
	before := s.imprints()
	nodes := s.watchNodes()
	run := s.plan("kernel", `{"nodes":["worker-03","worker-01","worker-05","worker-02","worker-04"],"reason":"kernel 6.12",
		"strategy":{"maxParallel":2},`+quickly+`}`)
	status := s.planEnds(run)
	if status.Phase != api.PlanCompleted || status.Counts != (plan.Counts{Total: 5, Done: 5}) {
		t.Errorf("it is %s with %+v: %s", status.Phase, status.Counts, status.Failure)
	}
	if most := s.nobodyHolds(nodes); most > 2 {
		t.Errorf("%d nodes were held at one instant, want 2 at most", most)
	}
	begun := slices.Clone(status.Nodes)
	slices.SortStableFunc(begun, func(a, b api.PlanNode) int { return a.Since.Compare(b.Since) })
	if first := begun[0].Node; first != "worker-01" && first != "worker-02" {
		t.Errorf("%s was done first", first)
	}
	for name, imprint := range before {
		s.back(name, imprint)
	}
	var result api.PlanResult
	if err := run.Get(s.ctx, &result); err != nil || result.Phase != api.PlanCompleted {
		t.Errorf("result %+v: %v", result, err)
	}
}

func TestAPlanPausesWhereANodeFailsAndGoesOnWhenToldTo(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 5}")
	run := s.plan("kernel", `{"nodes":["worker-01","worker-02","worker-03"],"requestor":"ops"}`)
	s.untilReadyOf(run, "worker-01")
	s.signalID(api.MaintenanceID(s.cluster, "worker-01", "ops"), api.MsgFailed, api.FailedMessage{Reason: "the disk is broken"})
	status := s.untilPlan(run, "pauses", func(p api.PlanStatus) bool { return p.Phase == api.PlanPaused })
	if n := status.Nodes[0]; n.Node != "worker-01" || n.State != plan.Held.Word() || n.Note != "the disk is broken" {
		t.Errorf("first of all it tells %+v", n)
	}
	s.always("nothing more is begun", 2*time.Second, func() error {
		if status, err := s.planStatus(run); err != nil || status.Counts.Running > 0 {
			return fmt.Errorf("%+v, %v", status.Counts, err)
		}
		return nil
	})
	s.signalID(run.GetID(), api.MsgResume, api.Simple{Message: api.Message{By: "ops", Comment: "the others are fine"}})
	s.untilReadyOf(run, "worker-02")
	s.signalID(run.GetID(), api.MsgSkip, api.NodeOfPlan{Node: "worker-03"})
	s.signalID(api.MaintenanceID(s.cluster, "worker-02", "ops"), api.MsgDone, nil)
	status = s.planEnds(run)
	if status.Phase != api.PlanIncomplete || status.Counts != (plan.Counts{Total: 3, Held: 1, Done: 1, Skipped: 1}) {
		t.Errorf("it is %s with %+v", status.Phase, status.Counts)
	}
	s.signalID(api.MaintenanceID(s.cluster, "worker-01", "ops"), api.MsgDone, nil)
	s.slotFree("worker-01")
}

// untilReadyOf waits until a node of a plan is Ready.
func (s *site) untilReadyOf(run client.WorkflowRun, node string) {
	s.Helper()
	s.eventually(node+" is Ready", func() error {
		status, err := s.planStatus(run)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(status.Nodes, func(n api.PlanNode) bool { return n.Node == node })
		if i < 0 || status.Nodes[i].State != plan.Running.Word() {
			return fmt.Errorf("the plan says %+v", status.Nodes)
		}
		value, err := s.temporal.QueryWorkflow(s.ctx, api.MaintenanceID(s.cluster, node, status.Plan.Requestor), "", api.QueryStatus)
		if err != nil {
			return err
		}
		var of api.Status
		if err := value.Get(&of); err != nil || of.Phase != api.Ready {
			return errors.Join(err, fmt.Errorf("it is %s", of.Phase))
		}
		return nil
	})
}

// signalID signals the present run of a workflow.
func (s *site) signalID(id, name string, payload any) {
	s.Helper()
	if err := s.temporal.SignalWorkflow(s.ctx, id, "", name, payload); err != nil {
		s.Fatal(err)
	}
}

func TestARolloutThatIsKilledIsFinishedByAttaching(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 5}")
	nodes := s.watchNodes()
	log, goOn := s.file("log", ""), filepath.Join(t.TempDir(), "go")
	// Each command takes a moment, in which the terminal can be lost, and the last one takes until it is.
	command := fmt.Sprintf("echo begun {node} >>%[1]s; sleep 1; until [ {node} != worker-05 -o -e %[2]s ]; do sleep 0.1; done; echo ended {node} >>%[1]s", log, goOn)
	first := s.spawn("rollout", "worker-01", "worker-02", "worker-03", "worker-04", "worker-05", "--name", "patches", "--yes", "--max-parallel", "2", "--", "sh", "-c", command)
	s.eventually("two nodes are done", func() error {
		status, err := s.planStatus(s.temporal.GetWorkflow(s.ctx, api.PlanID(s.cluster, "patches"), ""))
		if err == nil && status.Counts.Done < 2 {
			err = fmt.Errorf("%+v", status.Counts)
		}
		return err
	})
	// The commands go with the terminal.
	if err := syscall.Kill(-first.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-first.exited
	// What the plan was told of by then is not done again. Of a command that ended just before the kill nobody was told.
	before, err := s.planStatus(s.temporal.GetWorkflow(s.ctx, api.PlanID(s.cluster, "patches"), ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(goOn, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.exits(s.drydock("plan", "attach", "patches", "--rerun", "--", "sh", "-c", command), 0, "5 nodes: 5 done")
	ended := said(t, log, "ended")
	for _, n := range before.Nodes {
		if times := ended[n.Node]; n.State == plan.Done.Word() && times != 1 {
			t.Errorf("%s was worked on to the end %d times", n.Node, times)
		}
	}
	if len(ended) != 5 {
		t.Errorf("the ends of %v", ended)
	}
	if most := s.nobodyHolds(nodes); most > 2 {
		t.Errorf("%d nodes were held at one instant", most)
	}
	s.exits(s.drydock("rollout", "--resume", "patches", "--yes", "--", "false"), 0, "Plan patches has done 5 nodes")
}

// said counts what a log says of each node.
func said(t *testing.T, log, what string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if word, node, _ := strings.Cut(strings.TrimSpace(line), " "); word == what {
			times[node]++
		}
	}
	return times
}

func TestAnAttachedTerminalFailsWhatAnotherLeftBehind(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 5}")
	first := s.spawn("rollout", "worker-01", "worker-02", "--name", "patches", "--yes", "--", "sleep", "300")
	s.eventually("the work has begun", func() error {
		status, err := s.statusOf(api.MaintenanceID(s.cluster, "worker-01", "ops"))
		if err == nil && status.StartedAt == nil {
			err = errors.New(string(status.Phase))
		}
		return err
	})
	if err := syscall.Kill(-first.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-first.exited
	s.exits(s.drydock("plan", "attach", "patches", "--", "true"), 2, "--yes")
	second := s.spawn("plan", "attach", "patches", "--yes", "--continue-on-error", "--", "true")
	s.eventually("it is known that its outcome is not", func() error {
		status, err := s.statusOf(api.MaintenanceID(s.cluster, "worker-01", "ops"))
		if err == nil && status.Phase != api.RequestorFailed {
			err = errors.New(string(status.Phase))
		}
		return err
	})
	plan := s.temporal.GetWorkflow(s.ctx, api.PlanID(s.cluster, "patches"), "")
	s.untilPlan(plan, "pauses", func(p api.PlanStatus) bool { return p.Phase == api.PlanPaused })
	s.signalID(plan.GetID(), api.MsgResume, api.Simple{Message: api.Message{Comment: "worker-01 is looked at by hand"}})
	s.exits(second.end(), 1, "worker-02", "1 done")
	s.mustDrydock("done", "worker-01")
}

// statusOf asks the present maintenance under a workflow ID.
func (s *site) statusOf(id string) (status api.Status, err error) {
	value, err := s.temporal.QueryWorkflow(s.ctx, id, "", api.QueryStatus)
	if err == nil {
		err = value.Get(&status)
	}
	return status, err
}

// TestAPlanThatIsResetBeginsNoNodeTwice: it goes on from its first workflow task, and knows nothing of what it began since.
func TestAPlanThatIsResetBeginsNoNodeTwice(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 5}")
	nodes := s.watchNodes()
	run := s.plan("kernel", `{"nodes":["worker-01","worker-02","worker-03","worker-04"],"strategy":{"maxParallel":2},`+quickly+`}`)
	s.untilPlan(run, "has come half way", func(p api.PlanStatus) bool { return p.Counts.Done >= 2 })
	again := s.resetTo(run, s.firstTask(run.GetID()), true)
	status := s.planEnds(again)
	if status.Phase != api.PlanCompleted || status.Counts != (plan.Counts{Total: 4, Done: 4}) {
		t.Errorf("it is %s with %+v: %s", status.Phase, status.Counts, status.Failure)
	}
	s.nobodyHolds(nodes)
	if taken := nodes.takenAll(); taken != 4 {
		t.Errorf("nodes were taken out of service %d times, want 4", taken)
	}
}

// TestAPlanThatIsResetIsTakenUpByATerminal: it knows again which maintenances are its own, and a terminal works on their nodes.
func TestAPlanThatIsResetIsTakenUpByATerminal(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 5}")
	run := s.plan("kernel", `{"nodes":["worker-01","worker-02"],"strategy":{"maxParallel":2}}`)
	s.readyInPlan("kernel", "worker-01")
	s.readyInPlan("kernel", "worker-02")
	s.signalID(api.MaintenanceID(s.cluster, "worker-02", plan.RequestorOf("kernel")), api.MsgFailed, api.FailedMessage{Reason: "the disk"})
	s.untilPlan(run, "pauses", func(p api.PlanStatus) bool { return p.Phase == api.PlanPaused })
	again := s.resetTo(run, s.firstTask(run.GetID()), true)
	s.untilPlan(again, "pauses again", func(p api.PlanStatus) bool { return p.Phase == api.PlanPaused && p.Counts.Held == 1 })
	s.exits(s.drydock("plan", "attach", "kernel", "--continue-on-error", "--", "true"), 1, "worker-01", "1 done", "worker-02")
	s.mustDrydock("cancel", "worker-02", "--requestor", plan.RequestorOf("kernel"), "--release", "--yes")
}

// TestAPlanUnderATerminatedOnesNameTakesUpWhatRuns: it adopts the maintenance whose settings are its own, waits for the other, and begins
// no node beside them.
func TestAPlanUnderATerminatedOnesNameTakesUpWhatRuns(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 5}")
	const input = `{"nodes":["worker-01","worker-02","worker-03"],"strategy":{"maxParallel":2},"maintenance":{"readyTimeout":%q}}`
	first := s.plan("kernel", fmt.Sprintf(input, "1h"))
	s.untilReadyOf(first, "worker-01")
	s.untilReadyOf(first, "worker-02")
	if err := s.temporal.TerminateWorkflow(s.ctx, first.GetID(), "", "a test"); err != nil {
		t.Fatal(err)
	}
	note := func(p api.PlanStatus, node string) string {
		i := slices.IndexFunc(p.Nodes, func(n api.PlanNode) bool { return n.Node == node })
		return p.Nodes[i].Note
	}
	second := s.plan("kernel", fmt.Sprintf(input, "1h"))
	s.untilPlan(second, "adopts what runs", func(p api.PlanStatus) bool {
		return p.Counts.Running == 2 && p.Counts.Waiting == 1 && strings.Contains(note(p, "worker-01"), "is adopted")
	})
	requestor := plan.RequestorOf("kernel")
	s.mustDrydock("done", "worker-01", "--requestor", requestor, "--yes")
	s.untilReadyOf(second, "worker-03")
	if err := s.temporal.TerminateWorkflow(s.ctx, second.GetID(), "", "a test"); err != nil {
		t.Fatal(err)
	}
	third := s.plan("kernel", fmt.Sprintf(input, "2h"))
	s.untilPlan(third, "waits for what runs with other settings", func(p api.PlanStatus) bool {
		return p.Counts.Running == 2 && p.Counts.Waiting == 1 && strings.Contains(note(p, "worker-02"), "readyTimeout differs")
	})
	s.mustDrydock("done", "worker-02", "--requestor", requestor, "--yes")
	s.untilReadyOf(third, "worker-01")
	for _, node := range []string{"worker-01", "worker-03"} {
		s.mustDrydock("done", node, "--requestor", requestor, "--yes")
	}
	for _, node := range []string{"worker-02", "worker-03"} { // begun anew
		s.untilReadyOf(third, node)
		s.mustDrydock("done", node, "--requestor", requestor, "--yes")
	}
	if status := s.planEnds(third); status.Phase != api.PlanCompleted || status.Counts != (plan.Counts{Total: 3, Done: 3}) {
		t.Errorf("it is %s with %+v", status.Phase, status.Counts)
	}
}

// TestACancelledPlanFinishesWhatIsReady, and gives the others back.
func TestACancelledPlanFinishesWhatIsReady(t *testing.T) {
	s := newSite(t, "scheduler: {maxParallel: 2}")
	run := s.plan("kernel", `{"nodes":["worker-01","worker-02","worker-03","worker-04"],"strategy":{"maxParallel":3}}`)
	var ready []string // whichever of the three asked for their slots first
	s.untilShown("kernel", "has two nodes Ready", func(p show.Plan) bool {
		ready = nil
		for _, n := range p.Slowest {
			if n.Phase == api.Ready {
				ready = append(ready, n.Node)
			}
		}
		return len(ready) == 2
	})
	s.mustDrydock("plan", "skip", "kernel", ready[1])
	s.mustDrydock("plan", "cancel", "kernel", "--yes")
	s.untilPlan(run, "gives back what is not Ready", func(p api.PlanStatus) bool { return p.Counts.Skipped == 1 && p.Counts.Running == 2 })
	for _, node := range ready {
		s.mustDrydock("done", node, "--requestor", plan.RequestorOf("kernel"), "--yes")
	}
	if status := s.planEnds(run); status.Phase != api.PlanCancelled || status.Counts != (plan.Counts{Total: 4, Waiting: 1, Skipped: 1, Done: 2}) {
		t.Errorf("it is %s with %+v", status.Phase, status.Counts)
	}
}

// TestAPlanIsToldAndRecorded: channels hear of it, and the audit has a record of it beside those of its maintenances.
func TestAPlanIsToldAndRecorded(t *testing.T) {
	s := prepareSite(t, "")
	signingKey := "whsec_c2lnbmVk"
	r := s.receivers(signingKey, "unused")
	path := filepath.Join(s.options.Dir, "audit.jsonl")
	s.options.Config += fmt.Sprintf(`
scheduler: {maxParallel: 3}
audit: {file: {path: %[2]s}}
channels:
  events: {default: true, filter: {events: [PlanBegun, PlanCanaryWaits, PlanPaused, PlanResumed, PlanEnded]}, webhook: {url: "%[1]s/events", secret: %[3]s}}
`, r.http.URL, path, r.secret("signing", signingKey))
	s.startWorker()
	run := s.plan("kernel", `{"nodes":["worker-01","worker-02"],"reason":"kernel 6.12","strategy":{"canary":{"nodes":1,"approval":true}},`+quickly+`}`)
	s.untilPlan(run, "waits for approval", func(p api.PlanStatus) bool { return strings.Contains(p.WaitingFor, "approval") })
	s.signalID(run.GetID(), api.MsgApprove, api.Simple{Message: api.Message{By: "amy", Comment: "looks good"}})
	s.planEnds(run)
	var told []string
	s.eventually("the channel was told", func() error {
		told = nil
		for _, e := range r.events("/events", run.GetRunID()) {
			told = append(told, e.Plan+" "+string(e.State))
		}
		if len(told) < 3 {
			return fmt.Errorf("%q", told)
		}
		return nil
	})
	if want := []string{"kernel PlanBegun", "kernel PlanCanaryWaits", "kernel PlanEnded"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	kept := s.recordOf(path, run.GetRunID())
	if kept.Plan == nil || kept.Plan.Total != 2 || kept.Plan.Done != 2 || kept.Phase != string(api.PlanCompleted) || kept.Reason != "kernel 6.12" || kept.Starter == nil {
		t.Errorf("kept %+v", kept)
	}
	if len(kept.Messages) != 1 || kept.Messages[0].By != "amy" {
		t.Errorf("messages %+v", kept.Messages)
	}
}
