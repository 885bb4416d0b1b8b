package drain

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/api"
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

// Where the API server answers every request late, those under way do not pile up.
func TestRequestsThatAreOverdueAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := heldBack(0)
		s.Limiter.underWay = make(chan struct{}, 2)
		s.Limiter.overdue = make(chan struct{}, 3)
		round := &sending{sender: s}
		var underWay, answered atomic.Int32
		answers := make(chan struct{})
		for i := range 20 {
			go func() {
				leave, err := s.Limiter.Enter(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				defer leave()
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(strconv.Itoa(i))}}
				if _, err := round.await(t.Context(), target{Pod: pod}, func() error {
					underWay.Add(1)
					<-answers
					underWay.Add(-1)
					answered.Add(1)
					return nil
				}); err != nil {
					t.Error(err)
				}
			}()
		}
		time.Sleep(time.Minute)
		if n := underWay.Load(); n != 5 {
			t.Errorf("%d requests are under way", n)
		}
		close(answers)
		time.Sleep(time.Minute)
		s.underWay.Wait()
		if answered.Load() != 20 || len(s.Limiter.overdue) != 0 || len(s.Limiter.underWay) != 0 {
			t.Errorf("%d answers, %d overdue, %d under way", answered.Load(), len(s.Limiter.overdue), len(s.Limiter.underWay))
		}
	})
}
