// Package heartbeat shows that an activity lives, and tells it when another attempt may have taken over.
package heartbeat

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"

	"drydock/activities/failure"
)

// alive heartbeats until stopped, and cancels its context when the worker stops.
func UntilWorkerStops(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	pulse := Start(ctx)
	go func() {
		select {
		case <-activity.GetWorkerStopChannel(ctx):
			cancel(failure.WorkerStopping())
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		pulse.Stop()
	}
}

const (
	// beatEvery is how often a long activity shows that it lives; heartbeats time out after 10 s.
	Every = 2 * time.Second
	// silence is how long an activity may go without a heartbeat and still write. After 10 s the server begins another
	// attempt, and a heartbeat may have waited in the SDK for beatEvery before it was sent, in vain.
	silence = 7 * time.Second
	// beatsTogether is how many activities of a worker may beat that often: each heartbeat is a write of Temporal's
	// database. Where there are more, each beats less often, down to half as often.
	beatsTogether = 50
)

// pulses are those of this process.
var running atomic.Int64

// beatInterval is how often each pulse beats where there are so many.
func interval(pulses int64) time.Duration {
	return min(max(Every, Every*time.Duration(pulses)/beatsTogether), 2*Every)
}

// pulse shows that an activity lives, from a goroutine of its own: whatever a step waits for, the server hears of the
// activity, and the activity of its cancellation. Once the server may not have heard of it for too long, it is not alive
// any more: another attempt may be under way. A nil pulse is always alive.
type Loop struct {
	// beating guards details, and keeps heartbeats in the order of what they tell.
	beating sync.Mutex
	details []any
	// news: the details were not told yet.
	news bool

	mu   sync.Mutex
	last time.Time
	// lost: there was no heartbeat for too long. It stays lost, whoever may have begun again in the meantime.
	lost bool

	ending, ended chan struct{}
}

// startPulse begins with details that an earlier attempt left, if any: a heartbeat without them would erase those.
func Start(ctx context.Context, details ...any) *Loop {
	p := &Loop{details: details, last: time.Now(), ending: make(chan struct{}), ended: make(chan struct{})}
	running.Add(1)
	go func() {
		defer close(p.ended)
		defer running.Add(-1)
		for {
			p.beat(ctx)
			next := time.NewTimer(interval(running.Load()))
			select {
			case <-next.C:
			case <-p.ending:
				next.Stop()
				if p.hasNews() {
					p.beat(ctx) // what the next attempt begins with
				}
				return
			}
		}
	}()
	return p
}

func (p *Loop) Stop() {
	close(p.ending)
	<-p.ended
}

// Show changes what the heartbeats tell.
func (p *Loop) Show(ctx context.Context, details any) {
	if p == nil {
		return
	}
	p.beating.Lock()
	p.details, p.news = []any{details}, true
	p.beating.Unlock()
	if p.isDue() {
		p.beat(ctx)
	}
}

func (p *Loop) hasNews() bool {
	p.beating.Lock()
	defer p.beating.Unlock()
	return p.news
}

// isDue tells whether what is new is told at once, and not with the next heartbeat.
func (p *Loop) isDue() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.last) >= interval(running.Load())
}

func (p *Loop) beat(ctx context.Context) {
	p.beating.Lock()
	defer p.beating.Unlock()
	at := time.Now()
	// An activity that is cancelled lives on while it tidies up.
	activity.RecordHeartbeat(context.WithoutCancel(ctx), p.details...)
	p.news = false
	if time.Since(at) >= Every {
		return // so long takes only what the SDK gave up, without a word
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = p.lost || at.Sub(p.last) > silence
	p.last = at
}

// Alive tells whether the activity may still write.
func (p *Loop) Alive() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost || time.Since(p.last) > silence {
		return fmt.Errorf("no heartbeat for more than %s: another attempt may be under way", silence)
	}
	return nil
}
