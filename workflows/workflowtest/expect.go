package workflowtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
)

// CheckAt checks the status after a time.
func (s *Site) CheckAt(d time.Duration, check func(api.Status)) *Site {
	return s.At(d, func() { check(s.Status()) })
}

// ExpectAt checks phase and, where it is not empty, a part of what the maintenance waits for.
func (s *Site) ExpectAt(d time.Duration, phase api.Phase, waitingFor string) *Site {
	s.t.Helper()
	return s.CheckAt(d, func(status api.Status) {
		s.t.Helper()
		if status.Phase != phase {
			s.t.Errorf("after %s the phase is %s, want %s", d, status.Phase, phase)
		}
		if !strings.Contains(status.WaitingFor, waitingFor) {
			s.t.Errorf("after %s it waits for %q, want %q", d, status.WaitingFor, waitingFor)
		}
	})
}

// checkUndone checks that the node and every slot are given back.
func (s *Site) checkUndone() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	held := false
	for _, what := range s.Log {
		switch what {
		case "HoldNode", "AdoptNode":
			held = true
		case "ReleaseNode":
			held = false
		}
	}
	if held {
		s.t.Errorf("the node is still held: %v", s.Log)
	}
	for id := range s.Requested {
		want := 1
		if s.refused[id] {
			want = 0
		}
		if s.Released[id] != want {
			s.t.Errorf("request %s was released %d times, want %d: %v", id, s.Released[id], want, s.Log)
		}
	}
	for id := range s.Released {
		if s.Requested[id] == 0 {
			s.t.Errorf("a slot was released that nobody asked for: %s", id)
		}
	}
}

// ExpectLog compares what the maintenance did with what it was to do.
func (s *Site) ExpectLog(want ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.Log, want) {
		s.t.Errorf("the maintenance did\n %v, want\n %v", s.Log, want)
	}
}

// ExpectPhases checks the phases that the maintenance went through.
func (s *Site) ExpectPhases(status api.Status, want ...api.Phase) {
	s.t.Helper()
	var got []api.Phase
	for _, t := range status.Transitions {
		got = append(got, t.Phase)
	}
	if got = slices.Compact(got); !slices.Equal(got, want) {
		s.t.Errorf("phases %v, want %v", got, want)
	}
}

// ExpectFailure checks the type and a part of the message of the error that the workflow failed with.
func (s *Site) ExpectFailure(kind, message string) {
	s.t.Helper()
	err := s.Env.GetWorkflowError()
	var application *temporal.ApplicationError
	if !errors.As(err, &application) {
		s.t.Fatalf("workflow error = %v, want one of type %s", err, kind)
	}
	if application.Type() != kind || !strings.Contains(application.Message(), message) || !application.NonRetryable() {
		s.t.Errorf("error %s (non-retryable %v): %s; want %s with %q",
			application.Type(), application.NonRetryable(), application.Message(), kind, message)
	}
}

// ExpectCancelled checks that the workflow ended as cancelled.
func (s *Site) ExpectCancelled() {
	s.t.Helper()
	if err := s.Env.GetWorkflowError(); !temporal.IsCanceledError(err) {
		s.t.Errorf("workflow error = %v, want a cancellation", err)
	}
}

// ExpectCompleted checks that the workflow completed, and returns its result.
func (s *Site) ExpectCompleted() api.Result {
	s.t.Helper()
	if err := s.Env.GetWorkflowError(); err != nil {
		s.t.Errorf("workflow error = %v, want none", err)
	}
	var result api.Result
	if err := s.Env.GetWorkflowResult(&result); err != nil {
		s.t.Errorf("result: %v", err)
	}
	return result
}

// EffectsOf finds what became of the messages of a name.
func EffectsOf(status api.Status, name string) []string {
	var effects []string
	for _, m := range status.Messages {
		if m.Name == name {
			effects = append(effects, m.Effect)
		}
	}
	return effects
}

// MessagesOf are the messages of all transitions.
func MessagesOf(status api.Status) string {
	var text strings.Builder
	for _, t := range status.Transitions {
		fmt.Fprintf(&text, "%s: %s\n", t.Phase, t.Message)
	}
	return text.String()
}
