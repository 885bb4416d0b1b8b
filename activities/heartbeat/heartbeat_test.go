package heartbeat

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"drydock.dev/drydock/activities/activitytest"
)

func TestActivityThatStoodStillDoesNotWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for name, c := range map[string]struct {
			heartbeats *Loop
			alive      bool
		}{
			"none":       {nil, true},
			"fresh":      {&Loop{last: now.Add(-silence)}, true},
			"silent":     {&Loop{last: now.Add(-silence - time.Millisecond)}, false},
			"once again": {&Loop{last: now, lost: true}, false},
		} {
			if err := c.heartbeats.Alive(); (err == nil) != c.alive {
				t.Errorf("%s: error = %v", name, err)
			}
		}
		err := activitytest.Execute(t, activitytest.Environment(), func(ctx context.Context) error {
			p := &Loop{last: time.Now()}
			time.Sleep(silence)
			p.beat(ctx)
			if err := p.Alive(); err != nil {
				t.Error(err)
			}
			time.Sleep(silence + time.Second)
			p.beat(ctx)
			p.beat(ctx)
			if p.Alive() == nil {
				t.Error("a pause that another attempt may have begun in is forgotten")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestHeartbeatsAreAsRareAsTheTimeoutLetsThemBe(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		0: Every, shortTimeout: Every, WatchTimeout: WatchTimeout / 3,
	} {
		if got := intervalOf(timeout, 1); got != want {
			t.Errorf("timeout %s: every %s, want %s", timeout, got, want)
		}
	}
}

// TestShortActivityCostsNoHeartbeat: the server knows that an activity lives whose task it has just handed out, and what a
// successful one has to tell is in its result.
func TestShortActivityCostsNoHeartbeat(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(ctx context.Context, l *Loop)
		want int
	}{
		"ends at once":           {func(context.Context, *Loop) {}, 0},
		"ends with news":         {func(ctx context.Context, l *Loop) { l.Show(ctx, "news") }, 1},
		"succeeds with news":     {func(ctx context.Context, l *Loop) { l.Show(ctx, "news"); l.Forget() }, 0},
		"lasts":                  {func(context.Context, *Loop) { time.Sleep(Every + Every/2) }, 1},
		"has news once it lasts": {func(ctx context.Context, l *Loop) { l.Show(ctx, "news"); time.Sleep(Every + Every/2) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				heartbeats, env := 0, activitytest.Environment()
				env.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) { heartbeats++ })
				if err := activitytest.Execute(t, env, func(ctx context.Context) error {
					l := Start(ctx)
					c.do(ctx, l)
					l.Stop()
					return nil
				}); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if heartbeats != c.want {
					t.Errorf("%d heartbeats, want %d", heartbeats, c.want)
				}
			})
		})
	}
}
