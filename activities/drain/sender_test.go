package drain

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock/activities/activitytest"
	"drydock/activities/heartbeat"
	"drydock/api"
)

// heldBack is a drain whose evictions the limiter holds back.
func heldBack(d time.Duration) (*sender, []target) {
	budgets := newBudgets(nil)
	s := &sender{Activities: &Activities{Limiter: NewLimiter(0)}, attempts: newAttempts(means{}, budgets, nil), budgets: budgets, unanswered: newUnanswered()}
	s.Limiter.Pause(d)
	var found []target
	for _, uid := range []types.UID{"1", "2", "3"} {
		found = append(found, target{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: string(uid), UID: uid}}})
	}
	return s, found
}

func TestDrainThatIsHeldBackShowsThatItLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := activitytest.Environment()
		var beats []time.Time
		env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
			var p api.DrainProgress
			if err := details.Get(&p); err != nil || p.Evicted != 7 {
				t.Errorf("heartbeat %+v, %v", p, err)
			}
			beats = append(beats, time.Now())
		})
		start := time.Now()
		err := activitytest.Execute(t, env, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
			defer cancel()
			heartbeats := heartbeat.Start(ctx, api.DrainProgress{Evicted: 7})
			defer heartbeats.Stop()
			s, found := heldBack(time.Hour)
			defer func() {
				if err := heartbeats.Alive(); err != nil {
					t.Error(err)
				}
			}()
			return s.send(ctx, found)
		})
		if err == nil || time.Since(start) != 5*time.Minute {
			t.Errorf("ended after %s: %v", time.Since(start), err)
		}
		last := start
		for _, at := range append(beats, start.Add(5*time.Minute)) {
			// Without a heartbeat timeout the SDK sends one in 30 s, however many there are.
			if at.Sub(last) > 30*time.Second {
				t.Errorf("no heartbeat for %s", at.Sub(last))
			}
			last = at
		}
	})
}

func TestDrainThatIsHeldBackLeavesAWorkerThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := activitytest.Environment()
		stop := make(chan struct{})
		env.SetWorkerStopChannel(stop)
		start := time.Now()
		time.AfterFunc(7*time.Second, func() { close(stop) })
		err := activitytest.Execute(t, env, func(ctx context.Context) error {
			s, found := heldBack(time.Hour)
			return s.send(ctx, found)
		})
		var cause *temporal.ApplicationError
		if !errors.As(err, &cause) || cause.Type() != api.ErrorWorkerStopping || cause.NonRetryable() {
			t.Errorf("error = %v", err)
		}
		if time.Since(start) != 7*time.Second {
			t.Errorf("ended after %s", time.Since(start))
		}
	})
}
