package main

import (
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
)

// receiver takes what channels, hooks and audit sinks send, and refuses some of it while it is moody.
type receiver struct {
	server *httptest.Server

	mu    sync.Mutex
	moody bool
	dice  *rand.Rand
	taken int
}

// refusedOf is how many calls of a hundred a moody receiver refuses.
const refusedOf = 15

func newReceiver(dice *rand.Rand) *receiver {
	r := &receiver{moody: true, dice: dice}
	r.server = httptest.NewServer(r)
	return r
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
