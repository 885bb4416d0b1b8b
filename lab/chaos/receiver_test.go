package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"drydock.dev/drydock/api"
)

// TestReceiverTellsWhatIsMissingOrMadeUp posts what a worker would, and then something else in the place of one part.
func TestReceiverTellsWhatIsMissingOrMadeUp(t *testing.T) {
	const run = "6c8b6f0e-1d0c-4c5e-9d3e-5a0f4c9e2b11"
	good := map[string]string{
		"/events":  fmt.Sprintf(`{"id":"1","data":{"state":"MaintenanceComplete","runId":%q}}`, run),
		"/records": fmt.Sprintf(`{"runId":%q,"phase":"Completed"}`, run),
	}
	for _, name := range hookNames {
		good["/hooks/"+run+"/"+name] = "{}"
	}
	for _, c := range []struct {
		name string
		// instead is what is posted to a path, and what then is wrong; without a text, nothing is.
		path, instead, want string
	}{
		{name: "all is well"},
		{"a hook was not called", "/hooks/" + run + "/after-drain", "", "after-drain"},
		{"the last event is missing", "/events", fmt.Sprintf(`{"data":{"state":"MaintenanceStarted","runId":%q}}`, run), "not the last"},
		{"several events in one", "/events", fmt.Sprintf(`[{"data":{"state":"NodeHeld","runId":%[1]q}},{"data":{"state":"MaintenanceComplete","runId":%[1]q}}]`, run), ""},
		{"an event was made up", "/events", fmt.Sprintf(`{"data":{"state":"MaintenanceComplete","reason":%q,"runId":%q}}`, forged, run), "made up"},
		{"no record", "/records", "", "no audit record"},
		{"a record was made up", "/records", fmt.Sprintf(`{"runId":%q,"phase":"Failed"}`, run), "says Failed"},
		{"it is not JSON", "/records", "nonsense", "cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReceiver()
			defer r.server.Close()
			for path, body := range good {
				if path == c.path {
					body = c.instead
				}
				if body == "" {
					continue
				}
				answer := httptest.NewRecorder()
				r.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
				if answer.Code != http.StatusOK {
					t.Errorf("%s was answered %d", path, answer.Code)
				}
			}
			err := r.heard(run, hookNames)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("heard %v, want %q", err, c.want)
			}
		})
	}
}

// TestPoisonFitsIntoASignal: what the server itself refuses reaches nobody.
func TestPoisonFitsIntoASignal(t *testing.T) {
	e := execution{id: "node-maintenance/worker-01/chaos-1", node: "worker-01", first: newUUID()}
	all := append(append(toMaintenance(e, false), toMaintenance(e, true)...), toScheduler("worker-01")...)
	all = append(append(append(all, toCheck("worker-01")...), toRemediation()...), toProfiles()...)
	large, frozen := 0, 0
	for _, m := range all {
		payload, err := json.Marshal(m.payload)
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if len(payload) >= 2<<20 {
			t.Errorf("%s has %d bytes", m.name, len(payload))
		}
		if len(payload) > 500<<10 {
			large++
		}
		var notice api.FreezeNotice
		if m.name == api.SignalHold && json.Unmarshal(payload, &notice) == nil && notice.RequestID == e.first+"/1" {
			frozen++
		}
	}
	if large < 20 || frozen != 1 {
		t.Errorf("%d messages are large, and %d freeze the maintenance; want 20 at least, and 1", large, frozen)
	}
}
