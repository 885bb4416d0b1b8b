package reporting

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/mocks"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
)

func blocker(i int, since time.Time) api.Blocker {
	return api.Blocker{Pod: fmt.Sprintf("default/p%d", i), Reason: "DisruptionBudget", Since: since}
}

func TestBlockedSetNamesWhatHasLasted(t *testing.T) {
	now := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	old, fresh := now.Add(-BlockedAfter), now.Add(-BlockedAfter+time.Millisecond)
	for name, c := range map[string]struct {
		blockers []api.Blocker
		want     string
	}{
		"none":           {nil, ""},
		"fresh":          {[]api.Blocker{blocker(1, fresh)}, ""},
		"old":            {[]api.Blocker{blocker(1, old)}, "default/p1=DisruptionBudget;"},
		"old and fresh":  {[]api.Blocker{blocker(1, old), blocker(2, fresh)}, "default/p1=DisruptionBudget;"},
		"another reason": {[]api.Blocker{{Pod: "default/p1", Reason: "Terminating", Since: old}}, "default/p1=Terminating;"},
	} {
		if got := blockedSet(api.DrainProgress{Blockers: c.blockers}, now); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestReporterSignalsABoundedNumberOfTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []time.Duration
		temporal := &mocks.Client{}
		start := time.Now()
		fail := false
		temporal.On("SignalWorkflow", mock.Anything, activitytest.WorkflowID, activitytest.RunID, "drain-blocked", mock.Anything).Return(
			func(context.Context, string, string, string, any) error {
				if fail {
					return errors.New("no server")
				}
				sent = append(sent, time.Since(start))
				return nil
			})
		r := Reporter{Temporal: temporal, Signal: "drain-blocked"}
		err := activitytest.ExecuteAs(t, activitytest.Environment(), "Drain", func(ctx context.Context) error {
			first := api.DrainProgress{Blockers: []api.Blocker{blocker(1, time.Now())}}
			for range 4 { // the same, again and again: reported once it has lasted
				r.Report(ctx, first)
				time.Sleep(time.Second)
			}
			if len(sent) != 1 || sent[0] != 2*time.Second {
				t.Errorf("signalled after %v", sent)
			}
			r.Report(ctx, api.DrainProgress{}) // nothing blocks any more: but not so soon
			if len(sent) != 1 {
				t.Errorf("signalled after %v", sent)
			}
			time.Sleep(signalEvery)
			fail = true
			r.Report(ctx, api.DrainProgress{})
			fail = false
			r.Report(ctx, api.DrainProgress{})
			if len(sent) != 2 {
				t.Errorf("what could not be said was not said again: %v", sent)
			}
			for i := range 100 {
				time.Sleep(signalEvery)
				r.Report(ctx, api.DrainProgress{Blockers: []api.Blocker{blocker(i, start)}})
			}
			return nil
		})
		if err != nil || len(sent) != maxBlockedSignals {
			t.Errorf("%d signals, error %v", len(sent), err)
		}
	})
}

func TestReporterSignalsCountsWhereTheWorkflowPassesThemOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		temporal := &mocks.Client{}
		var sent []int
		temporal.On("SignalWorkflow", mock.Anything, activitytest.WorkflowID, activitytest.RunID, "drain-blocked", mock.Anything).Return(
			func(_ context.Context, _, _, _ string, p any) error {
				sent = append(sent, p.(api.DrainProgress).Remaining)
				return nil
			})
		silent, telling := Reporter{Temporal: temporal, Signal: "drain-blocked"}, Reporter{Temporal: temporal, Signal: "drain-blocked", Counts: true}
		err := activitytest.ExecuteAs(t, activitytest.Environment(), "Drain", func(ctx context.Context) error {
			silent.Report(ctx, api.DrainProgress{At: time.Now(), Total: 9, Remaining: 9})
			telling.Report(ctx, api.DrainProgress{})
			for left := 9; left >= 0; left-- { // a pod goes every two seconds
				telling.Report(ctx, api.DrainProgress{At: time.Now(), Total: 9, Remaining: left})
				time.Sleep(2 * time.Second)
			}
			if got := fmt.Sprint(sent); got != "[8 3]" { // once it has lasted, and after twice the shortest pause
				t.Errorf("signalled %s", got)
			}
			for i := range 50 {
				telling.Report(ctx, api.DrainProgress{At: time.Now(), Total: 1000, Remaining: 1000 - i})
				time.Sleep(10 * time.Second)
			}
			if n := len(sent); n != 6 { // the pauses double
				t.Errorf("%d signals: %v", n, sent)
			}
			telling.counted = maxCountSignals
			time.Sleep(time.Minute)
			telling.Report(ctx, api.DrainProgress{At: time.Now(), Total: 1000, Remaining: 1})
			if len(sent) != 6 {
				t.Errorf("one more than it may send: %v", sent)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
