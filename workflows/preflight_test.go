package workflows_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"drydock/activities"
	"drydock/workflows"
	"drydock/workflows/preflight"
)

// stopped is a report with some problems.
func stopped(code preflight.Code, objects ...string) preflight.Report {
	r := preflight.Report{Node: testNode}
	for _, object := range objects {
		r.Problems = append(r.Problems, preflight.Finding{Code: code, Object: object, Message: "needs consent"})
	}
	return r
}

func preflightSite(t *testing.T) *site {
	s := newSite(t)
	serve[activities.PreflightInput](s, "CheckPreflight", preflight.Report{Node: testNode})
	serve[activities.PreflightInput](s, "AwaitPreflight", preflight.Report{Node: testNode})
	return s
}

func TestPreflightOffLooksAtNothing(t *testing.T) {
	s := preflightSite(t).doneAt(time.Hour / 2)
	s.run(of(nil))
	s.expectCompleted()
	if n := s.count("CheckPreflight") + s.count("AwaitPreflight"); n != 0 {
		t.Errorf("it looked %d times", n)
	}
}

func TestPreflightFailGoesOnWhereNothingStopsTheDrain(t *testing.T) {
	s := preflightSite(t).doneAt(time.Hour / 2)
	status := s.run(of(input{"preflight": "fail", "drain": input{"force": true}}))
	s.expectCompleted()
	if in := inputOf[activities.PreflightInput](s, "CheckPreflight", -1); in.Node != testNode || !in.Drain.Force {
		t.Errorf("it was asked for %+v", in)
	}
	if s.log[0] != "CheckPreflight" || s.log[1] != workflows.SignalSlotRequest {
		t.Errorf("it did %v", s.log)
	}
	s.expectPhases(status, workflows.Pending, workflows.Scheduled, workflows.Cordoning, workflows.Draining, workflows.Ready,
		workflows.Releasing, workflows.Completed)
}

func TestPreflightFailEndsTheMaintenance(t *testing.T) {
	s := preflightSite(t).answer("CheckPreflight", reply{value: stopped(preflight.MissingConsent, "pod a", "pod b", "pod c", "pod d", "pod e")})
	status := s.run(of(input{"preflight": "fail"}))
	s.expectFailure(workflows.ErrorPreflightFailed, "pod a: needs consent; pod b: needs consent; pod c: needs consent; and 2 more")
	s.expectPhases(status, workflows.Pending, workflows.Failed)
	s.expectLog("CheckPreflight")
}

func TestPreflightOfANodeThatIsNotThere(t *testing.T) {
	for _, mode := range []string{"fail", "wait"} {
		s := preflightSite(t)
		s.usual["CheckPreflight"] = reply{value: stopped(preflight.NodeMissing, "node n1")}
		s.usual["AwaitPreflight"] = s.usual["CheckPreflight"]
		s.run(of(input{"preflight": mode}))
		s.expectFailure(workflows.ErrorNodeNotFound, "node n1")
	}
}

func TestPreflightWaitShowsWhatItWaitsFor(t *testing.T) {
	s := preflightSite(t).answer("AwaitPreflight", reply{after: time.Hour}).doneAt(90 * time.Minute)
	blocked := workflows.DrainProgress{Blockers: []workflows.Blocker{{Pod: "pod ns/bare", Message: "needs consent"}}, MoreBlockers: 2}
	s.expectAt(time.Minute, workflows.Pending, "a preflight of the node")
	s.signalAt(2*time.Minute, workflows.SignalDrainBlocked, blocked)
	s.expectAt(3*time.Minute, workflows.Pending, "pod ns/bare: needs consent (and 2 more problems)")
	// A late word does not hide what the drain waits for.
	s.signalAt(time.Hour+10*time.Second, workflows.SignalDrainBlocked, workflows.DrainProgress{})
	s.run(of(input{"preflight": "wait"}))
	s.expectCompleted()
	if in := inputOf[activities.PreflightInput](s, "AwaitPreflight", -1); in.BlockedSignal != workflows.SignalDrainBlocked {
		t.Errorf("it was asked for %+v", in)
	}
}

func TestPreflightWaitIsCancelled(t *testing.T) {
	s := preflightSite(t).answer("AwaitPreflight", reply{after: 10 * time.Hour}).signalAt(time.Minute, workflows.MsgCancel, nil)
	status := s.run(of(input{"preflight": "wait"}))
	s.expectCancelled()
	s.expectPhases(status, workflows.Pending, workflows.Cancelled)
	s.expectLog("AwaitPreflight")
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
			s := newSiteAs(t, "anything", workflows.DefaultTaskQueue)
			s.defaults = `{"drain":{"force":true}}`
			serve[activities.PreflightInput](s, "CheckPreflight", stopped(preflight.MissingConsent, "pod a"))
			s.env.ExecuteWorkflow(workflows.Preflight, raw(c.input))
			if c.fails != "" {
				s.expectFailure(workflows.ErrorInvalidSpec, c.fails)
				return
			}
			var report workflows.PreflightReport
			if err := errors.Join(s.env.GetWorkflowError(), s.env.GetWorkflowResult(&report)); err != nil || report.ProblemCount() != 1 {
				t.Errorf("%v, %+v", err, report)
			}
			in := inputOf[activities.PreflightInput](s, "CheckPreflight", -1)
			if len(in.Together) != c.together || !in.Drain.Force {
				t.Errorf("it was asked for %+v", in)
			}
		})
	}
}

func TestPreflightIDs(t *testing.T) {
	if id := workflows.PreflightID("prod", "n1", "ab12"); id != "prod/preflight/n1/ab12" || !strings.HasPrefix(workflows.PreflightID("", "n1", "x"), "preflight/") {
		t.Error(id)
	}
}
