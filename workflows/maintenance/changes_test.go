package maintenance_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/workflowtest"
)

// before has a run go on as one whose history knows of no changes.
func before(s *workflowtest.Site) *workflowtest.Site {
	s.Env.OnGetVersion(mock.Anything, workflow.DefaultVersion, workflow.Version(1)).Return(workflow.DefaultVersion)
	return s
}

func TestARunFromBeforeAChangeGoesOnInItsOldWay(t *testing.T) {
	t.Run("a pod is skipped unseen", func(t *testing.T) {
		s := before(workflowtest.New(t))
		s.Answer("Drain", workflowtest.Reply{After: 24 * time.Hour}, workflowtest.Reply{After: time.Minute})
		s.SignalAt(5*time.Minute, api.MsgSkipPod, workflowtest.Input{"pod": "default/web"})
		s.DoneAt(30 * time.Minute)
		status := s.Run(workflowtest.InputWith(nil))
		s.ExpectCompleted()
		if len(status.SkippedPods) != 1 || s.Count("FindPod") > 0 {
			t.Errorf("skipped %v; it did %v", status.SkippedPods, s.Log)
		}
	})
	t.Run("a past notBefore is now", func(t *testing.T) {
		s := before(workflowtest.New(t))
		s.DoneAt(30 * time.Minute)
		s.Run(workflowtest.InputWith(workflowtest.Input{"notBefore": s.Env.Now().Add(-time.Hour).UTC().Format(time.RFC3339)}))
		s.ExpectCompleted()
	})
	t.Run("a message that it did not know is refused", func(t *testing.T) {
		s := before(workflowtest.New(t))
		s.Answer("Drain", workflowtest.Reply{After: 20 * time.Minute})
		s.SignalAt(5*time.Minute, api.MsgConsent, consent(workflowtest.Input{"force": true}))
		s.DoneAt(30 * time.Minute)
		status := s.Run(workflowtest.InputWith(nil))
		s.ExpectCompleted()
		if m := status.Messages[0]; m.Outcome != api.Refused || !strings.Contains(m.Effect, "there is no such message") || len(status.Consents) > 0 || s.Count("Drain") != 1 {
			t.Errorf("%+v; it did %v", m, s.Log)
		}
	})
}
