package site

import (
	"errors"
	"strings"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
)

// Refused waits for the end of a maintenance whose input is wrong.
func (s *Site) Refused(run client.WorkflowRun, names ...string) {
	s.Helper()
	_, err := s.End(run)
	var refused *temporal.ApplicationError
	if !errors.As(err, &refused) || refused.Type() != api.ErrorInvalidSpec || !refused.NonRetryable() {
		s.Fatalf("the workflow ended with %v, want it to fail with %s", err, api.ErrorInvalidSpec)
	}
	for _, name := range names {
		if !strings.Contains(refused.Message(), name) {
			s.Errorf("%q does not name %s", refused.Message(), name)
		}
	}
}

// SignalsTo are the names of the signals in a workflow's history.
func (s *Site) SignalsTo(id string) []string {
	s.Helper()
	var names []string
	history := s.Temporal.GetWorkflowHistory(s.Ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		s.NoError(err)
		if a := event.GetWorkflowExecutionSignaledEventAttributes(); a != nil {
			names = append(names, a.SignalName)
		}
	}
	return names
}
