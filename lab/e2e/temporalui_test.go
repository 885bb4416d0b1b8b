package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"drydock.dev/drydock/api"
)

// tried sends a request as the Temporal UI does in a browser. Payloads are plain JSON.
func (s *site) tried(id, what string, body any) (string, error) {
	s.Helper()
	content, err := json.Marshal(body)
	if err != nil {
		s.Fatal(err)
	}
	target := shared.temporal.UI + "/api/v1/namespaces/default/workflows/" + url.PathEscape(id) + what
	request, err := http.NewRequestWithContext(s.ctx, http.MethodPost, target, bytes.NewReader(content))
	if err != nil {
		s.Fatal(err)
	}
	cookie := s.csrf()
	request.AddCookie(cookie)
	request.Header.Set("X-Csrf-Token", cookie.Value)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, answer)
	}
	return string(answer), err
}

// csrf is the cookie that the UI's server gives a browser, and wants to see again in a header.
func (s *site) csrf() *http.Cookie {
	s.Helper()
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, shared.temporal.UI+"/api/v1/settings", nil)
	if err != nil {
		s.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	for _, cookie := range response.Cookies() {
		if cookie.Name == "_csrf" {
			return cookie
		}
	}
	s.Fatalf("the UI gives no cookie: %s", response.Status)
	return nil
}

func (s *site) post(id, what string, body any) string {
	s.Helper()
	answer, err := s.tried(id, what, body)
	if err != nil {
		s.Fatalf("%s%s: %v", id, what, err)
	}
	return answer
}

// inputs are the arguments of a workflow, a signal, a query or an update.
type inputs map[string]any

// encoded are payloads as Temporal's API has them in JSON.
type encoded struct {
	Payloads []payload `json:"payloads"`
}

type payload struct {
	Metadata map[string][]byte `json:"metadata"`
	Data     []byte            `json:"data"`
}

// payloads are a value in JSON as an input.
func payloads(value string) encoded {
	return encoded{[]payload{{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(value)}}}
}

// queried is a query's answer in JSON.
func (s *site) queried(id, query string) (string, error) {
	s.Helper()
	text, err := s.tried(id, "/query/"+query, inputs{})
	if err != nil {
		return "", err
	}
	var answer struct {
		QueryResult encoded `json:"queryResult"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.QueryResult.Payloads) != 1 {
		return "", errors.New(text)
	}
	return string(answer.QueryResult.Payloads[0].Data), nil
}

func startOf(spec string) inputs {
	return inputs{
		"workflowType": inputs{"name": "NodeMaintenance"}, "taskQueue": inputs{"name": "drydock"}, "input": payloads(spec),
	}
}

func updateOf(id, argument string) inputs {
	return inputs{
		"waitPolicy": inputs{"lifecycleStage": "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED"},
		"request": inputs{
			"meta":  inputs{"updateId": id, "identity": "ann"},
			"input": inputs{"args": payloads(argument)},
		},
	}
}

func (s *site) untilQueried(id string, phase api.Phase) {
	s.Helper()
	s.eventually(id+" is "+string(phase), func() error {
		text, err := s.queried(id, "status")
		if err != nil {
			return err
		}
		var status api.Status
		if err := json.Unmarshal([]byte(text), &status); err != nil {
			return err
		}
		if status.Phase != phase {
			return errors.New(string(status.Phase))
		}
		return nil
	})
}

func TestAMaintenanceByTheTemporalUIAlone(t *testing.T) {
	s := newPlainSite(t, "")
	const id = "node-maintenance/worker-01/ops"
	before := s.imprint("worker-01")
	start := startOf(`{"node":"worker-01","requestor":"ops"}`)
	s.sub("finished by a signal", func(s *site) {
		s.post(id, "", start)
		s.untilQueried(id, api.Ready)
		run := s.runOf("worker-01")
		s.mustShow("worker-01", s.mustStatus(run).RunID, api.Ready)
		s.post(id, "/signal/failed", inputs{"input": payloads(`{"reason":"not yet"}`)})
		s.untilQueried(id, api.RequestorFailed)
		s.post(id, "/signal/retry", inputs{})
		s.untilQueried(id, api.Ready)
		s.post(id, "/signal/done", inputs{})
		s.mustEnd(run, api.Completed)
		s.back("worker-01", before)
	})
	s.sub("finished by an update", func(s *site) {
		s.post(id, "", start)
		s.untilQueried(id, api.Ready)
		var answer struct {
			Outcome struct {
				Success encoded `json:"success"`
			} `json:"outcome"`
		}
		out := s.post(id, "/update/done", updateOf("all-well", `{"comment":"all well"}`))
		if err := json.Unmarshal([]byte(out), &answer); err != nil || len(answer.Outcome.Success.Payloads) != 1 ||
			!strings.Contains(string(answer.Outcome.Success.Payloads[0].Data), "ops is done") {
			s.Errorf("the update answers\n%s", out)
		}
		s.mustEnd(s.runOf("worker-01"), api.Completed)
		s.back("worker-01", before)
	})
	s.sub("cancelled", func(s *site) {
		s.post("typed-by-hand", "", startOf(`{"node":"worker-01","requestor":"ops","drain":{"mode":"external"}}`))
		s.untilQueried(id, api.Draining)
		s.post(id, "/cancel", inputs{})
		s.mustEnd(s.runOf("worker-01"), api.Cancelled)
		s.back("worker-01", before)
	})
	s.sub("limits", func(s *site) {
		s.post("drydock-scheduler", "/update/set-limits", updateOf("half", `{"by":"ann","limits":{"maxParallel":"50%"}}`))
		if out, err := s.queried("drydock-scheduler", "state"); err != nil || !strings.Contains(out, `"50%"`) || !strings.Contains(out, "ann") {
			s.Errorf("the state is\n%s, %v", out, err)
		}
	})
}

// TestAWebPageDoesNotReachTheTemporalUI sends what a browser sends for a page of another site, and for one whose name was made to lead here.
func TestAWebPageDoesNotReachTheTemporalUI(t *testing.T) {
	s := newPlainSite(t, "")
	const signal = "/api/v1/namespaces/default/workflows/nobody/signal/done"
	for name, one := range map[string]struct {
		method, path, host string
		header             map[string]string
		want               int
	}{
		"a person":               {http.MethodGet, "/", "", nil, http.StatusOK},
		"a name that leads here": {http.MethodGet, "/api/v1/settings", "evil.example", nil, http.StatusForbidden},
		"a page of another site": {http.MethodPost, signal, "", map[string]string{"Content-Type": "application/json", "Origin": "https://evil.example"}, http.StatusForbidden},
		"text":                   {http.MethodPost, signal, "", map[string]string{"Content-Type": "text/plain"}, http.StatusUnsupportedMediaType},
	} {
		request, err := http.NewRequestWithContext(s.ctx, one.method, shared.temporal.UI+one.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		request.Host = one.host
		for key, value := range one.header {
			request.Header.Set(key, value)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != one.want || !strings.Contains(response.Header.Get("Content-Security-Policy"), "frame-ancestors 'self'") {
			t.Errorf("%s: %s, want %d; its policy is %q", name, response.Status, one.want, response.Header.Get("Content-Security-Policy"))
		}
	}
}
