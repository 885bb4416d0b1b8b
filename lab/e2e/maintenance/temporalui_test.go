package maintenance

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

func startOf(spec string) site.Inputs {
	return site.Inputs{
		"workflowType": site.Inputs{"name": "NodeMaintenance"}, "taskQueue": site.Inputs{"name": "drydock"}, "input": site.Payloads(spec),
	}
}

func untilQueried(s *site.Site, id string, phase api.Phase) {
	s.Helper()
	s.Eventually(id+" is "+string(phase), func() error {
		text, err := s.Queried(id, "status")
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
	s := site.NewPlain(t, "")
	const id = "node-maintenance/worker-01/ops"
	before := s.Imprint("worker-01")
	start := startOf(`{"node":"worker-01","requestor":"ops"}`)
	s.Sub("finished by a signal", func(s *site.Site) {
		s.Post(id, "", start)
		untilQueried(s, id, api.Ready)
		run := s.RunOf("worker-01")
		s.MustShow("worker-01", s.MustStatus(run).RunID, api.Ready)
		s.Post(id, "/signal/failed", site.Inputs{"input": site.Payloads(`{"reason":"not yet"}`)})
		untilQueried(s, id, api.RequestorFailed)
		s.Post(id, "/signal/retry", site.Inputs{})
		untilQueried(s, id, api.Ready)
		s.Post(id, "/signal/done", site.Inputs{})
		s.MustEnd(run, api.Completed)
		s.Back("worker-01", before)
	})
	s.Sub("finished by an update", func(s *site.Site) {
		s.Post(id, "", start)
		untilQueried(s, id, api.Ready)
		var answer struct {
			Outcome struct {
				Success site.Encoded `json:"success"`
			} `json:"outcome"`
		}
		out := s.Post(id, "/update/done", site.UpdateOf("all-well", `{"comment":"all well"}`))
		if err := json.Unmarshal([]byte(out), &answer); err != nil || len(answer.Outcome.Success.Payloads) != 1 ||
			!strings.Contains(string(answer.Outcome.Success.Payloads[0].Data), "ops is done") {
			s.Errorf("the update answers\n%s", out)
		}
		s.MustEnd(s.RunOf("worker-01"), api.Completed)
		s.Back("worker-01", before)
	})
	s.Sub("cancelled", func(s *site.Site) {
		s.Post("typed-by-hand", "", startOf(`{"node":"worker-01","requestor":"ops","drain":{"mode":"external"}}`))
		untilQueried(s, id, api.Draining)
		s.Post(id, "/cancel", site.Inputs{})
		s.MustEnd(s.RunOf("worker-01"), api.Cancelled)
		s.Back("worker-01", before)
	})
	s.Sub("limits", func(s *site.Site) {
		s.Post("drydock-scheduler", "/update/set-limits", site.UpdateOf("half", `{"by":"ann","limits":{"maxParallel":"50%"}}`))
		if out, err := s.Queried("drydock-scheduler", "state"); err != nil || !strings.Contains(out, `"50%"`) || !strings.Contains(out, "ann") {
			s.Errorf("the state is\n%s, %v", out, err)
		}
	})
}

// TestAWebPageDoesNotReachTheTemporalUI sends what a browser sends for a page of another site, and for one whose name was made to lead here.
func TestAWebPageDoesNotReachTheTemporalUI(t *testing.T) {
	s := site.NewPlain(t, "")
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
		request, err := http.NewRequestWithContext(s.Ctx, one.method, site.Shared.Temporal.UI+one.path, strings.NewReader("{}"))
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
