package maintenance_test

import (
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/workflowtest"
)

func TestRequestorThatFailsKeepsTheNodeUntilSomebodyDecides(t *testing.T) {
	s := workflowtest.New(t)
	s.SignalAt(10*time.Minute, api.MsgFailed, workflowtest.Input{"by": "amy", "reason": "flash failed"})
	s.ExpectAt(11*time.Minute, api.RequestorFailed, `a decision: "retry" or "done" from ops`)
	s.ExpectAt(30*time.Hour, api.RequestorFailed, "a decision") // no deadline runs
	s.CheckAt(30*time.Hour, func(status api.Status) {
		if status.Failure != "flash failed" || status.ReadyDeadline != nil {
			t.Errorf("failed status = %+v", status)
		}
	})
	s.SignalAt(31*time.Hour, api.MsgRetry, nil)
	s.ExpectAt(31*time.Hour+time.Minute, api.Ready, `"done" or "failed" from ops`)
	s.CheckAt(31*time.Hour+time.Minute, func(status api.Status) {
		if status.Failure != "" || status.ReadyDeadline == nil {
			t.Errorf("status after retry = %+v", status)
		}
	})
	s.DoneAt(31*time.Hour + 30*time.Minute)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	s.ExpectPhases(status, api.Pending, api.Scheduled, api.Cordoning, api.Draining, api.Ready,
		api.RequestorFailed, api.Ready, api.Releasing, api.Completed)
	var shown []string
	for i := range s.Count("AnnouncePhase") {
		shown = append(shown, workflowtest.InputOf[node.AnnounceInput](s, "AnnouncePhase", i).Phase)
	}
	if got := strings.Join(shown, " "); got != "Ready RequestorFailed Ready" {
		t.Errorf("the node showed %s", got)
	}
	if warned := workflowtest.InputOf[node.AnnounceInput](s, "AnnouncePhase", 1); !warned.Event.Warning || !strings.Contains(warned.Event.Message, "flash failed") {
		t.Errorf("the failure is announced with %+v", warned)
	}
}

func TestRequestorMayBeDoneAfterItFailed(t *testing.T) {
	s := workflowtest.New(t)
	s.SignalAt(10*time.Minute, api.MsgFailed, nil)
	s.DoneAt(20 * time.Minute)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if !strings.Contains(workflowtest.MessagesOf(status), "the requestor gave no reason") {
		t.Errorf("transitions:\n%s", workflowtest.MessagesOf(status))
	}
}

func TestFailedAndRetryAtOnceLeaveAReasonToWaitFor(t *testing.T) {
	s := workflowtest.New(t)
	s.At(10*time.Minute, func() {
		s.Env.SignalWorkflowSkippingWorkflowTask(api.MsgFailed, nil)
		s.Env.SignalWorkflow(api.MsgRetry, nil)
	})
	s.ExpectAt(11*time.Minute, api.Ready, `"done" or "failed" from ops`)
	s.DoneAt(20 * time.Minute)
	s.Run(workflowtest.InputWith(workflowtest.Input{"readyTimeout": "0s"}))
	s.ExpectCompleted()
}

func TestReadyTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		in    workflowtest.Input
		check func(*workflowtest.Site)
		end   api.Phase
	}{
		"fail": {
			in: workflowtest.Input{},
			check: func(s *workflowtest.Site) {
				s.ExpectAt(59*time.Minute, api.Ready, "")
				s.ExpectAt(62*time.Minute, api.RequestorFailed, "a decision")
				s.CheckAt(62*time.Minute, func(status api.Status) {
					if !strings.Contains(status.Failure, "held past readyTimeout (1h0m0s)") {
						t.Errorf("failure = %q", status.Failure)
					}
				})
				s.DoneAt(3 * time.Hour)
			},
			end: api.Completed,
		},
		"release": {
			in:    workflowtest.Input{"onReadyTimeout": "release"},
			check: func(s *workflowtest.Site) { s.ExpectAt(59*time.Minute, api.Ready, "") },
			end:   api.Completed,
		},
		"none": {
			in: workflowtest.Input{"readyTimeout": "0s"},
			check: func(s *workflowtest.Site) {
				s.ExpectAt(100*time.Hour, api.Ready, "")
				s.DoneAt(101 * time.Hour)
			},
			end: api.Completed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := workflowtest.New(t)
			c.check(s)
			status := s.Run(workflowtest.InputWith(c.in))
			s.ExpectCompleted()
			if status.Phase != c.end {
				t.Errorf("the end is %s", status.Phase)
			}
			if name == "release" && !strings.Contains(workflowtest.MessagesOf(status), "released, as onReadyTimeout says") {
				t.Errorf("transitions:\n%s", workflowtest.MessagesOf(status))
			}
		})
	}
}

func TestExtendMovesTheDeadlineButNeverNearer(t *testing.T) {
	s := workflowtest.New(t)
	start := s.Env.Now()
	deadline := func(status api.Status) time.Duration { return status.ReadyDeadline.Sub(start).Round(time.Minute) }
	expect := func(at, want time.Duration) {
		s.CheckAt(at, func(status api.Status) {
			if got := deadline(status); got != want {
				t.Errorf("after %s the deadline is %s, want %s", at, got, want)
			}
		})
	}
	expect(2*time.Minute, 61*time.Minute) // Ready after a minute of draining
	s.SignalAt(10*time.Minute, api.MsgExtend, workflowtest.Input{"for": "5m"})
	expect(11*time.Minute, 61*time.Minute)
	s.SignalAt(20*time.Minute, api.MsgExtend, nil)
	expect(21*time.Minute, 80*time.Minute)
	s.SignalAt(30*time.Minute, api.MsgExtend, workflowtest.Input{"for": "10h"})
	expect(31*time.Minute, 10*time.Hour+30*time.Minute)
	s.ExpectAt(10*time.Hour+29*time.Minute, api.Ready, "")
	s.ExpectAt(10*time.Hour+31*time.Minute, api.RequestorFailed, "")
	s.SignalAt(11*time.Hour, api.MsgExtend, nil) // too late
	s.DoneAt(12 * time.Hour)
	status := s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	if got := workflowtest.EffectsOf(status, api.MsgExtend); len(got) != 4 || !strings.HasPrefix(got[3], "ignored: ") {
		t.Errorf("extend: %v", got)
	}
}

func TestExtendWithoutADeadlineIsRefused(t *testing.T) {
	s := workflowtest.New(t)
	update := s.UpdateAt(10*time.Minute, api.MsgExtend, workflowtest.Input{"for": "1h"})
	s.DoneAt(20 * time.Minute)
	s.Run(workflowtest.InputWith(workflowtest.Input{"readyTimeout": "0s"}))
	if update.Rejected == nil || !strings.Contains(update.Rejected.Error(), "for ever") {
		t.Errorf("extend: %+v", update)
	}
}

func TestStartedIsNotedOnce(t *testing.T) {
	s := workflowtest.New(t)
	s.SignalAt(30*time.Second, api.MsgStarted, nil) // too early
	s.SignalAt(10*time.Minute, api.MsgStarted, workflowtest.Input{"by": "amy"})
	s.CheckAt(11*time.Minute, func(status api.Status) {
		if status.StartedAt == nil || status.Phase != api.Ready {
			t.Errorf("status = %+v", status)
		}
	})
	s.DoneAt(20 * time.Minute)
	status := s.Run(workflowtest.InputWith(nil))
	if got := workflowtest.EffectsOf(status, api.MsgStarted); len(got) != 2 || !strings.HasPrefix(got[0], "ignored: ") || strings.HasPrefix(got[1], "ignored: ") {
		t.Errorf("started: %v", got)
	}
}

func TestNodeIsHeldUntilAllRequestorsAreDone(t *testing.T) {
	s := workflowtest.New(t)
	done := func(at time.Duration, who string) { s.SignalAt(at, api.MsgDone, workflowtest.Input{"requestor": who}) }
	s.ExpectAt(10*time.Minute, api.Ready, `from ops, net, disk`)
	done(11*time.Minute, "net")
	s.ExpectAt(12*time.Minute, api.Ready, `from ops, disk`)
	done(13*time.Minute, "net") // again
	done(14*time.Minute, "nobody")
	s.SignalAt(15*time.Minute, api.MsgJoin, workflowtest.Input{"requestor": "gpu"})
	s.ExpectAt(16*time.Minute, api.Ready, `from ops, disk, gpu`)
	s.SignalAt(17*time.Minute, api.MsgLeave, workflowtest.Input{"requestor": "disk"})
	s.ExpectAt(18*time.Minute, api.Ready, `from ops, gpu`)
	done(19*time.Minute, "") // as its own requestor
	s.ExpectAt(20*time.Minute, api.Ready, `from gpu`)
	s.SignalAt(21*time.Minute, api.MsgJoin, workflowtest.Input{"requestor": "net"}) // once more
	done(22*time.Minute, "gpu")
	s.ExpectAt(23*time.Minute, api.Ready, `from net`)
	s.SignalAt(24*time.Minute, api.MsgLeave, workflowtest.Input{"requestor": "net"})
	status := s.Run(workflowtest.InputWith(workflowtest.Input{"additionalRequestors": []string{"net", "disk", "ops", "net"}}))
	s.ExpectCompleted()
	if got := workflowtest.EffectsOf(status, api.MsgDone); len(got) != 5 || got[0] != "net is done; the node is put back when ops and disk is done too" ||
		!strings.Contains(got[1], "net was done already") || !strings.Contains(got[2], `"nobody" is not a requestor`) {
		t.Errorf("done: %q", got)
	}
	if got := status.Transitions[len(status.Transitions)-1].At.Sub(status.Transitions[0].At).Round(time.Minute); got != 24*time.Minute {
		t.Errorf("ended after %s", got)
	}
}

func TestMembersComeAndGoBeforeTheNodeIsReady(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("Drain", workflowtest.Reply{After: 20 * time.Minute})
	s.SignalAt(time.Minute, api.MsgJoin, workflowtest.Input{"requestor": "net"})
	s.SignalAt(2*time.Minute, api.MsgJoin, workflowtest.Input{"requestor": "disk"})
	s.SignalAt(3*time.Minute, api.MsgLeave, workflowtest.Input{"requestor": "disk"})
	s.ExpectAt(21*time.Minute, api.Ready, "from ops, net")
	s.DoneAt(22 * time.Minute)
	s.SignalAt(23*time.Minute, api.MsgDone, workflowtest.Input{"requestor": "net"})
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
}

func TestMembershipIsRefusedWhereItMakesNoSense(t *testing.T) {
	s := workflowtest.New(t)
	refused := map[string]*workflowtest.Outcome{
		"share already":         s.UpdateAt(10*time.Minute, api.MsgJoin, workflowtest.Input{"requestor": "ops"}),
		"no name to join":       s.UpdateAt(10*time.Minute, api.MsgJoin),
		"not a name":            s.UpdateAt(10*time.Minute, api.MsgJoin, workflowtest.Input{"requestor": "a/b"}),
		"leave one's own":       s.UpdateAt(10*time.Minute, api.MsgLeave, workflowtest.Input{"requestor": "ops"}),
		"leave without a name":  s.UpdateAt(10*time.Minute, api.MsgLeave),
		"leave as a stranger":   s.UpdateAt(10*time.Minute, api.MsgLeave, workflowtest.Input{"requestor": "net"}),
		"done as a stranger":    s.UpdateAt(10*time.Minute, api.MsgDone, workflowtest.Input{"requestor": "net"}),
		"failed as a stranger":  s.UpdateAt(10*time.Minute, api.MsgFailed, workflowtest.Input{"requestor": "net"}),
		"drained, of an evict":  s.UpdateAt(10*time.Minute, api.MsgDrained),
		"retry of what goes on": s.UpdateAt(10*time.Minute, api.MsgRetry),
	}
	s.DoneAt(20 * time.Minute)
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
	for name, update := range refused {
		if update.Rejected == nil {
			t.Errorf("%s: %+v", name, update)
		}
	}
}

func TestPhaseThatCannotBeShownDoesNotEndTheMaintenance(t *testing.T) {
	s := workflowtest.New(t)
	s.Answer("AnnouncePhase", workflowtest.Reply{Err: workflowtest.Failing(api.ErrorNodeGone, "away")})
	s.ExpectAt(10*time.Minute, api.Ready, `"done"`)
	s.DoneAt(20 * time.Minute)
	s.Run(workflowtest.InputWith(nil))
	s.ExpectCompleted()
}

// A history of a worker that did not read days goes on as it was made.
func TestDaysAreTakenWhereTheHistoryIsOfAWorkerThatReadsThem(t *testing.T) {
	for version, want := range map[workflow.Version]string{
		1:                       "the node may be held until",
		workflow.DefaultVersion: "write it in hours",
	} {
		s := workflowtest.New(t)
		s.Env.OnGetVersion("durations-with-days", workflow.DefaultVersion, workflow.Version(1)).Return(version)
		s.SignalAt(10*time.Minute, api.MsgExtend, workflowtest.Input{"for": "2d"})
		s.DoneAt(20 * time.Minute)
		status := s.Run(workflowtest.InputWith(nil))
		s.ExpectCompleted()
		if got := workflowtest.EffectsOf(status, api.MsgExtend); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("version %d: %v, want %q", version, got, want)
		}
	}
	s := workflowtest.New(t)
	s.DoneAt(47 * time.Hour)
	s.ExpectAt(46*time.Hour, api.Ready, "")
	s.Run(workflowtest.InputWith(workflowtest.Input{"readyTimeout": "2d"}))
	s.ExpectCompleted()
}
