package e2e

import (
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/config/payloadcodec"
)

// encryptedReason is in all that the test of the codec says, and must be nowhere in what Temporal keeps.
const encryptedReason = "canary-of-a-reason"

// codecKey is a line of a file of keys.
func codecKey(name, letter string) string {
	return name + " " + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32))) + "\n"
}

// TestPayloadsAreEncrypted has a maintenance and a plan be done by a worker and a command line with keys, and looks for their
// words in what Temporal keeps.
func TestPayloadsAreEncrypted(t *testing.T) {
	s := prepareSite(t, "scheduler: {maxParallel: 2}\n")
	audit := filepath.Join(s.options.Dir, "audit.jsonl")
	s.options.Config += fmt.Sprintf("audit: {file: {path: %s}}\n", audit)
	first := codecKey("2026-11", "k")
	keys := s.file("keys", first)
	plain := s.temporal
	codec, err := payloadcodec.Open(keys, nil)
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

	s.mustDrydock("start", "worker-01", "--reason", encryptedReason, "--wait")
	s.exits(s.drydock("status", "worker-01"), 0, encryptedReason, "Ready")
	s.mustDrydock("failed", "worker-01", "--reason", encryptedReason+"-of-a-failure")
	s.exits(s.drydock("status", "worker-01"), 0, encryptedReason+"-of-a-failure")
	s.mustDrydock("done", "worker-01", "--wait")
	for _, from := range [][]string{nil, {"--from", audit}} {
		s.eventually("the record tells of it", func() error {
			if r := s.drydock(append([]string{"history", "worker-01", "--details"}, from...)...); r.status != 0 || !strings.Contains(r.out(), encryptedReason) {
				return fmt.Errorf("%s", r.out())
			}
			return nil
		})
	}
	s.mustDrydock("plan", "create", "kernel", "worker-02", "--reason", encryptedReason, "--yes")
	s.exits(s.drydock("plan", "status", "kernel"), 0, encryptedReason, "worker-02")
	s.mustDrydock("plan", "cancel", "kernel", "--yes")
	s.scheduleIsEncrypted(plain)
	s.codecKeysAreRotated(first, codecKey("2027-05", "l"))
	for _, id := range []string{
		api.MaintenanceID(s.cluster, "worker-01", "ops"), api.MaintenanceID(s.cluster, "worker-03", "ops"),
		api.PlanID(s.cluster, "kernel"), api.SchedulerID(s.cluster),
	} {
		events := plain.GetWorkflowHistory(s.ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for n := 0; events.HasNext() || n == 0; n++ {
			event, err := events.Next()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(event.String(), encryptedReason) {
				t.Errorf("%s: %s", id, event)
			}
		}
	}
}

func (s *site) scheduleIsEncrypted(plain temporalclient.Client) {
	s.Helper()
	s.mustDrydock("plan", "schedule", "patches", "worker-04", "--reason", encryptedReason, "--cron", "0 22 * * 1", "--yes")
	s.exits(s.drydock("plan", "schedule", "patches", "-o", "json"), 0, encryptedReason)
	schedule, err := plain.WorkflowService().DescribeSchedule(s.ctx, &workflowservice.DescribeScheduleRequest{
		Namespace: temporalclient.DefaultNamespace, ScheduleId: api.ScheduleID(s.cluster, "patches"),
	})
	if err != nil || strings.Contains(schedule.String(), encryptedReason) {
		s.Errorf("%v, %s", err, schedule)
	}
	s.mustDrydock("plan", "schedule", "patches", "--delete", "--yes")
}

// codecKeysAreRotated gives a command line the new key before the worker has it: what is sent to the worker waits, and is not lost.
func (s *site) codecKeysAreRotated(before, after string) {
	s.Helper()
	s.environment = append(s.environment, payloadcodec.VariableKeysFile+"="+s.file("their-keys", after+before))
	started := s.spawn("start", "worker-03", "--reason", encryptedReason, "--wait")
	s.eventually("the worker says which key it lacks", func() error {
		if said := s.logOf(s.worker); !strings.Contains(said, `encrypted with key \"2027-05\"`) {
			return errors.New(said)
		}
		return nil
	})
	s.file("keys", before+after)
	s.eventually("the maintenance is Ready", func() error {
		if r := s.drydock("status", "worker-03"); !strings.Contains(r.out(), string(api.Ready)) {
			return errors.New(r.out())
		}
		return nil
	})
	<-started.exited
	s.mustDrydock("done", "worker-03", "--wait")
	s.environment = append(s.environment, payloadcodec.VariableKeysFile+"=")
	for _, args := range [][]string{{"status", "worker-03"}, {"history", "worker-03"}, {"list", "--all"}, {"limits"}} {
		s.exits(s.drydock(args...), 1, payloadcodec.VariableKeysFile)
	}
	s.exits(s.drydock("plan", "status", "kernel"), 0, payloadcodec.VariableKeysFile)
}
