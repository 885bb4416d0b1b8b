package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// receiver takes what channels, hooks and audit sinks send, and refuses some of it while it is moody.
type receiver struct {
	url    string
	server *http.Server

	mu    sync.Mutex
	moody bool
	dice  *rand.Rand
	taken int
}

// refusedOf is how many calls of a hundred a moody receiver refuses.
const refusedOf = 15

func newReceiver(ctx context.Context, dice *rand.Rand) (*receiver, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{url: "http://" + listener.Addr().String(), moody: true, dice: dice}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := r.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // nothing that is judged could be true after that
		}
	}()
	return r, nil
}

// ServeHTTP takes or refuses a call.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if _, err := io.Copy(io.Discard, request.Body); err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.moody && r.dice.IntN(100) < refusedOf {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	r.taken++
	w.WriteHeader(http.StatusOK)
}

// calm lets everything through from now on.
func (r *receiver) calm() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moody = false
}
