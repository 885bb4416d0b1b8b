package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

// soon is the next full minute that is far enough away for a test to see a window closed before.
func soon() time.Time {
	return time.Now().UTC().Add(time.Minute).Truncate(time.Minute).Add(time.Minute)
}

// quiet waits until nothing of the scheduler's is under way: whoever waits for a window costs nothing.
func quiet(s *site.Site) {
	s.Helper()
	s.Eventually("nothing watches the cluster", func() error {
		described, err := s.Temporal.DescribeWorkflowExecution(s.Ctx, api.SchedulerID(s.Cluster), "")
		if err == nil && len(described.PendingActivities) > 0 {
			err = fmt.Errorf("%s is under way", described.PendingActivities[0].ActivityType.Name)
		}
		return err
	})
}

// windowNow asks a worker for one window.
func windowNow(s *site.Site, name string) api.Window {
	s.Helper()
	var told api.Windows
	if err := json.Unmarshal([]byte(s.MustDrydock("windows", name, "-o", "json")), &told); err != nil || len(told.Windows) != 1 {
		s.Fatalf("%+v: %v", told, err)
	}
	return told.Windows[0]
}

// TestSlowWindows has a window open and another one close, at the same minute, while maintenances wait for them, run and ignore
// them.
func TestSlowWindows(t *testing.T) {
	s := site.Prepare(t, "") // which takes its time
	opens := soon()
	far := opens.AddDate(0, 6, 0)
	s.Options.Config += fmt.Sprintf(`
windows:
  soon: {from: %q, to: %q}
  closing: {from: %q, to: %[1]q}
  far: {cron: "0 0 1 %[4]d *", for: 1h, timezone: Asia/Kathmandu}
scheduler:
  maxParallel: 5
  groups: [{name: some, nodeSelector: "e2e-windows=some", windows: [far]}]
`, opens.Format("15:04"), opens.Add(time.Hour).Format("15:04"), opens.Add(-2*time.Hour).Format("15:04"), far.Month())
	s.StartWorker()
	s.Environment = append(s.Environment, "TZ=Asia/Tokyo")
	s.PatchNode("worker-04", `{"metadata":{"labels":{"e2e-windows":"some"}}}`)
	t.Cleanup(func() { s.PatchNode("worker-04", `{"metadata":{"labels":{"e2e-windows":null}}}`) })

	s.MustDrydock("start", "worker-01", "--window", "soon")
	waits := s.RunOf("worker-01")
	s.WaitsFor(waits, "window soon opens "+opens.Format(time.RFC3339))
	inGroup := s.Begin("worker-04")
	s.WaitsFor(inGroup, "window far does not open before ")
	s.MustDrydock("start", "worker-03", "--window", "closing", "--expected-duration", "30m")
	tooLong := s.RunOf("worker-03")
	s.WaitsFor(tooLong, "window closing closes at "+opens.Format(time.RFC3339)+", before the expected 30m0s are over")
	quiet(s)
	s.Exits(s.Drydock("status", "worker-01"), 0, "window soon opens "+opens.In(time.FixedZone("JST", 9*60*60)).Format("15:04:05 MST")[:5])
	s.Exits(s.Drydock("limits"), 0, "WINDOWS", "window soon opens", " JST")
	if w := windowNow(s, "soon"); w.Open || len(w.Openings) != api.DefaultNextOpenings || !w.Openings[0].From.Equal(opens) {
		t.Errorf("windows tells %+v", w)
	}

	s.MustDrydock("start", "worker-05", "--window", "closing", "--wait")
	runs := s.RunOf("worker-05")

	s.Within(time.Until(opens)+site.Patience, "the window opens", func() error {
		status, err := s.Status(waits)
		if err == nil && status.Phase != api.Ready {
			err = errors.New(string(status.Phase))
		}
		return err
	})
	if granted := s.MustStatus(waits).Slot.GrantedAt; granted == nil || granted.Before(opens) {
		t.Errorf("granted %v, the window opened %s", granted, opens)
	}
	if windowNow(s, "closing").Open || !windowNow(s, "soon").Open {
		t.Error("one window opened before the other closed")
	}
	s.WaitsFor(tooLong, "window closing opens "+opens.Add(-2*time.Hour).AddDate(0, 0, 1).Format(time.RFC3339))
	if phase := s.MustStatus(runs).Phase; phase != api.Ready {
		t.Errorf("when its window closes, what runs is %s", phase)
	}
	if touched := s.Touched(); strings.Contains(fmt.Sprint(touched), "worker-03") || strings.Contains(fmt.Sprint(touched), "worker-04") {
		t.Errorf("touched: %+v", touched)
	}
	s.Done(waits)
	s.Done(runs)

	// Neither is what ignores windows held up, nor what has none.
	s.Exits(s.Drydock("windows"), 0, "far", "Asia/Kathmandu", "group some")
	s.Exits(s.Drydock("windows", "gone"), 1, `the worker's configuration has no window "gone"`)
	s.MustDrydock("start", "worker-02", "--window", "far", "--ignore-windows", "the disk burns", "--wait")
	s.Done(s.RunOf("worker-02"))
	s.Exits(s.Drydock("start", "worker-06", "--window", "gone"), 2, `windows[0]: the worker's configuration has no window "gone" (windows)`)
	s.Exits(s.Drydock("start", "worker-06", "--ignore-windows", ""), 2, "--ignore-windows: required")
}

// TestLimitsOfTheClusterHaveWindows changes the windows of the limits while somebody waits, and those of the configuration.
func TestLimitsOfTheClusterHaveWindows(t *testing.T) {
	far := time.Now().UTC().AddDate(0, 6, 0)
	config := func(name string) string {
		return fmt.Sprintf("windows: {far: {cron: \"0 0 1 %d *\", for: 1h}, %s: {from: \"00:00\", to: \"24:00\"}}\nscheduler: {windows: [far]}\n", far.Month(), name)
	}
	s := site.New(t, config("always"))
	run := s.Begin("worker-01")
	s.WaitsFor(run, "window far does not open before ")
	s.Exits(s.Drydock("limits", "diff", "--config", s.File("worker.yaml", "windows: [always]\nmaxParallel: 1\n")), 1, "windows", "far", "always")
	s.MustDrydock("limits", "set", "--window", "later", "--comment", "the next configuration has it")
	s.WaitsFor(run, "the worker's configuration has no window later")
	quiet(s)

	// A worker whose configuration has it tells the scheduler.
	old := s.Worker
	s.Options.Config = "cluster: " + s.Cluster + "\n" + config("later")
	s.StartWorker()
	old.Kill()
	s.Eventually("the scheduler hears of the new window", func() error {
		status, err := s.Status(run) // the worker that is asked may be the one that was killed
		if err == nil && status.Phase != api.Ready {
			err = errors.New(string(status.Phase))
		}
		return err
	})
	s.Done(run)
	s.MustDrydock("limits", "set", "--no-windows")
	if state := s.State(); len(state.Limits.Windows) != 0 {
		t.Errorf("limits %+v", state.Limits)
	}
}
