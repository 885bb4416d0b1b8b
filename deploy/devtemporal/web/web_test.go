package web_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"drydock.dev/drydock/deploy/devtemporal/web"
)

// temporal counts the signals that reach it.
type temporal struct {
	workflowservice.UnimplementedWorkflowServiceServer
	signals atomic.Int32
}

func (s *temporal) SignalWorkflowExecution(context.Context, *workflowservice.SignalWorkflowExecutionRequest) (*workflowservice.SignalWorkflowExecutionResponse, error) {
	s.signals.Add(1)
	return &workflowservice.SignalWorkflowExecutionResponse{}, nil
}

// serve runs the UI before a Temporal of its own.
func serve(t *testing.T) (*httptest.Server, *temporal) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fake, server := &temporal{}, grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(server, fake)
	go server.Serve(listener) //nolint:errcheck // it ends with the test
	t.Cleanup(server.Stop)
	handler, err := web.Handler(web.Options{Temporal: listener.Addr().String(), Namespace: "default", Names: []string{"ui.example"}})
	if err != nil {
		t.Fatal(err)
	}
	ui := httptest.NewServer(handler)
	t.Cleanup(ui.Close)
	return ui, fake
}

func send(t *testing.T, ui *httptest.Server, method, path, host string, header map[string]string) *http.Response {
	t.Helper()
	body := ""
	if method != http.MethodGet {
		body = "{}"
	}
	request, err := http.NewRequestWithContext(t.Context(), method, ui.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := ui.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response
}

const signal = "/api/v1/namespaces/default/workflows/maintenance%2Fworker-01/signal/done"

// TestAPageOfAnotherSiteSignalsNobody has each kind of page try what the UI itself does at the end.
func TestAPageOfAnotherSiteSignalsNobody(t *testing.T) {
	ui, fake := serve(t)
	host := strings.TrimPrefix(ui.URL, "http://")
	page := send(t, ui, http.MethodGet, "/", "", nil)
	if page.StatusCode != http.StatusOK || !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") {
		t.Fatalf("its page: %s, %s", page.Status, page.Header.Get("Content-Type"))
	}
	for name, want := range map[string]string{
		"Content-Security-Policy": "frame-ancestors 'self'", "X-Frame-Options": "SAMEORIGIN", "X-Content-Type-Options": "nosniff",
	} {
		if got := page.Header.Get(name); !strings.Contains(got, want) {
			t.Errorf("its page has %s %q, want %q", name, got, want)
		}
	}
	var token string
	for _, cookie := range page.Cookies() {
		if cookie.SameSite != http.SameSiteStrictMode {
			t.Errorf("cookie %s goes along with requests of other sites", cookie.Name)
		}
		if cookie.Name == "_csrf" {
			token = cookie.Value
		}
	}
	if token == "" {
		t.Fatal("its page sets no token against forged requests")
	}
	with := func(pairs ...string) map[string]string {
		h := map[string]string{"Cookie": "_csrf=" + token, "X-CSRF-TOKEN": token, "Content-Type": "text/plain;charset=UTF-8", "Origin": "http://" + host}
		for i := 0; i < len(pairs); i += 2 {
			if h[pairs[i]] = pairs[i+1]; pairs[i+1] == "" {
				delete(h, pairs[i])
			}
		}
		return h
	}
	for name, one := range map[string]struct {
		host   string
		header map[string]string
		want   int
	}{
		"a name that was made to lead here":  {"evil.example", with("Origin", "http://evil.example"), http.StatusForbidden},
		"a name that leads here, no Origin":  {"evil.example", with("Origin", ""), http.StatusForbidden},
		"a page of another site":             {host, with("Origin", "https://evil.example"), http.StatusForbidden},
		"a page of another port":             {host, with("Origin", "http://localhost:1"), http.StatusForbidden},
		"text that any page may send":        {host, with("X-CSRF-TOKEN", "", "Origin", ""), http.StatusUnsupportedMediaType},
		"a form":                             {host, with("X-CSRF-TOKEN", "", "Origin", "", "Content-Type", "application/x-www-form-urlencoded"), http.StatusUnsupportedMediaType},
		"JSON without the token":             {host, with("X-CSRF-TOKEN", "", "Content-Type", "application/json"), http.StatusBadRequest},
		"a script that made the token up":    {host, with("X-CSRF-TOKEN", "x"), http.StatusForbidden},
		"a reader of a name that leads here": {"evil.example", nil, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			if got := send(t, ui, http.MethodPost, signal, one.host, one.header); got.StatusCode != one.want {
				t.Errorf("%s, want %d", got.Status, one.want)
			}
			if one.header == nil {
				if got := send(t, ui, http.MethodGet, "/api/v1/settings", one.host, nil); got.StatusCode != one.want {
					t.Errorf("reading: %s, want %d", got.Status, one.want)
				}
			}
		})
	}
	if n := fake.signals.Load(); n != 0 {
		t.Fatalf("%d signals reached Temporal", n)
	}
	for _, name := range []string{host, "ui.example"} {
		if got := send(t, ui, http.MethodPost, signal, name, with("Origin", "http://"+name)); got.StatusCode != http.StatusOK {
			t.Errorf("the UI's own signal at %s: %s", name, got.Status)
		}
	}
	if n := fake.signals.Load(); n != 2 {
		t.Errorf("%d of the UI's own two signals reached Temporal", n)
	}
}

// TestThePagesWork reads what a browser reads first.
func TestThePagesWork(t *testing.T) {
	ui, _ := serve(t)
	for _, path := range []string{"/", "/namespaces/default/workflows", "/favicon.ico", "/api/v1/settings", "/healthz", "/render?content=x"} {
		if got := send(t, ui, http.MethodGet, path, "", nil); got.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, got.Status)
		}
	}
}
