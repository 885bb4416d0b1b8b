package site

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/client"
)

// ShownDetails are the details that the Temporal UI shows of a workflow.
func (s *Site) ShownDetails(run client.WorkflowRun) string {
	s.Helper()
	text, err := s.Queried(run.GetID(), "__temporal_workflow_metadata")
	s.NoError(err)
	var metadata struct {
		CurrentDetails string `json:"currentDetails"`
	}
	if err := json.Unmarshal([]byte(text), &metadata); err != nil {
		s.Fatalf("%v: %s", err, text)
	}
	return metadata.CurrentDetails
}

// Says checks that a text has some parts.
func (s *Site) Says(what, text string, parts ...string) {
	s.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			s.Errorf("%s does not say %q:\n%s", what, part, text)
		}
	}
}

// UntilSays waits until the command line says some parts, and returns all that it says: Temporal lists what has ended a moment
// later.
func (s *Site) UntilSays(args []string, parts ...string) string {
	s.Helper()
	var r Ran
	s.Eventually(fmt.Sprintf("drydock %q says %q", args, parts), func() error {
		r = s.Drydock(args...)
		if r.Status != 0 || slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(r.Stdout, part) }) {
			return fmt.Errorf("exit status %d\n%s", r.Status, r.Out())
		}
		return nil
	})
	return r.Stdout
}
