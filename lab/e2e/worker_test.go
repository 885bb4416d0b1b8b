package e2e

import (
	"errors"
	"fmt"
	"io"
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
)

func TestAStoppingWorkerHandsItsDrainOver(t *testing.T) {
	s := newSite(t, "")
	ns := s.namespace()
	s.guarded(ns, "web", "worker-01")
	pod := s.one(ns, "web")
	run := s.begin("worker-01")
	s.until(run, api.Draining)
	s.refusedOnce(ns)
	first := s.worker
	s.startWorker()
	s.stopWorker(first)
	s.allow(ns, "web")
	s.until(run, api.Ready)
	// One that does not hand over is missed only when its heartbeats are.
	if cause := s.begunAnew(run, "Drain"); cause.GetApplicationFailureInfo().GetType() != api.ErrorWorkerStopping {
		t.Errorf("the other worker began the drain anew after %v", cause)
	}
	if times := s.accepted(ns)[pod.Name]; times != 1 {
		t.Errorf("the eviction was accepted %d times", times)
	}
	s.done(run)
}

// begunAnew is why the last activity of a type that has ended was begun for the last time.
func (s *site) begunAnew(run client.WorkflowRun, activity string) (cause *failurepb.Failure) {
	s.Helper()
	types := map[int64]string{}
	history := s.temporal.GetWorkflowHistory(s.ctx, run.GetID(), run.GetRunID(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
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
	s := newSite(t, "")
	s.done(s.readyNow("worker-01"))
	for path, wants := range map[string][]string{
		"/healthz": {"ok"}, "/readyz": {"ok"},
		"/metrics": {"drydock_evictions_total", `drydock_maintenances{group="other",phase="Draining"} 0`, "drydock_state_read_success 1", "drydock_limits_differ_from_config 0", "temporal_workflow_completed", "temporal_activity_"},
	} {
		// The server knows that a workflow ended a moment before its worker counts it.
		s.eventually("GET "+path+" has all", func() error {
			code, body := s.http(http.MethodGet, s.worker.URL+path, "")
			for _, want := range wants {
				if code != http.StatusOK || !strings.Contains(body, want) {
					return fmt.Errorf("GET %s: %d, without %s", path, code, want)
				}
			}
			return nil
		})
	}
	if code, body := s.http(http.MethodPut, s.worker.AdminURL+"/loglevel", "debug"); code != http.StatusOK || strings.TrimSpace(body) != "DEBUG" {
		t.Errorf("PUT /loglevel: %d %q", code, body)
	}
	if code, _ := s.http(http.MethodPut, s.worker.AdminURL+"/loglevel", "loud"); code != http.StatusBadRequest {
		t.Errorf("PUT /loglevel of nonsense: %d", code)
	}
	if code, _ := s.http(http.MethodPut, s.worker.URL+"/loglevel", "debug"); code == http.StatusOK {
		t.Error("whoever sees the metrics changes the log level")
	}
	if strings.Contains(s.logOf(s.worker), "level=DEBUG") {
		t.Error("it logged at level debug before")
	}
	s.done(s.readyNow("worker-01"))
	s.eventually("it logs at level debug", func() error {
		if !strings.Contains(s.logOf(s.worker), "level=DEBUG") {
			return errors.New("it does not")
		}
		return nil
	})
}

func (s *site) http(method, url, body string) (code int, answer string) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.ctx, method, url, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return response.StatusCode, string(data)
}

func TestAWorkerRefusesABadConfiguration(t *testing.T) {
	s := prepareSite(t, "")
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
		s.options.Config = config
		w, err := devstack.LaunchWorker(s.nextWorker())
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Ready(s.ctx); err == nil {
			w.Kill()
			t.Errorf("%q is accepted", config)
		}
		if status := w.ExitStatus(); status != 2 {
			t.Errorf("%q: exit status %d, want 2", config, status)
		}
		for _, name := range names {
			if said := s.logOf(w); !strings.Contains(said, name) {
				t.Errorf("%q: it does not name %s but says\n%s", config, name, said)
			}
		}
	}
}

func TestAWorkerWaitsForTemporal(t *testing.T) {
	s := prepareSite(t, "")
	cable := s.newCable(shared.temporal.Address)
	s.options.Environment = []string{"TEMPORAL_ADDRESS=" + cable.address}
	var err error
	if s.worker, err = devstack.LaunchWorker(s.nextWorker()); err != nil {
		t.Fatal(err)
	}
	s.eventually("it says what it waits for", func() error {
		if said := s.logOf(s.worker); !strings.Contains(said, "not reachable") || !strings.Contains(said, "TEMPORAL_ADDRESS") {
			return errors.New(said)
		}
		return nil
	})
	if code, _ := s.http(http.MethodGet, s.worker.URL+"/healthz", ""); code != http.StatusOK {
		t.Errorf("GET /healthz: %d, want it to live", code)
	}
	if code, _ := s.http(http.MethodGet, s.worker.URL+"/readyz", ""); code != http.StatusServiceUnavailable {
		t.Errorf("GET /readyz: %d, want it not to be ready", code)
	}
	s.connect(cable)
	if err := s.worker.Ready(s.ctx); err != nil {
		t.Fatal(err)
	}
	s.state()
	s.done(s.readyNow("worker-01"))
}

func TestConfiguredDefaultsTakeEffect(t *testing.T) {
	s := newSite(t, "defaults: {drain: {deleteEmptyDir: true, force: true}, readyTimeout: 7m, reason: standing order}")
	ns := s.namespace()
	bare := s.pod(ns, "bare", "worker-01", withEmptyDir)
	run := s.begin("worker-01")
	spec := s.until(run, api.Ready).Spec
	s.untilGone(*bare)
	if spec.ReadyTimeout.Std() != 7*time.Minute || spec.Reason != "standing order" || spec.Drain.Mode != "evict" {
		t.Errorf("spec = %+v", spec)
	}
	s.done(run)

	// The input goes over them, field by field.
	s.pod(ns, "scratch", "worker-02", withEmptyDir)
	run = s.beginWith("worker-02", `"drain":{"deleteEmptyDir":false},"reason":"mine"`)
	status := s.untilStatus(run, "blocked", func(status api.Status) bool {
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
		Dir: filepath.Join(shared.dir, "bare-temporal"), Args: []string{"--search-attribute", api.AttributeNode.GetName() + "=Text"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(temporal.Process) })
	s := prepareSiteOf(t, shared.lanes.take(t), temporal, "")
	s.startWorker()
	before := s.imprint("worker-01")
	run := s.readyNow("worker-01")
	s.mustShow("worker-01", run.GetRunID(), api.Ready)
	s.exits(s.drydock("list"), 0, "worker-01")

	// This server is nobody else's, so it is the one to be killed.
	temporal.Kill()
	if err := temporal.Start(s.ctx); err != nil {
		t.Fatal(err)
	}
	s.done(run)
	s.back("worker-01", before)
}
