package takeover

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	"drydock.dev/drydock/api"
)

const alive = "1@drydock-1@drydock@33333333"

// pollsUntil has a worker poll until a time: its polls get no task, so that each lasts for a minute.
func (s *server) pollsUntil(identity string, until time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polled[identity] = time.Now()
	if until > 0 {
		next := min(time.Minute, until)
		time.AfterFunc(next, func() { s.pollsUntil(identity, until-next) })
	}
}

// watch runs a worker that lives beside others for a while, and returns its log.
func (s *server) watch(t *testing.T, span time.Duration) string {
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	s.pollsUntil(ours, span)
	var log strings.Builder
	Worker{
		Temporal: s, Nodes: s, Logger: slog.New(slog.NewTextHandler(&log, nil)), Namespace: "default", TaskQueue: "drydock", Identity: ours, Started: time.Now(),
	}.watch(ctx)
	return log.String()
}

func by(identity string) running {
	return running{api.HealthCheckType, "drydock", []*workflowpb.PendingActivityInfo{attempt(func(a *workflowpb.PendingActivityInfo) {
		a.LastWorkerIdentity = identity
	})}}
}

// TestTheWatchesOfAWorkerThatDiesAreBegunAnew has one of three workers die, and none start.
func TestTheWatchesOfAWorkerThatDiesAreBegunAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{polled: map[string]time.Time{}, workflows: map[string]running{"a": by(dead), "b": by(alive), "c": by(ours)}}
		const dies = 100 * time.Second
		s.pollsUntil(dead, dies)
		s.pollsUntil(alive, time.Hour)
		var after time.Duration
		began := time.Now()
		s.onFail = func() { after = time.Since(began) - dies }
		log := s.watch(t, 20*time.Minute)
		s.expect(t, "a/run-a/7")
		if after <= 0 || after > 75*time.Second {
			t.Errorf("noticed %s after its death", after)
		}
		if s.listed != 1 {
			t.Errorf("the workflows were listed %d times", s.listed)
		}
		if strings.Contains(log, "WARN") {
			t.Errorf("logged: %s", log)
		}
	})
}

func TestWhileAllWorkersLiveNothingIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{polled: map[string]time.Time{}, workflows: map[string]running{"a": by(alive), "b": by(ours)}}
		s.pollsUntil(alive, time.Hour)
		s.watch(t, time.Hour)
		if s.expect(t); s.listed > 0 {
			t.Errorf("the workflows were listed %d times", s.listed)
		}
	})
}

// A server that did not answer for a while shows polls of before.
func TestAnOutageOfTheServerIsNobodysDeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{polled: map[string]time.Time{}, workflows: map[string]running{"a": by(alive)}}
		s.pollsUntil(alive, 100*time.Second)
		time.AfterFunc(100*time.Second, func() { s.setDown(errors.New("connection refused")) })
		time.AfterFunc(10*time.Minute, func() { s.setDown(nil) })
		time.AfterFunc(10*time.Minute+30*time.Second, func() { s.pollsUntil(alive, time.Hour) })
		s.watch(t, 30*time.Minute)
		if s.expect(t); s.listed > 0 {
			t.Errorf("the workflows were listed %d times", s.listed)
		}
	})
}

func TestWhatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{polled: map[string]time.Time{}, workflows: map[string]running{"a": by(dead)}, blind: errors.New("connection refused")}
		s.pollsUntil(dead, 0)
		time.AfterFunc(5*time.Minute, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.blind = nil
		})
		log := s.watch(t, 10*time.Minute)
		s.expect(t, "a/run-a/7")
		if !strings.Contains(log, "WARN") {
			t.Errorf("logged: %s", log)
		}
	})
}

// TestAWorkerThatPollsAgainIsLeftAlone has a worker fall silent while nothing can be begun anew, and poll again before it can.
func TestAWorkerThatPollsAgainIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{polled: map[string]time.Time{}, workflows: map[string]running{"a": by(dead)}, blind: errors.New("connection refused")}
		s.pollsUntil(dead, 0)
		time.AfterFunc(5*time.Minute, func() { s.pollsUntil(dead, time.Hour) })
		time.AfterFunc(6*time.Minute, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.blind = nil
		})
		s.watch(t, 10*time.Minute)
		s.expect(t)
	})
}
