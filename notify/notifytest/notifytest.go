// Package notifytest has what the tests of all kinds of channels need: messages, receivers that keep what they get, and
// senders of one channel.
package notifytest

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

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/spec"
)

// Event is one with every field set.
func Event(state notices.State) notices.Event {
	return notices.Event{
		ID: "node-maintenance/worker-1/ops/run/3", Sequence: 3, State: state, At: time.Date(2026, 3, 10, 10, 0, 0, 0, time.UTC),
		Node: "worker-1", Requestor: "ops.example.com", Owner: "team-a", Cluster: "eu", Reason: "new firmware", Ticket: "CHG-1", Type: "planned",
		Blockers: []string{"pod web/web-0: its budget allows no disruption"}, MoreBlockers: 2, WorkflowID: "node-maintenance/worker-1/ops", RunID: "run",
	}
}

// Message is one of some events.
func Message(events ...notices.Event) notify.Message {
	return notify.Message{Events: events, Key: "node-maintenance/worker-1/ops/run/3/oncall"}
}

// SecretFile writes a secret as Kubernetes mounts it.
func SecretFile(t *testing.T, value string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(value+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// File is how a configuration names a file with a secret.
func File(path string) string { return fmt.Sprintf(`{"file": %q}`, path) }

// Parse reads channels as the worker's configuration does.
func Parse(t *testing.T, kinds notify.Kinds, format string, args ...any) (notify.Config, error) {
	t.Helper()
	var holder struct {
		Channels notify.Config `json:"channels"`
	}
	if err := spec.DecodeStrict(fmt.Appendf(nil, `{"channels": `+format+`}`, args...), &holder); err != nil {
		return nil, err
	}
	if err := holder.Channels.Decode(kinds); err != nil {
		return nil, err
	}
	return holder.Channels, holder.Channels.Validate()
}

// Senders makes the senders of one channel named oncall, of one of the kinds.
func Senders(t *testing.T, kinds notify.Kinds, format string, args ...any) *notify.Senders {
	t.Helper()
	cfg, err := Parse(t, kinds, `{"oncall": `+format+`}`, args...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := notify.New(cfg, &Recorder{}, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Deliver sends a message by the channel oncall.
func Deliver(t *testing.T, s *notify.Senders, m notify.Message) notify.Receipt {
	t.Helper()
	receipt, err := s.Send(t.Context(), "oncall", m)
	if err != nil {
		t.Fatal(err)
	}
	return receipt
}

// Receiver is an HTTP server that keeps what it gets and answers as the test says.
type Receiver struct {
	*httptest.Server
	mu       sync.Mutex
	requests []Received
	answer   func(w http.ResponseWriter, r Received)
}

// Received is one request.
type Received struct {
	Method, Path string
	Header       http.Header
	Body         []byte
}

// Receive starts a receiver; a nil answer says 200.
func Receive(t *testing.T, answer func(w http.ResponseWriter, r Received)) *Receiver {
	t.Helper()
	r := NewReceiver(answer)
	r.Start()
	t.Cleanup(r.Close)
	return r
}

// NewReceiver makes a receiver that is not started.
func NewReceiver(answer func(w http.ResponseWriter, r Received)) *Receiver {
	r := &Receiver{answer: answer}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		got := Received{request.Method, request.URL.RequestURI(), request.Header.Clone(), body}
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

// All are the requests so far.
func (r *Receiver) All() []Received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Received(nil), r.requests...)
}

// Last is the one request that was not looked at yet, by count.
func (r *Receiver) Last(t *testing.T, count int) Received {
	t.Helper()
	all := r.All()
	if len(all) != count {
		t.Fatalf("%d requests, want %d", len(all), count)
	}
	return all[count-1]
}

// Authority writes the certificate of a TLS server as a file.
func Authority(t *testing.T, s *httptest.Server) string {
	t.Helper()
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ClosedPort is an address that refuses connections.
func ClosedPort(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// Recorder is an API server's stand-in for Events.
type Recorder struct {
	Events []string
	Err    error
}

// EmitNodeEvent keeps the Event.
func (r *Recorder) EmitNodeEvent(_ context.Context, node, key, reason, message string, warning bool) error {
	if r.Err == nil {
		r.Events = append(r.Events, fmt.Sprintf("%s %s %s warning=%v %s", node, key, reason, warning, message))
	}
	return r.Err
}

// Contains checks that every wanted piece is in the text.
func Contains(t *testing.T, text string, pieces ...string) {
	t.Helper()
	for _, piece := range pieces {
		if !strings.Contains(text, piece) {
			t.Errorf("%q is not in:\n%s", piece, text)
		}
	}
}

// Decode reads JSON.
func Decode[T any](t *testing.T, data []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

// ContextWithCancel is cancelled when the test ends at the latest.
func ContextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}

// Topic is one of SNS.
const Topic = "arn:aws:sns:eu-central-1:123456789012:maintenance"

// AWS keeps the machine's own AWS configuration out of a test.
func AWS(t *testing.T) {
	t.Helper()
	for _, name := range []string{"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"} {
		t.Setenv(name, t.TempDir()+"/none")
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_CA_BUNDLE", "AWS_ENDPOINT_URL"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}
