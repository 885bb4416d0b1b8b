package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/record"
)

// hookNames are the hooks that a maintenance names, and what undoes the first of them.
var hookNames = []string{"before-cordon", "after-drain", "before-release", "closing"}

// receiver is what maintenances reach outside of Drydock: hooks and a check, a channel, and where audit records go. What
// arrives is told apart by the first run of the maintenance that it is about.
type receiver struct {
	server *httptest.Server

	mu     sync.Mutex
	called map[string]bool
	told   map[string][]notices.Event
	kept   map[string][]record.Record
	// said are the texts of profiles' notifications.
	said []string
	// wrong is what could not be read.
	wrong []error
}

func newReceiver() *receiver {
	r := &receiver{called: map[string]bool{}, told: map[string][]notices.Event{}, kept: map[string][]record.Record{}}
	r.server = httptest.NewServer(r)
	return r
}

// config is the part of a worker's configuration by which it reaches the receiver.
func (r *receiver) config() string {
	return fmt.Sprintf(`
channels:
  events: {default: true, webhook: {url: "%[1]s/events"}}
audit: {webhook: {url: "%[1]s/records"}}
hooks:
  before-cordon:
    http: {url: "%[1]s/hooks/{{.RunID}}/before-cordon"}
    closing: {http: {url: "%[1]s/hooks/{{.RunID}}/closing"}}
  after-drain: {http: {url: "%[1]s/hooks/{{.RunID}}/after-drain"}}
  beside: {blocking: false, deadline: 3s, http: {url: "%[1]s/refuse"}}
  before-release: {http: {url: "%[1]s/hooks/{{.RunID}}/before-release"}}
checks:
  fit: {http: {url: "%[1]s/checks/fit"}}
`, r.server.URL)
}

// ServeHTTP takes what comes, and is content with all but the hook that nobody waits for.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest) // its sender was killed in the middle of it
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch path := request.URL.Path; {
	case path == "/refuse":
		http.Error(w, "not today", http.StatusServiceUnavailable)
		return
	case strings.HasPrefix(path, "/hooks/"):
		r.called[strings.TrimPrefix(path, "/hooks/")] = true
	case path == "/events":
		if bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
			body = slices.Concat([]byte("["), body, []byte("]")) // one comes by itself
		}
		var events []struct {
			Data notices.Event `json:"data"`
		}
		if r.read(path, body, &events) {
			for _, event := range events {
				r.told[event.Data.RunID] = append(r.told[event.Data.RunID], event.Data)
			}
		}
	case path == "/said":
		var said struct {
			Text string `json:"text"`
		}
		if r.read(path, body, &said) {
			r.said = append(r.said, said.Text)
		}
	case path == "/records":
		var kept record.Record
		if r.read(path, body, &kept) {
			r.kept[kept.RunID] = append(r.kept[kept.RunID], kept)
		}
	}
	w.WriteHeader(http.StatusOK)
}

func (r *receiver) read(path string, body []byte, into any) bool {
	err := json.Unmarshal(body, into)
	if err != nil {
		r.wrong = append(r.wrong, fmt.Errorf("%s got what cannot be read: %w", path, err))
	}
	return err == nil
}

// wasTold reports whether a profile's notification with this text came.
func (r *receiver) wasTold(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.said, text)
}

// forget forgets the notifications that begin with the name of one of the nodes.
func (r *receiver) forget(nodes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = slices.DeleteFunc(r.said, func(text string) bool {
		node, _, _ := strings.Cut(text, " ")
		return slices.Contains(nodes, node)
	})
}

// heard says what is missing, or made up, of what the receiver got of a maintenance that was completed.
func (r *receiver) heard(run string, hooks []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	problems := r.wrong
	r.wrong = nil
	for _, name := range hooks {
		if !r.called[run+"/"+name] {
			problems = append(problems, fmt.Errorf("hook %s of run %s was not called", name, run))
		}
	}
	completed := false
	for _, event := range r.told[run] {
		completed = completed || event.State == notices.MaintenanceComplete
		if strings.Contains(event.Message+event.Reason, forged) {
			problems = append(problems, fmt.Errorf("a channel was told what was made up of run %s: %+v", run, event))
		}
	}
	if !completed {
		problems = append(problems, fmt.Errorf("a channel was told %d events of run %s, not the last", len(r.told[run]), run))
	}
	if len(r.kept[run]) == 0 {
		problems = append(problems, fmt.Errorf("no audit record of run %s was kept", run))
	}
	for _, kept := range r.kept[run] {
		if kept.Phase != string(api.Completed) || kept.Reason == forged {
			problems = append(problems, fmt.Errorf("the audit record of run %s says %s (%s)", run, kept.Phase, kept.Reason))
		}
	}
	return errors.Join(problems...)
}
