package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/starter/show"
)

// soon is the next full minute that is far enough away for a test to see a window closed before.
func soon() time.Time {
	return time.Now().UTC().Add(time.Minute).Truncate(time.Minute).Add(time.Minute)
}

// quiet waits until nothing of the scheduler's is under way: whoever waits for a window costs nothing.
func (s *site) quiet() {
	s.Helper()
	s.eventually("nothing watches the cluster", func() error {
		described, err := s.temporal.DescribeWorkflowExecution(s.ctx, api.SchedulerID(s.cluster), "")
		if err == nil && len(described.PendingActivities) > 0 {
			err = fmt.Errorf("%s is under way", described.PendingActivities[0].ActivityType.Name)
		}
		return err
	})
}

// windowNow asks a worker for one window.
func (s *site) windowNow(name string) show.Window {
	s.Helper()
	var told show.Windows
	if err := json.Unmarshal([]byte(s.mustDrydock("windows", name, "-o", "json")), &told); err != nil || len(told.Windows) != 1 {
		s.Fatalf("%+v: %v", told, err)
	}
	return told.Windows[0]
}

// TestWindows has a window open and another one close, at the same minute, while maintenances wait for them, run and ignore
// them.
func TestWindows(t *testing.T) {
	slow(t)
	s := prepareSite(t, "") // which takes its time
	opens := soon()
	far := opens.AddDate(0, 6, 0)
	s.options.Config += fmt.Sprintf(`
windows:
  soon: {from: %q, to: %q}
  closing: {from: %q, to: %[1]q}
  far: {cron: "0 0 1 %[4]d *", for: 1h, timezone: Asia/Kathmandu}
scheduler:
  maxParallel: 5
  groups: [{name: some, nodeSelector: "e2e-windows=some", windows: [far]}]
`, opens.Format("15:04"), opens.Add(time.Hour).Format("15:04"), opens.Add(-2*time.Hour).Format("15:04"), far.Month())
	s.startWorker()
	s.environment = append(s.environment, "TZ=Asia/Tokyo")
	s.patchNode("worker-04", `{"metadata":{"labels":{"e2e-windows":"some"}}}`)
	t.Cleanup(func() { s.patchNode("worker-04", `{"metadata":{"labels":{"e2e-windows":null}}}`) })

	s.mustDrydock("start", "worker-01", "--window", "soon")
	waits := s.runOf("worker-01")
	s.waitsFor(waits, "window soon opens "+opens.Format(time.RFC3339))
	inGroup := s.begin("worker-04")
	s.waitsFor(inGroup, "window far does not open before ")
	s.mustDrydock("start", "worker-03", "--window", "closing", "--expected-duration", "30m")
	tooLong := s.runOf("worker-03")
	s.waitsFor(tooLong, "window closing closes at "+opens.Format(time.RFC3339)+", before the expected 30m0s are over")
	s.quiet()
	s.exits(s.drydock("status", "worker-01"), 0, "window soon opens "+opens.In(time.FixedZone("JST", 9*60*60)).Format("15:04:05 MST")[:5])
	s.exits(s.drydock("limits"), 0, "WINDOWS", "window soon opens", " JST")
	if w := s.windowNow("soon"); w.Open || len(w.Openings) != api.DefaultNextOpenings || !w.Openings[0].From.Equal(opens) {
		t.Errorf("windows tells %+v", w)
	}

	s.mustDrydock("start", "worker-05", "--window", "closing", "--wait")
	runs := s.runOf("worker-05")

	s.within(time.Until(opens)+patience, "the window opens", func() error {
		status, err := s.status(waits)
		if err == nil && status.Phase != api.Ready {
			err = errors.New(string(status.Phase))
		}
		return err
	})
	if granted := s.mustStatus(waits).Slot.GrantedAt; granted == nil || granted.Before(opens) {
		t.Errorf("granted %v, the window opened %s", granted, opens)
	}
	if s.windowNow("closing").Open || !s.windowNow("soon").Open {
		t.Error("one window opened before the other closed")
	}
	s.waitsFor(tooLong, "window closing opens "+opens.Add(-2*time.Hour).AddDate(0, 0, 1).Format(time.RFC3339))
	if phase := s.mustStatus(runs).Phase; phase != api.Ready {
		t.Errorf("when its window closes, what runs is %s", phase)
	}
	if touched := s.touched(); strings.Contains(fmt.Sprint(touched), "worker-03") || strings.Contains(fmt.Sprint(touched), "worker-04") {
		t.Errorf("touched: %+v", touched)
	}
	s.done(waits)
	s.done(runs)

	// Neither is what ignores windows held up, nor what has none.
	s.exits(s.drydock("windows"), 0, "far", "Asia/Kathmandu", "group some")
	s.exits(s.drydock("windows", "gone"), 1, `the worker's configuration has no window "gone"`)
	s.mustDrydock("start", "worker-02", "--window", "far", "--ignore-windows", "the disk burns", "--wait")
	s.done(s.runOf("worker-02"))
	s.exits(s.drydock("start", "worker-06", "--window", "gone"), 2, `windows[0]: the worker's configuration has no window "gone" (windows)`)
	s.exits(s.drydock("start", "worker-06", "--ignore-windows", ""), 2, "--ignore-windows: required")
}

// TestLimitsOfTheClusterHaveWindows changes the windows of the limits while somebody waits, and those of the configuration.
func TestLimitsOfTheClusterHaveWindows(t *testing.T) {
	far := time.Now().UTC().AddDate(0, 6, 0)
	config := func(name string) string {
		return fmt.Sprintf("windows: {far: {cron: \"0 0 1 %d *\", for: 1h}, %s: {from: \"00:00\", to: \"24:00\"}}\nscheduler: {windows: [far]}\n", far.Month(), name)
	}
	s := newSite(t, config("always"))
	run := s.begin("worker-01")
	s.waitsFor(run, "window far does not open before ")
	s.exits(s.drydock("limits", "diff", "--config", s.file("worker.yaml", "windows: [always]\nmaxParallel: 1\n")), 1, "windows", "far", "always")
	s.mustDrydock("limits", "set", "--window", "later", "--comment", "the next configuration has it")
	s.waitsFor(run, "the worker's configuration has no window later")
	s.quiet()

	// A worker whose configuration has it tells the scheduler.
	old := s.worker
	s.options.Config = "cluster: " + s.cluster + "\n" + config("later")
	s.startWorker()
	old.Kill()
	s.eventually("the scheduler hears of the new window", func() error {
		status, err := s.status(run) // the worker that is asked may be the one that was killed
		if err == nil && status.Phase != api.Ready {
			err = errors.New(string(status.Phase))
		}
		return err
	})
	s.done(run)
	s.mustDrydock("limits", "set", "--no-windows")
	if state := s.state(); len(state.Limits.Windows) != 0 {
		t.Errorf("limits %+v", state.Limits)
	}
}
