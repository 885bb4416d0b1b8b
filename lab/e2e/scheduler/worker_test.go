package scheduler

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/e2e/site"
)

func TestAStoppingWorkerHandsItsDrainOver(t *testing.T) {
	s := site.New(t, "")
	ns := s.Namespace()
	s.Guarded(ns, "web", "worker-01")
	pod := s.One(ns, "web")
	run := s.Begin("worker-01")
	s.Until(run, api.Draining)
	s.RefusedOnce(ns)
	first := s.Worker
	s.StartWorker()
	s.StopWorker(first)
	s.Allow(ns, "web")
	s.Until(run, api.Ready)
	// One that does not hand over is missed only when its heartbeats are.
	if cause := begunAnew(s, run, "Drain"); cause.GetApplicationFailureInfo().GetType() != api.ErrorWorkerStopping {
		t.Errorf("the other worker began the drain anew after %v", cause)
	}
	if times := s.Accepted(ns)[pod.Name]; times != 1 {
		t.Errorf("the eviction was accepted %d times", times)
	}
	s.Done(run)
}

// begunAnew is why the last activity of a type that has ended was begun for the last time.
func begunAnew(s *site.Site, run client.WorkflowRun, activity string) (cause *failurepb.Failure) {
	s.Helper()
	types := map[int64]string{}
	history := s.Temporal.GetWorkflowHistory(s.Ctx, run.GetID(), run.GetRunID(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		if err != nil {
			s.Fatal(err)
		}
		types[event.GetEventId()] = event.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
		if started := event.GetActivityTaskStartedEventAttributes(); started != nil && types[started.GetScheduledEventId()] == activity {
			cause = started.GetLastFailure()
		}
	}
	return cause
}

func TestAWorkerIsObserved(t *testing.T) {
	s := site.New(t, "")
	s.Done(s.ReadyNow("worker-01"))
	for path, wants := range map[string][]string{
		"/healthz": {"ok"}, "/readyz": {"ok"},
		"/metrics": {"drydock_evictions_total", `drydock_maintenances{group="other",phase="Draining"} 0`, "drydock_state_read_success 1", "drydock_limits_differ_from_config 0", "temporal_workflow_completed", "temporal_activity_"},
	} {
		// The server knows that a workflow ended a moment before its worker counts it.
		s.Eventually("GET "+path+" has all", func() error {
			code, body := s.HTTP(http.MethodGet, s.Worker.URL+path, "")
			for _, want := range wants {
				if code != http.StatusOK || !strings.Contains(body, want) {
					return fmt.Errorf("GET %s: %d, without %s", path, code, want)
				}
			}
			return nil
		})
	}
	if code, body := s.HTTP(http.MethodPut, s.Worker.AdminURL+"/loglevel", "debug"); code != http.StatusOK || strings.TrimSpace(body) != "DEBUG" {
		t.Errorf("PUT /loglevel: %d %q", code, body)
	}
	if code, _ := s.HTTP(http.MethodPut, s.Worker.AdminURL+"/loglevel", "loud"); code != http.StatusBadRequest {
		t.Errorf("PUT /loglevel of nonsense: %d", code)
	}
	if code, _ := s.HTTP(http.MethodPut, s.Worker.URL+"/loglevel", "debug"); code == http.StatusOK {
		t.Error("whoever sees the metrics changes the log level")
	}
	if strings.Contains(s.LogOf(s.Worker), "level=DEBUG") {
		t.Error("it logged at level debug before")
	}
	s.Done(s.ReadyNow("worker-01"))
	s.Eventually("it logs at level debug", func() error {
		if !strings.Contains(s.LogOf(s.Worker), "level=DEBUG") {
			return errors.New("it does not")
		}
		return nil
	})
}

func TestAWorkerRefusesABadConfiguration(t *testing.T) {
	s := site.Prepare(t, "")
	for config, names := range map[string][]string{
		"clustr: x":                                       {"clustr", "unknown"},
		"scheduler: {maxParallel: 0}":                     {"scheduler.maxParallel"},
		"scheduler: {groups: [{name: a}]}":                {"scheduler.groups[0]"},
		"kubernetes: {qps: -1}\nlog: {level: loud}":       {"kubernetes.qps", "log.level"},
		"defaults: {node: worker-01}":                     {"defaults", "node"},
		"defaults: {drain: {mod: evict}}":                 {"defaults", "drain.mod"},
		"taskQueue: null":                                 {"taskQueue"},
		"policy: [{name: a, require: maintenance.forse}]": {"policy[0] (a).require: line 1, column 12: undefined field 'forse'"},
	} {
		s.Options.Config = config
		w, err := devstack.LaunchWorker(s.NextWorker())
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Ready(s.Ctx); err == nil {
			w.Kill()
			t.Errorf("%q is accepted", config)
		}
		if status := w.ExitStatus(); status != 2 {
			t.Errorf("%q: exit status %d, want 2", config, status)
		}
		for _, name := range names {
			if said := s.LogOf(w); !strings.Contains(said, name) {
				t.Errorf("%q: it does not name %s but says\n%s", config, name, said)
			}
		}
	}
}

func TestAWorkerWaitsForTemporal(t *testing.T) {
	s := site.Prepare(t, "")
	cable := s.NewCable(site.Shared.Temporal.Address)
	s.Options.Environment = []string{"TEMPORAL_ADDRESS=" + cable.Address}
	var err error
	if s.Worker, err = devstack.LaunchWorker(s.NextWorker()); err != nil {
		t.Fatal(err)
	}
	s.Eventually("it says what it waits for", func() error {
		if said := s.LogOf(s.Worker); !strings.Contains(said, "not reachable") || !strings.Contains(said, "TEMPORAL_ADDRESS") {
			return errors.New(said)
		}
		return nil
	})
	if code, _ := s.HTTP(http.MethodGet, s.Worker.URL+"/healthz", ""); code != http.StatusOK {
		t.Errorf("GET /healthz: %d, want it to live", code)
	}
	if code, _ := s.HTTP(http.MethodGet, s.Worker.URL+"/readyz", ""); code != http.StatusServiceUnavailable {
		t.Errorf("GET /readyz: %d, want it not to be ready", code)
	}
	s.Connect(cable)
	if err := s.Worker.Ready(s.Ctx); err != nil {
		t.Fatal(err)
	}
	s.State()
	s.Done(s.ReadyNow("worker-01"))
}

func TestConfiguredDefaultsTakeEffect(t *testing.T) {
	s := site.New(t, "defaults: {drain: {deleteEmptyDir: true, force: true}, readyTimeout: 7m, reason: standing order}")
	ns := s.Namespace()
	bare := s.Pod(ns, "bare", "worker-01", site.WithEmptyDir)
	run := s.Begin("worker-01")
	spec := s.Until(run, api.Ready).Spec
	s.UntilGone(*bare)
	if spec.ReadyTimeout.Std() != 7*time.Minute || spec.Reason != "standing order" || spec.Drain.Mode != "evict" {
		t.Errorf("spec = %+v", spec)
	}
	s.Done(run)

	// The input goes over them, field by field.
	s.Pod(ns, "scratch", "worker-02", site.WithEmptyDir)
	run = s.BeginWith("worker-02", `"drain":{"deleteEmptyDir":false},"reason":"mine"`)
	status := s.UntilStatus(run, "blocked", func(status api.Status) bool {
		return status.WaitingFor != "" && status.Phase == api.Draining
	})
	if status.Spec.Reason != "mine" || !status.Spec.Drain.Force || !strings.Contains(status.WaitingFor, "deleteEmptyDir") {
		t.Errorf("it waits for %q with %+v", status.WaitingFor, status.Spec)
	}
}

func TestANamespaceWithoutTheSearchAttributes(t *testing.T) {
	t.Parallel()
	// One attribute has another type, so that it cannot be registered, and must not be set.
	temporal, err := devstack.StartTemporal(t.Context(), devstack.TemporalOptions{
		Dir: filepath.Join(site.Shared.Dir, "bare-temporal"), Args: []string{"--search-attribute", api.AttributeNode.GetName() + "=Text"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { site.Stop(temporal.Process) })
	s := site.PrepareOf(t, site.Shared.Lanes.Take(t), temporal, "")
	s.StartWorker()
	before := s.Imprint("worker-01")
	run := s.ReadyNow("worker-01")
	s.MustShow("worker-01", run.GetRunID(), api.Ready)
	s.Exits(s.Drydock("list"), 0, "worker-01")

	// This server is nobody else's, so it is the one to be killed.
	temporal.Kill()
	if err := temporal.Start(s.Ctx); err != nil {
		t.Fatal(err)
	}
	s.Done(run)
	s.Back("worker-01", before)
}
