package trust

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
	"drydock.dev/drydock/lab/e2e/site"
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
	s := site.Prepare(t, "scheduler: {maxParallel: 2}\n")
	audit := filepath.Join(s.Options.Dir, "audit.jsonl")
	s.Options.Config += fmt.Sprintf("audit: {file: {path: %s}}\n", audit)
	first := codecKey("2026-11", "k")
	keys := s.File("keys", first)
	plain := s.Temporal
	codec, err := payloadcodec.Open(keys, nil)
	if err != nil {
		t.Fatal(err)
	}
	options := temporalclient.Options{HostPort: site.Shared.Temporal.Address}
	if err := payloadcodec.Apply(&options, codec); err != nil {
		t.Fatal(err)
	}
	if s.Temporal, err = temporalclient.DialContext(s.Ctx, options); err != nil {
		t.Fatal(err)
	}
	s.Environment = append(s.Environment, payloadcodec.VariableKeysFile+"="+keys)
	s.Options.Environment = append(s.Options.Environment, payloadcodec.VariableKeysFile+"="+keys)
	s.StartWorker()

	s.MustDrydock("start", "worker-01", "--reason", encryptedReason, "--wait")
	s.Exits(s.Drydock("status", "worker-01"), 0, encryptedReason, "Ready")
	s.MustDrydock("fail", "worker-01", "--comment", encryptedReason+"-of-a-failure")
	s.Exits(s.Drydock("status", "worker-01"), 0, encryptedReason+"-of-a-failure")
	s.MustDrydock("done", "worker-01", "--wait")
	for _, from := range [][]string{nil, {"--from", audit}} {
		s.Eventually("the record tells of it", func() error {
			if r := s.Drydock(append([]string{"history", "worker-01", "--details"}, from...)...); r.Status != 0 || !strings.Contains(r.Out(), encryptedReason) {
				return fmt.Errorf("%s", r.Out())
			}
			return nil
		})
	}
	s.MustDrydock("plan", "create", "kernel", "worker-02", "--reason", encryptedReason, "--yes")
	s.Exits(s.Drydock("plan", "status", "kernel"), 0, encryptedReason, "worker-02")
	s.MustDrydock("plan", "cancel", "kernel", "--yes")
	scheduleIsEncrypted(s, plain)
	codecKeysAreRotated(s, first, codecKey("2027-05", "l"))
	for _, id := range []string{
		api.MaintenanceID(s.Cluster, "worker-01", "ops"), api.MaintenanceID(s.Cluster, "worker-03", "ops"),
		api.PlanID(s.Cluster, "kernel"), api.SchedulerID(s.Cluster),
	} {
		events := plain.GetWorkflowHistory(s.Ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
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

func scheduleIsEncrypted(s *site.Site, plain temporalclient.Client) {
	s.Helper()
	s.MustDrydock("plan", "schedule", "patches", "worker-04", "--reason", encryptedReason, "--cron", "0 22 * * 1", "--yes")
	s.Exits(s.Drydock("plan", "schedule", "patches", "-o", "json"), 0, encryptedReason)
	schedule, err := plain.WorkflowService().DescribeSchedule(s.Ctx, &workflowservice.DescribeScheduleRequest{
		Namespace: temporalclient.DefaultNamespace, ScheduleId: api.ScheduleID(s.Cluster, "patches"),
	})
	if err != nil || strings.Contains(schedule.String(), encryptedReason) {
		s.Errorf("%v, %s", err, schedule)
	}
	s.MustDrydock("plan", "schedule", "patches", "--delete", "--yes")
}

// codecKeysAreRotated gives a command line the new key before the worker has it: what is sent to the worker waits, and is not lost.
func codecKeysAreRotated(s *site.Site, before, after string) {
	s.Helper()
	s.Environment = append(s.Environment, payloadcodec.VariableKeysFile+"="+s.File("their-keys", after+before))
	started := s.Spawn("start", "worker-03", "--reason", encryptedReason, "--wait")
	s.Eventually("the worker says which key it lacks", func() error {
		if said := s.LogOf(s.Worker); !strings.Contains(said, `encrypted with key \"2027-05\"`) {
			return errors.New(said)
		}
		return nil
	})
	s.File("keys", before+after)
	s.Eventually("the maintenance is Ready", func() error {
		if r := s.Drydock("status", "worker-03"); !strings.Contains(r.Out(), string(api.Ready)) {
			return errors.New(r.Out())
		}
		return nil
	})
	<-started.Exited
	s.MustDrydock("done", "worker-03", "--wait")
	s.Environment = append(s.Environment, payloadcodec.VariableKeysFile+"=")
	for _, args := range [][]string{{"status", "worker-03"}, {"history", "worker-03"}, {"list", "--all"}, {"limits"}} {
		s.Exits(s.Drydock(args...), 1, payloadcodec.VariableKeysFile)
	}
	s.Exits(s.Drydock("plan", "status", "kernel"), 0, payloadcodec.VariableKeysFile)
}
