package workflows_test

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/maintenance"
)

// TestFrozenHistoriesAreWhatTheyWere: a history that was changed to fit a new build would hide that real ones do not.
func TestFrozenHistoriesAreWhatTheyWere(t *testing.T) {
	releases, err := filepath.Glob(filepath.Join(recordings, "v*"))
	if err != nil || len(releases) == 0 {
		t.Fatalf("releases %v: %v", releases, err)
	}
	for _, release := range releases {
		want := sums(t, filepath.Join(release, "SHA256SUMS"))
		files, err := filepath.Glob(filepath.Join(release, "*.json.gz"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Base(file)
			if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != want[name] {
				t.Errorf("%s is not what SHA256SUMS says: %s, want %q", file, got, want[name])
			}
			delete(want, name)
		}
		if missing := slices.Sorted(maps.Keys(want)); len(missing) > 0 {
			t.Errorf("%s: deleted were %s", release, strings.Join(missing, ", "))
		}
	}
}

func sums(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	sums := map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		sum, name, found := strings.Cut(lines.Text(), "  ")
		if !found {
			t.Fatalf("%s: %q is no line of sha256sum", path, lines.Text())
		}
		sums[name] = sum
	}
	return sums
}

// newStep is a step that a later build adds before everything else.
func newStep(ctx workflow.Context) error { return workflow.Sleep(ctx, time.Second) }

// TestAStepWithoutAChangeIDIsCaught shows that the frozen histories notice a step that was added as if no maintenance were
// under way, and that one under a change ID of its own lets them go on.
func TestAStepWithoutAChangeIDIsCaught(t *testing.T) {
	unversioned := func(ctx workflow.Context, input, carried converter.RawValue) (api.Result, error) {
		if err := newStep(ctx); err != nil {
			return api.Result{}, err
		}
		return maintenance.NodeMaintenance(ctx, input, carried)
	}
	versioned := func(ctx workflow.Context, input, carried converter.RawValue) (api.Result, error) {
		if workflow.GetVersion(ctx, "new-step", workflow.DefaultVersion, 1) == 1 {
			if err := newStep(ctx); err != nil {
				return api.Result{}, err
			}
		}
		return maintenance.NodeMaintenance(ctx, input, carried)
	}
	caught, all := 0, 0
	for name, history := range recorded(t) {
		if kindOf(history) != api.NodeMaintenanceType {
			continue
		}
		all++
		if err := replayWith(t, versioned, history); err != nil {
			t.Errorf("%s does not go on with a step under a change ID: %v", name, err)
		}
		if err := replayWith(t, unversioned, history); err != nil {
			caught++
		}
	}
	if all == 0 || caught < all*9/10 {
		t.Errorf("a step without a change ID was caught by %d of %d histories", caught, all)
	}
}

func kindOf(history *historypb.History) string {
	return history.Events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName()
}

func replayWith(t *testing.T, changed any, history *historypb.History) error {
	t.Helper()
	replayer, err := worker.NewWorkflowReplayerWithOptions(replayed)
	if err != nil {
		t.Fatal(err)
	}
	replayer.RegisterWorkflowWithOptions(changed, workflow.RegisterOptions{Name: api.NodeMaintenanceType})
	return replayer.ReplayWorkflowHistoryWithOptions(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)), history, original(history))
}
