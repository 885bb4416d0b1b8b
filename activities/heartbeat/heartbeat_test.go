package heartbeat

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"drydock/activities/activitytest"
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
