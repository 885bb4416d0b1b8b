// Package heartbeat keeps an activity alive, and ends it when another attempt may have taken over.
package heartbeat

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"

	"drydock.dev/drydock/activities/failure"
)

// UntilWorkerStops heartbeats until stopped, and cancels its context when the worker stops.
func UntilWorkerStops(ctx context.Context) (context.Context, func()) {
	ctx, _, stop := WithDetails(ctx)
	return ctx, stop
}

// WithDetails is UntilWorkerStops with details that an earlier attempt left, and the loop that shows further ones.
func WithDetails(ctx context.Context, details ...any) (context.Context, *Loop, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	loop := Start(ctx, details...)
	go func() {
		select {
		case <-activity.GetWorkerStopChannel(ctx):
			cancel(failure.WorkerStopping())
		case <-ctx.Done():
		}
	}()
	return ctx, loop, func() {
		cancel(nil)
		loop.Stop()
	}
}

const (
	// Every is how often a long activity shows that it lives; heartbeats time out after 10 s.
	Every = 2 * time.Second
	// silence is how long an activity may go without a heartbeat and still write. After 10 s the server begins another
	// attempt, and a heartbeat may have waited in the SDK for Every before it was sent, in vain.
	silence = 7 * time.Second
	// freshFor is how old a task may be whose first heartbeat waits for its turn. With the longest interval the server still
	// hears of it in time.
	freshFor = time.Second
	// beatsTogether is how many activities of a worker may beat that often: each heartbeat is a write of Temporal's
	// database. Where there are more, each beats less often, down to half as often.
	beatsTogether = 50
	// shortTimeout is the heartbeat timeout that all this is for. An activity with a longer one only watches: it beats three times
	// within its timeout.
	shortTimeout = 10 * time.Second
)

// WatchTimeout is the heartbeat timeout of a watch that is begun seldom: a worker that starts takes over from a dead one, so that the
// timeout matters where no worker starts, and each heartbeat is billed.
const WatchTimeout = 30 * time.Second

// running are the loops of this process.
var running atomic.Int64

// interval is how often each loop beats where there are so many.
func interval(loops int64) time.Duration {
	return min(max(Every, Every*time.Duration(loops)/beatsTogether), 2*Every)
}

// intervalOf is how often an activity with a heartbeat timeout beats where there are so many loops.
func intervalOf(timeout time.Duration, loops int64) time.Duration {
	if timeout > shortTimeout {
		return timeout / 3
	}
	return interval(loops)
}

// Loop shows that an activity lives, from a goroutine of its own: whatever a step waits for, the server learns
// that the activity lives, and the activity of its cancellation. Once the server may not have got a heartbeat for too long, it is not alive
// any more: another attempt may be under way. A nil loop is always alive.
type Loop struct {
	// beating guards details, and keeps heartbeats in the order of what they tell.
	beating sync.Mutex
	details []any
	// news: the details were not sent yet.
	news bool

	// acks know what the server answers; nil trusts every heartbeat that was recorded.
	acks *Acks
	// timeout is the activity's heartbeat timeout.
	timeout time.Duration

	mu sync.Mutex
	// last is when the last heartbeat was sent that the server took, recorded when the last was recorded.
	last, recorded time.Time
	// lost: there was no heartbeat for too long. It stays true, even if another attempt has begun in the meantime.
	lost bool

	ending, ended chan struct{}
}

// Start begins with details that an earlier attempt left, if any: a heartbeat without them would erase those.
func Start(ctx context.Context, details ...any) *Loop {
	now, fresh := time.Now(), isFresh(ctx)
	l := &Loop{
		details: details, last: now, acks: acksOf(ctx), timeout: activity.GetInfo(ctx).HeartbeatTimeout,
		ending: make(chan struct{}), ended: make(chan struct{}),
	}
	if fresh {
		l.recorded = now
	}
	running.Add(1)
	forget := l.acks.follow(activity.GetInfo(ctx).TaskToken, l)
	go func() {
		defer close(l.ended)
		defer running.Add(-1)
		defer forget()
		for ; ; fresh = false {
			if !fresh {
				l.beat(ctx)
			}
			next := time.NewTimer(intervalOf(l.timeout, running.Load()))
			select {
			case <-next.C:
			case <-l.ending:
				next.Stop()
				if l.hasNews() {
					l.beat(ctx) // what the next attempt begins with
				}
				return
			}
		}
	}()
	return l
}

// isFresh reports whether the server handed the task out a moment ago, so that it knows that the activity lives: one that ends soon
// costs no heartbeat. A task that arrived late may be another attempt's by now; a heartbeat shows that.
func isFresh(ctx context.Context) bool {
	age := time.Since(activity.GetInfo(ctx).StartedTime)
	return age >= 0 && age < freshFor
}

// Forget drops what was not sent yet: the activity has succeeded, and no attempt follows that would begin with it.
func (l *Loop) Forget() {
	l.beating.Lock()
	defer l.beating.Unlock()
	l.news = false
}

// Stop ends the heartbeats, with one more where the details were not sent yet.
func (l *Loop) Stop() {
	close(l.ending)
	<-l.ended
}

// Show changes what the heartbeats tell.
func (l *Loop) Show(ctx context.Context, details ...any) {
	if l == nil {
		return
	}
	l.beating.Lock()
	l.details, l.news = details, true
	l.beating.Unlock()
	if l.isDue() {
		l.beat(ctx)
	}
}

func (l *Loop) hasNews() bool {
	l.beating.Lock()
	defer l.beating.Unlock()
	return l.news
}

// isDue reports whether what is new is sent at once, and not with the next heartbeat.
func (l *Loop) isDue() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.recorded) >= intervalOf(l.timeout, running.Load())
}

func (l *Loop) beat(ctx context.Context) {
	l.beating.Lock()
	defer l.beating.Unlock()
	at := time.Now()
	// An activity that is cancelled lives on while it tidies up.
	activity.RecordHeartbeat(context.WithoutCancel(ctx), l.details...)
	l.news = false
	l.mu.Lock()
	l.recorded = at
	l.mu.Unlock()
	if l.acks == nil && time.Since(at) < Every { // so long takes only what the SDK gave up, without a word
		l.acknowledged(at)
	}
}

// acknowledged notes that the server took a heartbeat that was sent then.
func (l *Loop) acknowledged(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at.After(l.last) {
		l.lost = l.lost || at.Sub(l.last) > silence
		l.last = at
	}
}

// Alive reports whether the activity may still write. One that watches, with a longer timeout than shortTimeout, does not ask.
func (l *Loop) Alive() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost || time.Since(l.last) > silence {
		return fmt.Errorf("no heartbeat for more than %s: another attempt may be under way", silence)
	}
	return nil
}
