package preflight_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	preflightactivity "drydock.dev/drydock/activities/preflight"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/preflight"
	workflow "drydock.dev/drydock/workflows/preflight"
	"drydock.dev/drydock/workflows/workflowtest"
)

// stopped is a report with some problems.
func stopped(code preflight.Code, objects ...string) preflight.Report {
	r := preflight.Report{Node: workflowtest.Node}
	for _, object := range objects {
		r.Problems = append(r.Problems, preflight.Finding{Code: code, Object: object, Message: "needs consent"})
	}
	return r
}

func preflightSite(t *testing.T) *workflowtest.Site {
	s := workflowtest.New(t)
	workflowtest.Serve[preflightactivity.Input](s, "CheckPreflight", preflight.Report{Node: workflowtest.Node})
	workflowtest.Serve[preflightactivity.Input](s, "AwaitPreflight", preflight.Report{Node: workflowtest.Node})
	return s
}

func TestPreflightOffLooksAtNothing(t *testing.T) {
	s := preflightSite(t).DoneAt(time.Hour / 2)
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if n := s.Count("CheckPreflight") + s.Count("AwaitPreflight"); n != 0 {
		t.Errorf("it looked %d times", n)
	}
}

func TestPreflightFailGoesOnWhereNothingStopsTheDrain(t *testing.T) {
	s := preflightSite(t).DoneAt(time.Hour / 2)
	status := s.Run(workflowtest.InputWith(workflowtest.Input{"preflight": "fail", "drain": workflowtest.Input{"force": true}}))
	s.ExpectCompleted()
	if in := workflowtest.InputOf[preflightactivity.Input](s, "CheckPreflight", -1); in.Node != workflowtest.Node || !in.Drain.Force {
		t.Errorf("it was asked for %+v", in)
	}
	if s.Log[0] != "CheckPreflight" || s.Log[1] != api.SignalSlotRequest {
		t.Errorf("it did %v", s.Log)
	}
	s.ExpectPhases(status, api.Pending, api.Scheduled, api.Cordoning, api.Draining, api.Ready,
		api.Releasing, api.Completed)
}

func TestPreflightsSeeTheSLA(t *testing.T) {
	for mode, asked := range map[string]string{"fail": "CheckPreflight", "wait": "AwaitPreflight"} {
		s := preflightSite(t).DoneAt(time.Hour / 2)
		s.Run(workflowtest.InputWith(workflowtest.Input{"preflight": mode, "sla": workflowtest.Input{"after": "10m", "do": "bypassBudget"}}))
		s.ExpectCompleted()
		if rungs := workflowtest.InputOf[preflightactivity.Input](s, asked, -1).Drain.Escalation; len(rungs) != 3 || rungs[1].Do != "bypassBudget" {
			t.Errorf("%s: it judged by %+v", mode, rungs)
		}
	}
}

func TestPreflightFailEndsTheMaintenance(t *testing.T) {
	s := preflightSite(t).Answer("CheckPreflight", workflowtest.Reply{Value: stopped(preflight.MissingConsent, "pod a", "pod b", "pod c", "pod d", "pod e")})
	status := s.Run(workflowtest.InputWith(workflowtest.Input{"preflight": "fail"}))
	s.ExpectFailure(api.ErrorPreflightFailed, "pod a: needs consent; pod b: needs consent; pod c: needs consent; and 2 more")
	s.ExpectPhases(status, api.Pending, api.Failed)
	s.ExpectLog("CheckPreflight")
}

func TestPreflightOfANodeThatIsNotThere(t *testing.T) {
	for _, mode := range []string{"fail", "wait"} {
		s := preflightSite(t)
		s.Usual["CheckPreflight"] = workflowtest.Reply{Value: stopped(preflight.NodeMissing, "node n1")}
		s.Usual["AwaitPreflight"] = s.Usual["CheckPreflight"]
		s.Run(workflowtest.InputWith(workflowtest.Input{"preflight": mode}))
		s.ExpectFailure(api.ErrorNodeNotFound, "node n1")
	}
}

func TestPreflightWaitShowsWhatItWaitsFor(t *testing.T) {
	s := preflightSite(t).Answer("AwaitPreflight", workflowtest.Reply{After: time.Hour}).DoneAt(90 * time.Minute)
	blocked := api.DrainProgress{Blockers: []api.Blocker{{Pod: "pod ns/bare", Message: "needs consent"}}, MoreBlockers: 2}
	s.ExpectAt(time.Minute, api.Pending, "the preflight")
	s.SignalAt(2*time.Minute, api.SignalDrainBlocked, blocked)
	s.ExpectAt(3*time.Minute, api.Pending, "pod ns/bare: needs consent (and 2 more problems)")
	// A late word does not hide what the drain waits for.
	s.SignalAt(time.Hour+10*time.Second, api.SignalDrainBlocked, api.DrainProgress{})
	s.Run(workflowtest.InputWith(workflowtest.Input{"preflight": "wait"}))
	s.ExpectCompleted()
	if in := workflowtest.InputOf[preflightactivity.Input](s, "AwaitPreflight", -1); in.BlockedSignal != api.SignalDrainBlocked {
		t.Errorf("it was asked for %+v", in)
	}
}

func TestPreflightWaitIsCancelled(t *testing.T) {
	s := preflightSite(t).Answer("AwaitPreflight", workflowtest.Reply{After: 10 * time.Hour}).SignalAt(time.Minute, api.MsgCancel, nil)
	status := s.Run(workflowtest.InputWith(workflowtest.Input{"preflight": "wait"}))
	s.ExpectCancelled()
	s.ExpectPhases(status, api.Pending, api.Cancelled)
	s.ExpectLog("AwaitPreflight")
}

func TestPreflightByItself(t *testing.T) {
	for name, c := range map[string]struct {
		input, fails string
		together     int
	}{
		"a node":        {`{"node":"n1"}`, "", 0},
		"with others":   {`{"node":"n1","together":["n2","n3"]}`, "", 2},
		"no input":      {``, "no input", 0},
		"unknown field": {`{"node":"n1","drain":{"mod":"evict"}}`, "drain.mod: unknown field", 0},
		"wrong others":  {`{"node":"n1","together":"n2"}`, "together: want a list", 0},
		"wrong name":    {`{"node":"n1","together":["a/b"]}`, `together[0]: "a/b"`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := workflowtest.NewAs(t, "anything", api.DefaultTaskQueue)
			s.Prepared.Defaults = json.RawMessage(`{"drain":{"force":true}}`)
			workflowtest.Serve[preflightactivity.Input](s, "CheckPreflight", stopped(preflight.MissingConsent, "pod a"))
			s.Env.ExecuteWorkflow(workflow.Preflight, workflowtest.Raw(c.input))
			if c.fails != "" {
				s.ExpectFailure(api.ErrorInvalidSpec, c.fails)
				return
			}
			var report preflight.Report
			if err := errors.Join(s.Env.GetWorkflowError(), s.Env.GetWorkflowResult(&report)); err != nil || report.ProblemCount() != 1 {
				t.Errorf("%v, %+v", err, report)
			}
			in := workflowtest.InputOf[preflightactivity.Input](s, "CheckPreflight", -1)
			if len(in.Together) != c.together || !in.Drain.Force {
				t.Errorf("it was asked for %+v", in)
			}
		})
	}
}

func TestPreflightIDs(t *testing.T) {
	if id := api.PreflightID("prod", "n1", "ab12"); id != "prod/preflight/n1/ab12" || !strings.HasPrefix(api.PreflightID("", "n1", "x"), "preflight/") {
		t.Error(id)
	}
}
