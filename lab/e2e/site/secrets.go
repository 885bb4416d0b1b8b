package site

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"

	"drydock.dev/drydock/api"
)

// Written is what the site's workers have logged, and every history of its workflows, of which there are some at least.
func (s *Site) Written(atLeast int) map[string][]byte {
	s.Helper()
	places := map[string][]byte{}
	logs, err := filepath.Glob(filepath.Join(s.Options.Dir, "*.log"))
	if err != nil || len(logs) == 0 {
		s.Fatalf("no log of the worker: %v", err)
	}
	for _, file := range logs {
		places[file], err = os.ReadFile(file)
		s.NoError(err)
	}
	var page *workflowservice.ListWorkflowExecutionsResponse
	s.Eventually("the workflows are listed", func() (err error) {
		page, err = s.Temporal.ListWorkflow(s.Ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf("TaskQueue = '%s'", api.TaskQueue(s.Cluster, "drydock")),
		})
		if err == nil && len(page.Executions) < atLeast {
			err = fmt.Errorf("%d of %d", len(page.Executions), atLeast)
		}
		return err
	})
	for _, info := range page.Executions {
		id := info.GetExecution().GetWorkflowId()
		history := s.Temporal.GetWorkflowHistory(s.Ctx, id, info.GetExecution().GetRunId(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for history.HasNext() {
			event, err := history.Next()
			s.NoError(err)
			raw, err := proto.Marshal(event)
			s.NoError(err)
			places["the history of "+id] = append(places["the history of "+id], raw...)
		}
	}
	return places
}

// MustNotLeak checks that nobody is told a secret.
func (s *Site) MustNotLeak(places map[string][]byte, canaries map[string]string) {
	s.Helper()
	for place, content := range places {
		for what, canary := range canaries {
			if canary == "" || bytes.Contains(content, []byte(canary)) {
				s.Errorf("%s is in %s", what, place)
			}
		}
	}
}
