package e2e

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	temporalclient "go.temporal.io/sdk/client"

	"drydock/api"
	"drydock/config/payloadcodec"
)

// TestPayloadsAreEncrypted has a maintenance and a plan be done by a worker and a command line with keys, and looks for their
// words in what Temporal keeps.
func TestPayloadsAreEncrypted(t *testing.T) {
	s := prepareSite(t, "")
	const canary = "canary-of-a-reason"
	audit := filepath.Join(s.options.Dir, "audit.jsonl")
	s.options.Config += fmt.Sprintf("audit: {file: {path: %s}}\n", audit)
	keys := s.file("keys", "2026-11 "+base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))+"\n")
	plain := s.temporal
	codec, err := payloadcodec.Open(keys)
	if err != nil {
		t.Fatal(err)
	}
	options := temporalclient.Options{HostPort: shared.temporal.Address}
	if err := payloadcodec.Apply(&options, codec); err != nil {
		t.Fatal(err)
	}
	if s.temporal, err = temporalclient.DialContext(s.ctx, options); err != nil {
		t.Fatal(err)
	}
	s.environment = append(s.environment, payloadcodec.VariableKeysFile+"="+keys)
	s.options.Environment = append(s.options.Environment, payloadcodec.VariableKeysFile+"="+keys)
	s.startWorker()

	s.mustDrydock("start", "worker-01", "--reason", canary, "--wait")
	s.exits(s.drydock("status", "worker-01"), 0, canary, "Ready")
	s.mustDrydock("failed", "worker-01", "--reason", canary+"-of-a-failure")
	s.exits(s.drydock("status", "worker-01"), 0, canary+"-of-a-failure")
	s.mustDrydock("done", "worker-01", "--wait")
	for _, from := range [][]string{nil, {"--from", audit}} {
		s.eventually("the record tells of it", func() error {
			if r := s.drydock(append([]string{"history", "worker-01", "--details"}, from...)...); r.status != 0 || !strings.Contains(r.out(), canary) {
				return fmt.Errorf("%s", r.out())
			}
			return nil
		})
	}
	s.mustDrydock("plan", "create", "kernel", "worker-02", "--reason", canary, "--yes")
	s.exits(s.drydock("plan", "status", "kernel"), 0, canary, "worker-02")
	s.mustDrydock("plan", "cancel", "kernel", "--yes")

	for _, id := range []string{api.MaintenanceID(s.cluster, "worker-01", "ops"), api.PlanID(s.cluster, "kernel"), api.SchedulerID(s.cluster)} {
		events := plain.GetWorkflowHistory(s.ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for n := 0; events.HasNext() || n == 0; n++ {
			event, err := events.Next()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(event.String(), canary) {
				t.Errorf("%s: %s", id, event)
			}
		}
	}
}
