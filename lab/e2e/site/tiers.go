package site

import (
	"encoding/json"

	"drydock.dev/drydock/api"
)

// Shown is the status as the command line has it, which knows more of a drain under way than the workflow.
func (s *Site) Shown(node string) api.Maintenance {
	s.Helper()
	var status api.Maintenance
	if err := json.Unmarshal([]byte(s.MustDrydock("status", node, "-o", "json")), &status); err != nil {
		s.Fatal(err)
	}
	return status
}

// Deletions are the worker's requests to delete pods of a namespace.
func (s *Site) Deletions(ns string) []Request {
	s.Helper()
	return s.Requests(`"verb":"delete"`, func(r Request) bool {
		return r.Verb == "delete" && r.Object.Resource == "pods" && r.Object.Subresource == "" && r.Object.Namespace == ns
	})
}
