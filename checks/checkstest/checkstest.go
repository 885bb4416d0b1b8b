// Package checkstest has what the tests of all kinds of checks and hooks need.
package checkstest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/sections"
)

// Subject is a node under maintenance.
var Subject = checks.Subject{
	Node: "worker-01", Requestor: "ops", Reason: "kernel", Ticket: "OPS-1", Cluster: "east", InternalIP: "127.0.0.1",
	WorkflowID: "node-maintenance/worker-01/ops", RunID: "run-1",
}

// File writes a file and returns its name.
func File(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Check is a check of one kind.
func Check(kind string, config checks.Checkable) checks.Check {
	return checks.Check{Actions: []sections.Chosen[checks.Checkable]{{Kind: kind, Config: config}}}
}

// Hook is a hook of one kind.
func Hook(kind string, config checks.Callable) checks.Hook {
	return checks.Hook{Actions: []sections.Chosen[checks.Callable]{{Kind: kind, Config: config}}}
}

// Cleanup is what undoes a hook, of one kind.
func Cleanup(kind string, config checks.Callable) *checks.Cleanup {
	return &checks.Cleanup{Actions: []sections.Chosen[checks.Callable]{{Kind: kind, Config: config}}}
}

// Seen is a server that keeps the requests it got.
type Seen struct {
	*httptest.Server
	mu     sync.Mutex
	Got    []*http.Request
	bodies []string
}

// Serve starts a server.
func Serve(t *testing.T, handler http.HandlerFunc) *Seen {
	t.Helper()
	s := &Seen{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading a request: %v", err)
		}
		s.mu.Lock()
		s.Got, s.bodies = append(s.Got, r), append(s.bodies, string(body))
		s.mu.Unlock()
		handler(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// Last is the last request, and its body.
func (s *Seen) Last(t *testing.T) (*http.Request, string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.Got) == 0 {
		t.Fatal("the server got no request")
	}
	return s.Got[len(s.Got)-1], s.bodies[len(s.bodies)-1]
}

// Answering always answers the same.
func Answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Runner makes the runner of a configuration without a cluster.
func Runner(t *testing.T, c checks.Config) *checks.Runner {
	t.Helper()
	r, err := checks.New(c, k8stest.NewFake(), "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	return r
}
