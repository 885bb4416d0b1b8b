package page

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// maxViewers bounds the connections by which pages come up to date.
	maxViewers = 200
	// lasts is how long a connection stays open: then its reader connects again, and has to be let through again.
	lasts = 10 * time.Minute
	// aliveEvery is how often such a connection shows that it lives, and staysWithin how long it may take to take that.
	aliveEvery  = 15 * time.Second
	staysWithin = 30 * time.Second
)

// viewers are the connections by which pages come up to date.
type viewers struct {
	places chan struct{}
	closed chan struct{}
	once   *sync.Once
}

func newViewers() viewers {
	return viewers{places: make(chan struct{}, maxViewers), closed: make(chan struct{}), once: &sync.Once{}}
}

func (v viewers) close() { v.once.Do(func() { close(v.closed) }) }

// serveLive sends an event whenever something has changed, as server-sent events. The page then loads itself again.
func (p *Page) serveLive(w http.ResponseWriter, r *http.Request) {
	select {
	case p.live.places <- struct{}{}:
		defer func() { <-p.live.places }()
	default:
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would keep the events to itself
	stream := http.NewResponseController(w)
	say := func(text string) error {
		// The server's own limit is for answers that end.
		if err := stream.SetWriteDeadline(time.Now().Add(staysWithin)); err != nil {
			return err
		}
		if _, err := fmt.Fprint(w, text); err != nil {
			return err
		}
		return stream.Flush()
	}
	said, alive, end := "", time.Time{}, time.Now().Add(lasts)
	tick := time.NewTicker(fresh)
	defer tick.Stop()
	for time.Now().Before(end) {
		// What cannot be read at the moment is no reason to close: the page says so when it loads.
		if page, err := p.read(r.Context()); err == nil && page.moving.digest != said {
			if say("data: "+page.moving.digest+"\n\n") != nil {
				return
			}
			said, alive = page.moving.digest, time.Now()
		}
		if time.Since(alive) > aliveEvery {
			if say(": alive\n\n") != nil {
				return
			}
			alive = time.Now()
		}
		select {
		case <-tick.C:
		case <-p.live.closed:
			return
		case <-r.Context().Done():
			return
		}
	}
}
