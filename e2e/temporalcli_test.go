package e2e

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"drydock/workflows"
)

// temporalCLI runs the Temporal command line, which knows nothing of Drydock.
func (s *site) temporalCLI(args ...string) string {
	s.Helper()
	r := s.run(s.command("temporal", args...))
	if r.status != 0 {
		s.Fatalf("temporal %s: exit status %d\n%s", strings.Join(args, " "), r.status, r.out())
	}
	return r.stdout
}

// queried is the phase that the Temporal command line prints.
func (s *site) queried(id string) (workflows.Phase, error) {
	s.Helper()
	r := s.run(s.command("temporal", "workflow", "query", "--workflow-id", id, "--name", "status", "-o", "json"))
	var answer struct {
		QueryResult []workflows.Status `json:"queryResult"`
	}
	if err := json.Unmarshal([]byte(r.stdout), &answer); err != nil || len(answer.QueryResult) != 1 {
		return "", errors.New(r.out())
	}
	return answer.QueryResult[0].Phase, nil
}

func (s *site) untilQueried(id string, phase workflows.Phase) {
	s.Helper()
	s.eventually(id+" is "+string(phase), func() error {
		now, err := s.queried(id)
		if err == nil && now != phase {
			err = errors.New(string(now))
		}
		return err
	})
}

func TestAMaintenanceByTheTemporalCommandLineAlone(t *testing.T) {
	s := newPlainSite(t, "")
	const id = "node-maintenance/worker-01/ops"
	before := s.imprint("worker-01")
	start := []string{
		"workflow", "start", "--type", "NodeMaintenance", "--task-queue", "drydock", "--workflow-id", id,
		"--input", `{"node":"worker-01","requestor":"ops"}`,
	}
	s.sub("finished by a signal", func(s *site) {
		s.temporalCLI(start...)
		s.untilQueried(id, workflows.Ready)
		s.mustShow("worker-01", s.mustStatus(s.runOf("worker-01")).RunID, workflows.Ready)
		s.temporalCLI("workflow", "signal", "--workflow-id", id, "--name", "failed", "--input", `{"reason":"not yet"}`)
		s.untilQueried(id, workflows.RequestorFailed)
		s.temporalCLI("workflow", "signal", "--workflow-id", id, "--name", "retry")
		s.untilQueried(id, workflows.Ready)
		s.temporalCLI("workflow", "signal", "--workflow-id", id, "--name", "done")
		if out := s.temporalCLI("workflow", "result", "--workflow-id", id); !strings.Contains(out, "COMPLETED") {
			s.Errorf("it ended with\n%s", out)
		}
		s.back("worker-01", before)
	})
	s.sub("finished by an update", func(s *site) {
		s.temporalCLI(start...)
		s.untilQueried(id, workflows.Ready)
		out := s.temporalCLI("workflow", "update", "execute", "--workflow-id", id, "--name", "done", "--input", `{"comment":"all well"}`)
		if !strings.Contains(out, "ops is done") {
			s.Errorf("the update answers\n%s", out)
		}
		s.mustEnd(s.runOf("worker-01"), workflows.Completed)
		s.back("worker-01", before)
	})
	s.sub("cancelled", func(s *site) {
		s.temporalCLI("workflow", "start", "--type", "NodeMaintenance", "--task-queue", "drydock", "--workflow-id", "typed-by-hand",
			"--input", `{"node":"worker-01","requestor":"ops","drain":{"mode":"external"}}`)
		s.untilQueried(id, workflows.Draining)
		s.temporalCLI("workflow", "cancel", "--workflow-id", id)
		s.mustEnd(s.runOf("worker-01"), workflows.Cancelled)
		s.back("worker-01", before)
	})
	s.sub("limits", func(s *site) {
		s.temporalCLI("workflow", "update", "execute", "--workflow-id", "drydock-scheduler", "--name", "set-limits",
			"--input", `{"by":"ann","limits":{"maxParallel":"50%"}}`)
		out := s.temporalCLI("workflow", "query", "--workflow-id", "drydock-scheduler", "--name", "state", "-o", "json")
		if !strings.Contains(out, `"50%"`) || !strings.Contains(out, "ann") {
			s.Errorf("the state is\n%s", out)
		}
	})
}
