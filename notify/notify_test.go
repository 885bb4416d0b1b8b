package notify_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"drydock/notify"
	"drydock/rules/notices"
	"drydock/rules/spec"
)

func event(state notices.State) notices.Event {
	return notices.Event{
		ID: "node-maintenance/worker-1/ops/run/3", Sequence: 3, State: state, At: time.Date(2026, 3, 10, 10, 0, 0, 0, time.UTC),
		Node: "worker-1", Requestor: "ops.example.com", Owner: "team-a", Cluster: "eu", Reason: "new firmware", Ticket: "CHG-1", Type: "planned",
		Blockers: []string{"pod web/web-0: its budget allows no disruption"}, MoreBlockers: 2, WorkflowID: "node-maintenance/worker-1/ops", RunID: "run",
	}
}

func message(events ...notices.Event) notify.Message {
	return notify.Message{Events: events, Key: "node-maintenance/worker-1/ops/run/3/oncall"}
}

// secretFile writes a secret as Kubernetes mounts it.
func secretFile(t *testing.T, value string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(value+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func file(path string) string { return fmt.Sprintf(`{"file": %q}`, path) }

// parse reads channels as the worker's configuration does.
func parse(t *testing.T, format string, args ...any) (notify.Config, error) {
	t.Helper()
	var holder struct {
		Channels notify.Config `json:"channels"`
	}
	if err := spec.DecodeStrict(fmt.Appendf(nil, `{"channels": `+format+`}`, args...), &holder); err != nil {
		return nil, err
	}
	return holder.Channels, holder.Channels.Validate()
}

// senders makes the senders of one channel named oncall.
func senders(t *testing.T, format string, args ...any) *notify.Senders {
	t.Helper()
	cfg, err := parse(t, `{"oncall": `+format+`}`, args...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := notify.New(cfg, &recorder{}, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func deliver(t *testing.T, s *notify.Senders, m notify.Message) notify.Receipt {
	t.Helper()
	receipt, err := s.Send(t.Context(), "oncall", m)
	if err != nil {
		t.Fatal(err)
	}
	return receipt
}

// receiver is an HTTP server that keeps what it gets and answers as it is told.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	requests []received
	answer   func(w http.ResponseWriter, r received)
}

type received struct {
	method, path string
	header       http.Header
	body         []byte
}

func receive(t *testing.T, answer func(w http.ResponseWriter, r received)) *receiver {
	t.Helper()
	r := newReceiver(answer)
	r.Start()
	t.Cleanup(r.Close)
	return r
}

func newReceiver(answer func(w http.ResponseWriter, r received)) *receiver {
	r := &receiver{answer: answer}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		got := received{request.Method, request.URL.RequestURI(), request.Header.Clone(), body}
		r.mu.Lock()
		r.requests = append(r.requests, got)
		r.mu.Unlock()
		if r.answer != nil {
			r.answer(w, got)
		}
	}))
	r.Config.ErrorLog = log.New(io.Discard, "", 0) // of refused handshakes
	return r
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received(nil), r.requests...)
}

// last is the one request that was not looked at yet, by count.
func (r *receiver) last(t *testing.T, count int) received {
	t.Helper()
	all := r.all()
	if len(all) != count {
		t.Fatalf("%d requests, want %d", len(all), count)
	}
	return all[count-1]
}

// authority writes the certificate of a TLS server as a file.
func authority(t *testing.T, s *httptest.Server) string {
	t.Helper()
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// closedPort is an address that refuses connections.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// recorder is an API server's stand-in for Events.
type recorder struct {
	events []string
	err    error
}

func (r *recorder) EmitNodeEvent(_ context.Context, node, key, reason, message string, warning bool) error {
	if r.err == nil {
		r.events = append(r.events, fmt.Sprintf("%s %s %s warning=%v %s", node, key, reason, warning, message))
	}
	return r.err
}

// contains checks that every wanted piece is in the text.
func contains(t *testing.T, text string, pieces ...string) {
	t.Helper()
	for _, piece := range pieces {
		if !strings.Contains(text, piece) {
			t.Errorf("%q is not in:\n%s", piece, text)
		}
	}
}

func decode[T any](t *testing.T, data []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}
