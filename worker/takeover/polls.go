package takeover

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"

	"drydock.dev/drydock/api"
)

const (
	// checkEvery is the interval between checks for workers that do not poll any more.
	checkEvery = 5 * time.Second
	// silentAfter is when a worker counts as dead that does not poll. A poll that gets no task ends after a minute, and the next one begins:
	// a worker that lives is never silent for longer, as far as one check can see.
	silentAfter = time.Minute + checkEvery
	// againAfter is the interval between attempts to begin watches anew.
	againAfter = 30 * time.Second
	// askWithin bounds a question about the pollers of a queue.
	askWithin = 10 * time.Second
	// forgetAfter is when a dead worker is forgotten. The server shows it for 5 minutes.
	forgetAfter = 10 * time.Minute
)

// watch begins the watches of workers anew that do not poll any more, until ctx ends.
func (w Worker) watch(ctx context.Context) {
	seen := polls{}
	var dead silent
	for pause := checkEvery; ; {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pollers, err := w.pollers(ctx)
		if err != nil {
			seen.excuse(time.Now())
			continue
		}
		dead = append(dead, seen.take(pollers, time.Now())...)
		dead = slices.DeleteFunc(dead, func(identity string) bool { return identity == w.Identity || !seen[identity].dead })
		if pause = checkEvery; len(dead) == 0 {
			continue
		}
		began, err := newPass(w, dead).run(ctx)
		if err != nil {
			pause = againAfter
			w.Logger.Warn("the watches of dead workers could not all be begun anew", "workers", []string(dead), "error", err, "again", pause)
			continue
		}
		w.Logger.Info("workers do not poll any more: began their watches anew", "workers", []string(dead), "watches", began)
		dead = nil
	}
}

// pollers are those of this worker's task queues. All of them are asked: where a queue has several partitions, the server shows who polls one.
func (w Worker) pollers(ctx context.Context) (all []*taskqueuepb.PollerInfo, err error) {
	queues := []string{w.TaskQueue}
	for _, lane := range api.Lanes {
		queues = append(queues, lane.Queue(w.TaskQueue))
	}
	for _, queue := range queues {
		found, err := w.pollersOf(ctx, queue)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func (w Worker) pollersOf(ctx context.Context, queue string) ([]*taskqueuepb.PollerInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	described, err := w.Temporal.DescribeTaskQueue(ctx, queue, enums.TASK_QUEUE_TYPE_ACTIVITY)
	return described.GetPollers(), err
}

// polls are the latest polls of workers, by identity.
type polls map[string]lastPoll

// lastPoll is when a worker polled last: by the server's clock, and when this worker saw it, by its own.
type lastPoll struct {
	at, seen time.Time
	dead     bool
}

// excuse counts the silence of workers that live anew: where the server does not answer, they cannot poll either.
func (p polls) excuse(now time.Time) {
	for identity, last := range p {
		if !last.dead {
			last.seen = now
			p[identity] = last
		}
	}
}

// take takes who polls, and returns the workers that have stopped polling, each once.
func (p polls) take(pollers []*taskqueuepb.PollerInfo, now time.Time) (dead silent) {
	for _, poller := range pollers {
		last, known := p[poller.GetIdentity()]
		if at := poller.GetLastAccessTime().AsTime(); !known || at.After(last.at) {
			p[poller.GetIdentity()] = lastPoll{at: at, seen: now}
		}
	}
	for _, identity := range slices.Sorted(maps.Keys(p)) {
		last := p[identity]
		switch age := now.Sub(last.seen); {
		case age > forgetAfter:
			delete(p, identity)
		case age >= silentAfter && !last.dead:
			last.dead = true
			p[identity] = last
			dead = append(dead, identity)
		}
	}
	return dead
}
