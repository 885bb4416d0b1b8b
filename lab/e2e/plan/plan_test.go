package plan

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
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/plan"
)

// quickly is a maintenance that ends by itself.
const quickly = `"maintenance":{"readyTimeout":"1s","onReadyTimeout":"release"}`

// newPlan starts a plan from JSON, as the Temporal CLI does.
func newPlan(s *site.Site, name, input string) client.WorkflowRun {
	s.Helper()
	run, err := s.Temporal.ExecuteWorkflow(s.Ctx, client.StartWorkflowOptions{
		ID: api.PlanID(s.Cluster, name), TaskQueue: api.TaskQueue(s.Cluster, "drydock"),
	}, api.MaintenancePlanType, json.RawMessage(input))
	if err != nil {
		s.Fatal(err)
	}
	return run
}

func planStatus(s *site.Site, run client.WorkflowRun) (status api.PlanStatus, err error) {
	value, err := s.Temporal.QueryWorkflow(s.Ctx, run.GetID(), "", api.QueryStatus, api.PlanStatusRequest{Limit: 1000})
	if err == nil {
		err = value.Get(&status)
	}
	return status, err
}

// untilPlan waits until the status of a plan is as wanted.
func untilPlan(s *site.Site, run client.WorkflowRun, what string, is func(api.PlanStatus) bool) (status api.PlanStatus) {
	s.Helper()
	s.Eventually("the plan "+what, func() (err error) {
		if status, err = planStatus(s, run); err != nil {
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
func planEnds(s *site.Site, run client.WorkflowRun) (status api.PlanStatus) {
	s.Helper()
	return untilPlan(s, run, "has ended", func(status api.PlanStatus) bool { return status.Phase.Ended() })
}

func TestAPlanRollsOverItsNodesInItsOrder(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 10}")
	ns := s.Namespace()
	s.Deployment(ns, "web", 6)
	s.Deployment(ns, "db", 1, site.On("worker-03"))
	s.Budget(ns, "web", 5)
	before := s.Imprints()
	nodes := s.WatchNodes()
	run := newPlan(s, "kernel", `{"nodes":["worker-03","worker-01","worker-05","worker-02","worker-04"],"reason":"kernel 6.12",
		"strategy":{"maxParallel":2},`+quickly+`}`)
	status := planEnds(s, run)
	if status.Phase != api.PlanCompleted || status.Counts != (plan.Counts{Total: 5, Done: 5}) {
		t.Errorf("it is %s with %+v: %s", status.Phase, status.Counts, status.Failure)
	}
	if most := s.NobodyHolds(nodes); most > 2 {
		t.Errorf("%d nodes were held at one instant, want 2 at most", most)
	}
	begun := slices.Clone(status.Nodes)
	slices.SortStableFunc(begun, func(a, b api.PlanNode) int { return a.Since.Compare(b.Since) })
	if first := begun[0].Node; first != "worker-01" && first != "worker-02" {
		t.Errorf("%s was done first", first)
	}
	for name, imprint := range before {
		s.Back(name, imprint)
	}
	var result api.PlanResult
	if err := run.Get(s.Ctx, &result); err != nil || result.Phase != api.PlanCompleted {
		t.Errorf("result %+v: %v", result, err)
	}
	if m := result.Moves; m.Ended < 1 || m.Ended-m.Again > 7 || status.Moves != m {
		t.Errorf("of 7 pods it counts %+v, its status %+v", m, status.Moves)
	}
}

func TestAPlanPausesWhereANodeFailsAndGoesOnWhenToldTo(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 5}")
	run := newPlan(s, "kernel", `{"nodes":["worker-01","worker-02","worker-03"],"requestor":"ops"}`)
	untilReadyOf(s, run, "worker-01")
	signalID(s, api.MaintenanceID(s.Cluster, "worker-01", "ops"), api.MsgFailed, api.FailedMessage{Reason: "the disk is broken"})
	status := untilPlan(s, run, "pauses", func(p api.PlanStatus) bool { return p.Phase == api.PlanPaused })
	if n := status.Nodes[0]; n.Node != "worker-01" || n.State != plan.Held.Word() || n.Note != "the disk is broken" {
		t.Errorf("first of all it tells %+v", n)
	}
	s.Always("nothing more is begun", 2*time.Second, func() error {
		if status, err := planStatus(s, run); err != nil || status.Counts.Running > 0 {
			return fmt.Errorf("%+v, %v", status.Counts, err)
		}
		return nil
	})
	signalID(s, run.GetID(), api.MsgResume, api.Simple{Message: api.Message{By: "ops", Comment: "the others are fine"}})
	untilReadyOf(s, run, "worker-02")
	signalID(s, run.GetID(), api.MsgSkip, api.NodeOfPlan{Node: "worker-03"})
	signalID(s, api.MaintenanceID(s.Cluster, "worker-02", "ops"), api.MsgDone, nil)
	status = planEnds(s, run)
	if status.Phase != api.PlanIncomplete || status.Counts != (plan.Counts{Total: 3, Held: 1, Done: 1, Skipped: 1}) {
		t.Errorf("it is %s with %+v", status.Phase, status.Counts)
	}
	signalID(s, api.MaintenanceID(s.Cluster, "worker-01", "ops"), api.MsgDone, nil)
	s.SlotFree("worker-01")
}

// untilReadyOf waits until a node of a plan is Ready.
func untilReadyOf(s *site.Site, run client.WorkflowRun, node string) {
	s.Helper()
	s.Eventually(node+" is Ready", func() error {
		status, err := planStatus(s, run)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(status.Nodes, func(n api.PlanNode) bool { return n.Node == node })
		if i < 0 || status.Nodes[i].State != plan.Running.Word() {
			return fmt.Errorf("the plan says %+v", status.Nodes)
		}
		value, err := s.Temporal.QueryWorkflow(s.Ctx, api.MaintenanceID(s.Cluster, node, status.Plan.Requestor), "", api.QueryStatus)
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
func signalID(s *site.Site, id, name string, payload any) {
	s.Helper()
	if err := s.Temporal.SignalWorkflow(s.Ctx, id, "", name, payload); err != nil {
		s.Fatal(err)
	}
}

func TestARolloutThatIsKilledIsFinishedByAttaching(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 5}")
	nodes := s.WatchNodes()
	log, goOn := s.File("log", ""), filepath.Join(t.TempDir(), "go")
	// Each command takes a moment, in which the terminal can be lost, and the last one takes until it is.
	command := fmt.Sprintf("echo begun {node} >>%[1]s; sleep 1; until [ {node} != worker-05 -o -e %[2]s ]; do sleep 0.1; done; echo ended {node} >>%[1]s", log, goOn)
	first := s.Spawn("rollout", "worker-01", "worker-02", "worker-03", "worker-04", "worker-05", "--name", "patches", "--yes", "--max-parallel", "2", "--", "sh", "-c", command)
	s.Eventually("two nodes are done", func() error {
		status, err := planStatus(s, s.Temporal.GetWorkflow(s.Ctx, api.PlanID(s.Cluster, "patches"), ""))
		if err == nil && status.Counts.Done < 2 {
			err = fmt.Errorf("%+v", status.Counts)
		}
		return err
	})
	// The commands go with the terminal.
	if err := syscall.Kill(-first.Cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-first.Exited
	// What the plan was told of by then is not done again. Of a command that ended just before the kill nobody was told.
	before, err := planStatus(s, s.Temporal.GetWorkflow(s.Ctx, api.PlanID(s.Cluster, "patches"), ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(goOn, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.Exits(s.Drydock("plan", "attach", "patches", "--rerun", "--", "sh", "-c", command), 0, "5 nodes: 5 done")
	ended := said(t, log, "ended")
	for _, n := range before.Nodes {
		if times := ended[n.Node]; n.State == plan.Done.Word() && times != 1 {
			t.Errorf("%s was worked on to the end %d times", n.Node, times)
		}
	}
	if len(ended) != 5 {
		t.Errorf("the ends of %v", ended)
	}
	if most := s.NobodyHolds(nodes); most > 2 {
		t.Errorf("%d nodes were held at one instant", most)
	}
	s.Exits(s.Drydock("rollout", "--resume", "patches", "--yes", "--", "false"), 0, "Plan patches has done 5 nodes")
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
	s := site.New(t, "scheduler: {maxParallel: 5}")
	first := s.Spawn("rollout", "worker-01", "worker-02", "--name", "patches", "--yes", "--", "sleep", "300")
	s.Eventually("the work has begun", func() error {
		status, err := statusOf(s, api.MaintenanceID(s.Cluster, "worker-01", "ops"))
		if err == nil && status.StartedAt == nil {
			err = errors.New(string(status.Phase))
		}
		return err
	})
	if err := syscall.Kill(-first.Cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-first.Exited
	s.Exits(s.Drydock("plan", "attach", "patches", "--", "true"), 2, "--yes")
	second := s.Spawn("plan", "attach", "patches", "--yes", "--continue-on-error", "--", "true")
	s.Eventually("it is known that its outcome is not", func() error {
		status, err := statusOf(s, api.MaintenanceID(s.Cluster, "worker-01", "ops"))
		if err == nil && status.Phase != api.RequestorFailed {
			err = errors.New(string(status.Phase))
		}
		return err
	})
	plan := s.Temporal.GetWorkflow(s.Ctx, api.PlanID(s.Cluster, "patches"), "")
	untilPlan(s, plan, "pauses", func(p api.PlanStatus) bool { return p.Phase == api.PlanPaused })
	signalID(s, plan.GetID(), api.MsgResume, api.Simple{Message: api.Message{Comment: "worker-01 is looked at by hand"}})
	s.Exits(second.End(), 1, "worker-02", "1 done")
	s.MustDrydock("done", "worker-01")
}

// statusOf asks the present maintenance under a workflow ID.
func statusOf(s *site.Site, id string) (status api.Status, err error) {
	value, err := s.Temporal.QueryWorkflow(s.Ctx, id, "", api.QueryStatus)
	if err == nil {
		err = value.Get(&status)
	}
	return status, err
}

// TestAPlanThatIsResetBeginsNoNodeTwice: it goes on from its first workflow task, and knows nothing of what it began since.
func TestAPlanThatIsResetBeginsNoNodeTwice(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 5}")
	nodes := s.WatchNodes()
	run := newPlan(s, "kernel", `{"nodes":["worker-01","worker-02","worker-03","worker-04"],"strategy":{"maxParallel":2},`+quickly+`}`)
	untilPlan(s, run, "has come half way", func(p api.PlanStatus) bool { return p.Counts.Done >= 2 })
	again := s.ResetTo(run, s.FirstTask(run.GetID()), true)
	status := planEnds(s, again)
	if status.Phase != api.PlanCompleted || status.Counts != (plan.Counts{Total: 4, Done: 4}) {
		t.Errorf("it is %s with %+v: %s", status.Phase, status.Counts, status.Failure)
	}
	s.NobodyHolds(nodes)
	if taken := nodes.TakenAll(); taken != 4 {
		t.Errorf("nodes were taken out of service %d times, want 4", taken)
	}
}

// TestAPlanThatIsResetIsTakenUpByATerminal: it knows again which maintenances are its own, and a terminal works on their nodes.
func TestAPlanThatIsResetIsTakenUpByATerminal(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 5}")
	run := newPlan(s, "kernel", `{"nodes":["worker-01","worker-02"],"strategy":{"maxParallel":2}}`)
	readyInPlan(s, "kernel", "worker-01")
	readyInPlan(s, "kernel", "worker-02")
	signalID(s, api.MaintenanceID(s.Cluster, "worker-02", plan.RequestorOf("kernel")), api.MsgFailed, api.FailedMessage{Reason: "the disk"})
	untilPlan(s, run, "pauses", func(p api.PlanStatus) bool { return p.Phase == api.PlanPaused })
	again := s.ResetTo(run, s.FirstTask(run.GetID()), true)
	untilPlan(s, again, "pauses again", func(p api.PlanStatus) bool { return p.Phase == api.PlanPaused && p.Counts.Held == 1 })
	s.Exits(s.Drydock("plan", "attach", "kernel", "--continue-on-error", "--", "true"), 1, "worker-01", "1 done", "worker-02")
	s.MustDrydock("cancel", "worker-02", "--requestor", plan.RequestorOf("kernel"), "--release", "--yes")
}

// TestAPlanUnderATerminatedOnesNameTakesUpWhatRuns: it adopts the maintenance whose settings are its own, waits for the other, and begins
// no node beside them.
func TestAPlanUnderATerminatedOnesNameTakesUpWhatRuns(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 5}")
	const input = `{"nodes":["worker-01","worker-02","worker-03"],"strategy":{"maxParallel":2},"maintenance":{"readyTimeout":%q}}`
	first := newPlan(s, "kernel", fmt.Sprintf(input, "1h"))
	untilReadyOf(s, first, "worker-01")
	untilReadyOf(s, first, "worker-02")
	if err := s.Temporal.TerminateWorkflow(s.Ctx, first.GetID(), "", "a test"); err != nil {
		t.Fatal(err)
	}
	note := func(p api.PlanStatus, node string) string {
		i := slices.IndexFunc(p.Nodes, func(n api.PlanNode) bool { return n.Node == node })
		return p.Nodes[i].Note
	}
	second := newPlan(s, "kernel", fmt.Sprintf(input, "1h"))
	untilPlan(s, second, "adopts what runs", func(p api.PlanStatus) bool {
		return p.Counts.Running == 2 && p.Counts.Waiting == 1 && strings.Contains(note(p, "worker-01"), "is adopted")
	})
	requestor := plan.RequestorOf("kernel")
	s.MustDrydock("done", "worker-01", "--requestor", requestor, "--yes")
	untilReadyOf(s, second, "worker-03")
	if err := s.Temporal.TerminateWorkflow(s.Ctx, second.GetID(), "", "a test"); err != nil {
		t.Fatal(err)
	}
	third := newPlan(s, "kernel", fmt.Sprintf(input, "2h"))
	untilPlan(s, third, "waits for what runs with other settings", func(p api.PlanStatus) bool {
		return p.Counts.Running == 2 && p.Counts.Waiting == 1 && strings.Contains(note(p, "worker-02"), "readyTimeout differs")
	})
	s.MustDrydock("done", "worker-02", "--requestor", requestor, "--yes")
	untilReadyOf(s, third, "worker-01")
	for _, node := range []string{"worker-01", "worker-03"} {
		s.MustDrydock("done", node, "--requestor", requestor, "--yes")
	}
	for _, node := range []string{"worker-02", "worker-03"} { // begun anew
		untilReadyOf(s, third, node)
		s.MustDrydock("done", node, "--requestor", requestor, "--yes")
	}
	if status := planEnds(s, third); status.Phase != api.PlanCompleted || status.Counts != (plan.Counts{Total: 3, Done: 3}) {
		t.Errorf("it is %s with %+v", status.Phase, status.Counts)
	}
}

// TestACancelledPlanFinishesWhatIsReady, and gives the others back.
func TestACancelledPlanFinishesWhatIsReady(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 2}")
	run := newPlan(s, "kernel", `{"nodes":["worker-01","worker-02","worker-03","worker-04"],"strategy":{"maxParallel":3}}`)
	var ready []string // whichever of the three asked for their slots first
	untilShown(s, "kernel", "has two nodes Ready", func(p api.Plan) bool {
		ready = nil
		for _, n := range p.Slowest {
			if n.Phase == api.Ready {
				ready = append(ready, n.Node)
			}
		}
		return len(ready) == 2
	})
	s.MustDrydock("plan", "skip", "kernel", ready[1])
	s.MustDrydock("plan", "cancel", "kernel", "--yes")
	untilPlan(s, run, "gives back what is not Ready", func(p api.PlanStatus) bool { return p.Counts.Skipped == 1 && p.Counts.Running == 2 })
	for _, node := range ready {
		s.MustDrydock("done", node, "--requestor", plan.RequestorOf("kernel"), "--yes")
	}
	if status := planEnds(s, run); status.Phase != api.PlanCancelled || status.Counts != (plan.Counts{Total: 4, Waiting: 1, Skipped: 1, Done: 2}) {
		t.Errorf("it is %s with %+v", status.Phase, status.Counts)
	}
}

// TestAPlanIsToldAndRecorded: channels hear of it, and the audit has a record of it beside those of its maintenances.
func TestAPlanIsToldAndRecorded(t *testing.T) {
	s := site.Prepare(t, "")
	signingKey := "whsec_c2lnbmVk"
	r := s.Receivers(signingKey, "unused")
	path := filepath.Join(s.Options.Dir, "audit.jsonl")
	s.Options.Config += fmt.Sprintf(`
scheduler: {maxParallel: 3}
audit: {file: {path: %[2]s}}
channels:
  events: {default: true, filter: {events: [PlanBegun, PlanCanaryWaits, PlanPaused, PlanResumed, PlanEnded]}, webhook: {url: "%[1]s/events", secret: %[3]s}}
`, r.HTTP.URL, path, r.Secret("signing", signingKey))
	s.StartWorker()
	run := newPlan(s, "kernel", `{"nodes":["worker-01","worker-02"],"reason":"kernel 6.12","strategy":{"canary":{"nodes":1,"approval":true}},`+quickly+`}`)
	untilPlan(s, run, "waits for approval", func(p api.PlanStatus) bool { return strings.Contains(p.WaitingFor, "approval") })
	signalID(s, run.GetID(), api.MsgApprove, api.Simple{Message: api.Message{By: "amy", Comment: "looks good"}})
	planEnds(s, run)
	var told []string
	s.Eventually("the channel was told", func() error {
		told = nil
		for _, e := range r.Events("/events", run.GetRunID()) {
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
	kept := s.RecordOf(path, run.GetRunID())
	if kept.Plan == nil || kept.Plan.Total != 2 || kept.Plan.Done != 2 || kept.Phase != string(api.PlanCompleted) || kept.Reason != "kernel 6.12" || kept.Starter == nil {
		t.Errorf("kept %+v", kept)
	}
	if len(kept.Messages) != 1 || kept.Messages[0].By != "amy" {
		t.Errorf("messages %+v", kept.Messages)
	}
}
