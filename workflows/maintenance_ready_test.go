package workflows_test

import (
	"strings"
	"testing"
	"time"

	"drydock/activities"
	"drydock/workflows"
)

func TestRequestorThatFailsKeepsTheNodeUntilSomebodyDecides(t *testing.T) {
	s := newSite(t)
	s.signalAt(10*time.Minute, workflows.MsgFailed, input{"by": "amy", "reason": "flash failed"})
	s.expectAt(11*time.Minute, workflows.RequestorFailed, `a decision: "retry" or "done" from ops`)
	s.expectAt(30*time.Hour, workflows.RequestorFailed, "a decision") // no deadline runs
	s.checkAt(30*time.Hour, func(status workflows.Status) {
		if status.Failure != "flash failed" || status.ReadyDeadline != nil {
			t.Errorf("failed status = %+v", status)
		}
	})
	s.signalAt(31*time.Hour, workflows.MsgRetry, nil)
	s.expectAt(31*time.Hour+time.Minute, workflows.Ready, `"done" or "failed" from ops`)
	s.checkAt(31*time.Hour+time.Minute, func(status workflows.Status) {
		if status.Failure != "" || status.ReadyDeadline == nil {
			t.Errorf("status after retry = %+v", status)
		}
	})
	s.doneAt(31*time.Hour + 30*time.Minute)
	status := s.run(of(nil))
	s.expectCompleted()
	s.expectPhases(status, workflows.Pending, workflows.Scheduled, workflows.Cordoning, workflows.Draining, workflows.Ready,
		workflows.RequestorFailed, workflows.Ready, workflows.Releasing, workflows.Completed)
	var shown []string
	for i := range s.count("AnnouncePhase") {
		shown = append(shown, inputOf[activities.AnnounceInput](s, "AnnouncePhase", i).Phase)
	}
	if got := strings.Join(shown, " "); got != "Ready RequestorFailed Ready" {
		t.Errorf("the node showed %s", got)
	}
	if warned := inputOf[activities.AnnounceInput](s, "AnnouncePhase", 1); !warned.Event.Warning || !strings.Contains(warned.Event.Message, "flash failed") {
		t.Errorf("the failure is announced with %+v", warned)
	}
}

func TestRequestorMayBeDoneAfterItFailed(t *testing.T) {
	s := newSite(t)
	s.signalAt(10*time.Minute, workflows.MsgFailed, nil)
	s.doneAt(20 * time.Minute)
	status := s.run(of(nil))
	s.expectCompleted()
	if !strings.Contains(messagesOf(status), "the requestor gave no reason") {
		t.Errorf("transitions:\n%s", messagesOf(status))
	}
}

func TestFailedAndRetryAtOnceLeaveAReasonToWaitFor(t *testing.T) {
	s := newSite(t)
	s.at(10*time.Minute, func() {
		s.env.SignalWorkflowSkippingWorkflowTask(workflows.MsgFailed, nil)
		s.env.SignalWorkflow(workflows.MsgRetry, nil)
	})
	s.expectAt(11*time.Minute, workflows.Ready, `"done" or "failed" from ops`)
	s.doneAt(20 * time.Minute)
	s.run(of(input{"readyTimeout": "0s"}))
	s.expectCompleted()
}

func TestReadyTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		in    input
		check func(*site)
		end   workflows.Phase
	}{
		"fail": {
			in: input{},
			check: func(s *site) {
				s.expectAt(59*time.Minute, workflows.Ready, "")
				s.expectAt(62*time.Minute, workflows.RequestorFailed, "a decision")
				s.checkAt(62*time.Minute, func(status workflows.Status) {
					if !strings.Contains(status.Failure, "held for longer than readyTimeout (1h0m0s)") {
						t.Errorf("failure = %q", status.Failure)
					}
				})
				s.doneAt(3 * time.Hour)
			},
			end: workflows.Completed,
		},
		"release": {
			in:    input{"onReadyTimeout": "release"},
			check: func(s *site) { s.expectAt(59*time.Minute, workflows.Ready, "") },
			end:   workflows.Completed,
		},
		"none": {
			in: input{"readyTimeout": "0s"},
			check: func(s *site) {
				s.expectAt(100*time.Hour, workflows.Ready, "")
				s.doneAt(101 * time.Hour)
			},
			end: workflows.Completed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			c.check(s)
			status := s.run(of(c.in))
			s.expectCompleted()
			if status.Phase != c.end {
				t.Errorf("the end is %s", status.Phase)
			}
			if name == "release" && !strings.Contains(messagesOf(status), "released as onReadyTimeout says") {
				t.Errorf("transitions:\n%s", messagesOf(status))
			}
		})
	}
}

func TestExtendMovesTheDeadlineButNeverNearer(t *testing.T) {
	s := newSite(t)
	start := s.env.Now()
	deadline := func(status workflows.Status) time.Duration { return status.ReadyDeadline.Sub(start).Round(time.Minute) }
	expect := func(at, want time.Duration) {
		s.checkAt(at, func(status workflows.Status) {
			if got := deadline(status); got != want {
				t.Errorf("after %s the deadline is %s, want %s", at, got, want)
			}
		})
	}
	expect(2*time.Minute, 61*time.Minute) // Ready after a minute of draining
	s.signalAt(10*time.Minute, workflows.MsgExtend, input{"for": "5m"})
	expect(11*time.Minute, 61*time.Minute)
	s.signalAt(20*time.Minute, workflows.MsgExtend, nil)
	expect(21*time.Minute, 80*time.Minute)
	s.signalAt(30*time.Minute, workflows.MsgExtend, input{"for": "10h"})
	expect(31*time.Minute, 10*time.Hour+30*time.Minute)
	s.expectAt(10*time.Hour+29*time.Minute, workflows.Ready, "")
	s.expectAt(10*time.Hour+31*time.Minute, workflows.RequestorFailed, "")
	s.signalAt(11*time.Hour, workflows.MsgExtend, nil) // too late
	s.doneAt(12 * time.Hour)
	status := s.run(of(nil))
	s.expectCompleted()
	if got := received(status, workflows.MsgExtend); len(got) != 4 || !strings.HasPrefix(got[3], "ignored: ") {
		t.Errorf("extend: %v", got)
	}
}

func TestExtendWithoutADeadlineIsRefused(t *testing.T) {
	s := newSite(t)
	update := s.updateAt(10*time.Minute, workflows.MsgExtend, input{"for": "1h"})
	s.doneAt(20 * time.Minute)
	s.run(of(input{"readyTimeout": "0s"}))
	if update.rejected == nil || !strings.Contains(update.rejected.Error(), "no deadline") {
		t.Errorf("extend: %+v", update)
	}
}

func TestStartedIsNotedOnce(t *testing.T) {
	s := newSite(t)
	s.signalAt(30*time.Second, workflows.MsgStarted, nil) // too early
	s.signalAt(10*time.Minute, workflows.MsgStarted, input{"by": "amy"})
	s.checkAt(11*time.Minute, func(status workflows.Status) {
		if status.StartedAt == nil || status.Phase != workflows.Ready {
			t.Errorf("status = %+v", status)
		}
	})
	s.doneAt(20 * time.Minute)
	status := s.run(of(nil))
	if got := received(status, workflows.MsgStarted); len(got) != 2 || !strings.HasPrefix(got[0], "ignored: ") || strings.HasPrefix(got[1], "ignored: ") {
		t.Errorf("started: %v", got)
	}
}

func TestNodeIsHeldUntilAllRequestorsAreDone(t *testing.T) {
	s := newSite(t)
	done := func(at time.Duration, who string) { s.signalAt(at, workflows.MsgDone, input{"requestor": who}) }
	s.expectAt(10*time.Minute, workflows.Ready, `from ops, net, disk`)
	done(11*time.Minute, "net")
	s.expectAt(12*time.Minute, workflows.Ready, `from ops, disk`)
	done(13*time.Minute, "net") // again
	done(14*time.Minute, "nobody")
	s.signalAt(15*time.Minute, workflows.MsgJoin, input{"requestor": "gpu"})
	s.expectAt(16*time.Minute, workflows.Ready, `from ops, disk, gpu`)
	s.signalAt(17*time.Minute, workflows.MsgLeave, input{"requestor": "disk"})
	s.expectAt(18*time.Minute, workflows.Ready, `from ops, gpu`)
	done(19*time.Minute, "") // as its own requestor
	s.expectAt(20*time.Minute, workflows.Ready, `from gpu`)
	s.signalAt(21*time.Minute, workflows.MsgJoin, input{"requestor": "net"}) // once more
	done(22*time.Minute, "gpu")
	s.expectAt(23*time.Minute, workflows.Ready, `from net`)
	s.signalAt(24*time.Minute, workflows.MsgLeave, input{"requestor": "net"})
	status := s.run(of(input{"additionalRequestors": []string{"net", "disk", "ops", "net"}}))
	s.expectCompleted()
	if got := received(status, workflows.MsgDone); len(got) != 5 || got[0] != "net is done" ||
		!strings.Contains(got[1], "net was done already") || !strings.Contains(got[2], `"nobody" is not a requestor`) {
		t.Errorf("done: %q", got)
	}
	if got := status.Transitions[len(status.Transitions)-1].At.Sub(status.Transitions[0].At).Round(time.Minute); got != 24*time.Minute {
		t.Errorf("ended after %s", got)
	}
}

func TestMembersComeAndGoBeforeTheNodeIsReady(t *testing.T) {
	s := newSite(t)
	s.answer("Drain", reply{after: 20 * time.Minute})
	s.signalAt(time.Minute, workflows.MsgJoin, input{"requestor": "net"})
	s.signalAt(2*time.Minute, workflows.MsgJoin, input{"requestor": "disk"})
	s.signalAt(3*time.Minute, workflows.MsgLeave, input{"requestor": "disk"})
	s.expectAt(21*time.Minute, workflows.Ready, "from ops, net")
	s.doneAt(22 * time.Minute)
	s.signalAt(23*time.Minute, workflows.MsgDone, input{"requestor": "net"})
	s.run(of(nil))
	s.expectCompleted()
}

func TestMembershipIsRefusedWhereItMakesNoSense(t *testing.T) {
	s := newSite(t)
	refused := map[string]*outcome{
		"share already":         s.updateAt(10*time.Minute, workflows.MsgJoin, input{"requestor": "ops"}),
		"no name to join":       s.updateAt(10*time.Minute, workflows.MsgJoin),
		"not a name":            s.updateAt(10*time.Minute, workflows.MsgJoin, input{"requestor": "a/b"}),
		"leave one's own":       s.updateAt(10*time.Minute, workflows.MsgLeave, input{"requestor": "ops"}),
		"leave without a name":  s.updateAt(10*time.Minute, workflows.MsgLeave),
		"leave as a stranger":   s.updateAt(10*time.Minute, workflows.MsgLeave, input{"requestor": "net"}),
		"done as a stranger":    s.updateAt(10*time.Minute, workflows.MsgDone, input{"requestor": "net"}),
		"failed as a stranger":  s.updateAt(10*time.Minute, workflows.MsgFailed, input{"requestor": "net"}),
		"drained, of an evict":  s.updateAt(10*time.Minute, workflows.MsgDrained),
		"retry of what goes on": s.updateAt(10*time.Minute, workflows.MsgRetry),
	}
	s.doneAt(20 * time.Minute)
	s.run(of(nil))
	s.expectCompleted()
	for name, update := range refused {
		if update.rejected == nil {
			t.Errorf("%s: %+v", name, update)
		}
	}
}

func TestPhaseThatCannotBeShownDoesNotEndTheMaintenance(t *testing.T) {
	s := newSite(t)
	s.answer("AnnouncePhase", reply{err: failing(activities.ErrorNodeGone, "away")})
	s.expectAt(10*time.Minute, workflows.Ready, `"done"`)
	s.doneAt(20 * time.Minute)
	s.run(of(nil))
	s.expectCompleted()
}
