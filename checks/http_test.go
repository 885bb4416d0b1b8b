package checks_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/kubernetes/fake"
	"pgregory.net/rapid"

	"drydock/checks"
	"drydock/config/secret"
	"drydock/rules/period"
)

const canary = `ca"na/ry secret`

var subject = checks.Subject{
	Node: "worker-01", Requestor: "ops", Reason: "kernel", Ticket: "OPS-1", Cluster: "east", InternalIP: "127.0.0.1",
	WorkflowID: "node-maintenance/worker-01/ops", RunID: "run-1",
}

// seen is a server that keeps the requests it got.
type seen struct {
	*httptest.Server
	mu     sync.Mutex
	got    []*http.Request
	bodies []string
}

func serve(t *testing.T, handler http.HandlerFunc) *seen {
	t.Helper()
	s := &seen{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading a request: %v", err)
		}
		s.mu.Lock()
		s.got, s.bodies = append(s.got, r), append(s.bodies, string(body))
		s.mu.Unlock()
		handler(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *seen) last(t *testing.T) (*http.Request, string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.got) == 0 {
		t.Fatal("the server got no request")
	}
	return s.got[len(s.got)-1], s.bodies[len(s.bodies)-1]
}

func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func runner(t *testing.T, c checks.Config) *checks.Runner {
	t.Helper()
	r, err := checks.New(c, fake.NewClientset(), "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func httpCheck(c checks.HTTP) checks.Config {
	return checks.Config{Checks: map[string]checks.Check{"probe": {HTTP: &c}}}
}

func httpHook(c checks.HTTP) checks.Config {
	return checks.Config{Hooks: map[string]checks.Hook{"tell": {HTTP: &c}}}
}

func TestHTTPVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		body    string
		config  checks.HTTP
		ok      bool
		message string
	}{
		"200":                 {200, "", checks.HTTP{}, true, "answered 200 OK"},
		"299":                 {299, "", checks.HTTP{}, true, "answered 299"},
		"503":                 {503, "down\nfor\x00 lunch", checks.HTTP{}, false, "answered 503 Service Unavailable: down for lunch"},
		"wanted status":       {404, "", checks.HTTP{ExpectStatus: []int{404}}, true, "answered 404"},
		"not the one":         {200, "", checks.HTTP{ExpectStatus: []int{204}}, false, "answered 200 OK"},
		"body":                {200, "status: ok", checks.HTTP{ExpectBody: "ok$"}, true, "answered 200"},
		"not the body":        {200, "status: bad", checks.HTTP{ExpectBody: "ok$"}, false, `does not match "ok$": status: bad`},
		"redirect":            {302, "", checks.HTTP{}, false, "answered 302 Found"},
		"long body":           {500, strings.Repeat("x", 5000), checks.HTTP{}, false, "…"},
		"body beyond the MiB": {200, strings.Repeat("x", 1<<20) + "ok", checks.HTTP{ExpectBody: "ok$"}, false, "does not match"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", "http://127.0.0.1:1/")
				answering(c.status, c.body)(w, r)
			})
			c.config.URL = s.URL + "/{{.Node}}"
			got, err := runner(t, httpCheck(c.config)).Check(t.Context(), "probe", subject, "key")
			if err != nil || got.OK != c.ok || !strings.Contains(got.Message, c.message) || len(got.Message) > 500 {
				t.Fatalf("got %+v, %v; want OK %v and %q", got, err, c.ok, c.message)
			}
			r, _ := s.last(t)
			if r.Method != "GET" || r.URL.Path != "/worker-01" || r.Header.Get("User-Agent") != "drydock/1.2.3" || r.Header.Get("Idempotency-Key") != "" {
				t.Errorf("got %s %s %v", r.Method, r.URL, r.Header)
			}
		})
	}
}

func TestAServerThatDoesNotAnswerIsAVerdict(t *testing.T) {
	hangs := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, c := range map[string]struct {
		config  checks.HTTP
		message string
	}{
		"refused": {checks.HTTP{URL: gone.URL + "?reason={{.Reason}}"}, "did not answer: "},
		"hangs":   {checks.HTTP{URL: hangs.URL + "?reason={{.Reason}}", Timeout: period.Duration(1e8)}, "Client.Timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject
			s.Reason = "reason-in-the-url"
			got, err := runner(t, httpCheck(c.config)).Check(t.Context(), "probe", s, "")
			if err != nil || got.OK || !strings.Contains(got.Message, c.message) || strings.Contains(got.Message, s.Reason) {
				t.Fatalf("got %+v, %v", got, err)
			}
		})
	}
}

func TestHostileTextChangesNeitherHostNorPathNorQuery(t *testing.T) {
	s := serve(t, answering(200, ""))
	r := runner(t, httpCheck(checks.HTTP{
		URL: s.URL + "/nodes/{{.Node}}/by/{{.Requestor}}?reason={{.Reason}}&fixed=1", Headers: map[string]string{"X-Reason": "r: {{.Reason}}"},
		Body: `{"reason":"{{.Reason}}","fixed":1}`, Method: "POST",
	}))
	for _, reason := range []string{
		"a&fixed=2#x", "@evil.example/", "a b+c%20d", "\r\nX-Evil: 1", `","fixed":2,"x":"`, "{{.RunID}}", "é\u2028\xff", "../..", `\`,
	} {
		hostile := subject
		hostile.Reason = reason
		if got, err := r.Check(t.Context(), "probe", hostile, ""); err != nil || !got.OK {
			t.Fatalf("%q: %+v, %v", reason, got, err)
		}
		request, body := s.last(t)
		query, err := url.ParseQuery(request.URL.RawQuery)
		if err != nil || request.URL.Path != "/nodes/worker-01/by/ops" || query.Get("reason") != reason || query.Get("fixed") != "1" || len(query) != 2 {
			t.Errorf("%q: got %s, %v", reason, request.URL, err)
		}
		if request.Header.Get("X-Evil") != "" || strings.ContainsAny(request.Header.Get("X-Reason"), "\r\n") {
			t.Errorf("%q: headers %v", reason, request.Header)
		}
		var decoded map[string]any
		if err := json.Unmarshal([]byte(body), &decoded); err != nil || decoded["fixed"] != 1.0 || decoded["reason"] != strings.ToValidUTF8(reason, "�") {
			t.Errorf("%q: body %s, %v", reason, body, err)
		}
	}
	before := len(s.got)
	for _, path := range []string{"..", ".", "a/../../admin", `..\admin`} {
		hostile := subject
		hostile.Requestor = path
		if _, err := r.Check(t.Context(), "probe", hostile, ""); !errors.Is(err, checks.ErrMisconfigured) || !strings.Contains(err.Error(), "url: its path has a segment that leads elsewhere") {
			t.Errorf("%q: got %v", path, err)
		}
	}
	if len(s.got) != before {
		t.Error("a request was made all the same")
	}
}

func TestTheNameOfANodeThatDoesNotExistIsNoHost(t *testing.T) {
	r := runner(t, httpCheck(checks.HTTP{URL: "http://{{.Node}}:9100/"}))
	unknown := subject
	unknown.Node, unknown.InternalIP = "evil.example", ""
	if _, err := r.Check(t.Context(), "probe", unknown, ""); !errors.Is(err, checks.ErrMisconfigured) {
		t.Fatalf("got %v", err)
	}
	byText := runner(t, httpCheck(checks.HTTP{URL: `http://{{if eq .Reason "go"}}evil.example{{else}}127.0.0.1:1{{end}}/`}))
	chosen := subject
	chosen.Reason = "go"
	if _, err := byText.Check(t.Context(), "probe", chosen, ""); !errors.Is(err, checks.ErrMisconfigured) {
		t.Fatalf("got %v", err)
	}
}

func TestAnyTextArrivesOrIsRefused(t *testing.T) {
	s := serve(t, answering(200, ""))
	r := runner(t, httpCheck(checks.HTTP{URL: s.URL + "/a/{{.Requestor}}/b?q={{.Reason}}"}))
	rapid.Check(t, func(rt *rapid.T) {
		hostile := subject
		hostile.Requestor, hostile.Reason = rapid.String().Draw(rt, "requestor"), rapid.String().Draw(rt, "reason")
		got, err := r.Check(t.Context(), "probe", hostile, "")
		if err != nil {
			if !strings.Contains(err.Error(), "leads elsewhere") {
				rt.Fatal(err)
			}
			return
		}
		request, _ := s.last(t)
		if !got.OK || request.URL.Path != "/a/"+hostile.Requestor+"/b" || request.URL.Query().Get("q") != hostile.Reason || len(request.URL.Query()) != 1 {
			rt.Fatalf("got %+v for %s", got, request.URL)
		}
	})
}

func TestAnIPv6AddressIsAHost(t *testing.T) {
	s := subject
	s.InternalIP = "::1"
	r := runner(t, httpCheck(checks.HTTP{URL: "http://{{.InternalIP}}:1/"}))
	got, err := r.Check(t.Context(), "probe", s, "")
	if err != nil || got.OK || !strings.HasPrefix(got.Message, "[::1]:1 did not answer") {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestSecretsReachTheServerAndNobodyElse(t *testing.T) {
	t.Setenv("API_KEY", canary)
	name := file(t, canary+"\n")
	echo := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(500)
		quoted, _ := json.Marshal(canary)
		_, _ = io.WriteString(w, "no "+r.Header.Get("X-Key")+" "+r.Header.Get("Authorization")+" "+url.QueryEscape(canary)+" "+url.PathEscape(canary)+string(quoted))
	})
	config := checks.HTTP{
		URL: echo.URL, SecretHeaders: map[string]secret.Value{"X-Key": {Env: "API_KEY"}}, BearerToken: secret.Value{File: name},
	}
	clean := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			if strings.Contains(text, "na/ry") || strings.Contains(text, "na%2Fry") {
				t.Errorf("shows a secret: %s", text)
			}
		}
	}
	got, err := runner(t, httpCheck(config)).Check(t.Context(), "probe", subject, "")
	if err != nil || got.OK || !strings.Contains(got.Message, "no (secret) Bearer (secret)") {
		t.Fatalf("got %+v, %v", got, err)
	}
	clean(got.Message)
	if r, _ := echo.last(t); r.Header.Get("X-Key") != canary || r.Header.Get("Authorization") != "Bearer "+canary {
		t.Fatalf("got %v", r.Header)
	}
	_, err = runner(t, httpHook(config)).Hook(t.Context(), "tell", false, subject, "key")
	if err == nil || !strings.Contains(err.Error(), "500") {
		t.Fatalf("got %v", err)
	}
	clean(err.Error())

	// Rotated: the next request has the new one.
	if err := os.WriteFile(name, []byte("rotated\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := runner(t, httpCheck(config))
	if _, err := r.Check(t.Context(), "probe", subject, ""); err != nil {
		t.Fatal(err)
	}
	if r, _ := echo.last(t); r.Header.Get("Authorization") != "Bearer rotated" {
		t.Fatalf("got %v", r.Header)
	}
	for content, want := range map[string]string{"\n": "is empty", "a\nb": "characters that no header may have", strings.Repeat("x", 70000): "has more than"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Check(t.Context(), "probe", subject, ""); !errors.Is(err, checks.ErrMisconfigured) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Check(t.Context(), "probe", subject, ""); !errors.Is(err, checks.ErrMisconfigured) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestTLSNeedsTheAuthority(t *testing.T) {
	s := httptest.NewTLSServer(answering(200, ""))
	t.Cleanup(s.Close)
	got, err := runner(t, httpCheck(checks.HTTP{URL: s.URL})).Check(t.Context(), "probe", subject, "")
	if err != nil || got.OK || !strings.Contains(got.Message, "certificate") {
		t.Fatalf("without the authority: %+v, %v", got, err)
	}
	authority := file(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	r := runner(t, httpCheck(checks.HTTP{URL: s.URL, CAFile: authority}))
	if got, err := r.Check(t.Context(), "probe", subject, ""); err != nil || !got.OK {
		t.Fatalf("with the authority: %+v, %v", got, err)
	}
	if err := os.WriteFile(authority, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Check(t.Context(), "probe", subject, ""); !errors.Is(err, checks.ErrMisconfigured) || !strings.Contains(err.Error(), "caFile") {
		t.Fatalf("got %v", err)
	}
}

func TestAHookCapturesForItsClosing(t *testing.T) {
	s := serve(t, answering(200, `{"silenceID":"a/b?c"}`))
	c := httpHook(checks.HTTP{URL: s.URL + "/silences", Body: `{"endsAt":"{{after "4h"}}"}`, Capture: `"silenceID":"([^"]+)"`})
	h := c.Hooks["tell"]
	h.Closing = &checks.Closing{HTTP: &checks.HTTP{URL: s.URL + "/silence/{{.Captured}}", Method: "DELETE"}}
	c.Hooks["tell"] = h
	r := runner(t, c)
	got, err := r.Hook(t.Context(), "tell", false, subject, "wf/run/1")
	if err != nil || got.Captured != "a/b?c" {
		t.Fatalf("got %+v, %v", got, err)
	}
	if request, body := s.last(t); request.Method != "POST" || request.Header.Get("Idempotency-Key") != "wf/run/1" || request.Header.Get("Content-Type") != "application/json" || !strings.Contains(body, "T") {
		t.Fatalf("got %s %v %s", request.Method, request.Header, body)
	}
	closing := subject
	closing.Captured = got.Captured
	if _, err := r.Hook(t.Context(), "tell", true, closing, "wf/run/2"); err != nil {
		t.Fatal(err)
	}
	if request, _ := s.last(t); request.Method != "DELETE" || request.URL.EscapedPath() != "/silence/a%2Fb%3Fc" {
		t.Fatalf("got %s %s", request.Method, request.URL.EscapedPath())
	}
}

func TestHooksThatCannotBeCalled(t *testing.T) {
	s := serve(t, answering(200, `{"id":"`+strings.Repeat("x", 300)+`"}`))
	c := checks.Config{Hooks: map[string]checks.Hook{
		"nothing": {HTTP: &checks.HTTP{URL: s.URL, Capture: "no(thing)"}},
		"long":    {HTTP: &checks.HTTP{URL: s.URL, Capture: `"id":"(.*)"`}},
		"signal":  {Signal: &struct{}{}},
	}}
	r := runner(t, c)
	for _, one := range []struct {
		name          string
		closing       bool
		misconfigured bool
		want          string
	}{
		{"nothing", false, false, "finds nothing to capture"},
		{"long", false, false, "captures 300 bytes"},
		{"long", true, true, "hooks.long: has no closing"},
		{"signal", false, true, "hooks.signal: is a signal"},
		{"other", false, true, `hooks: there is no "other"; the worker knows long, nothing, signal`},
	} {
		_, err := r.Hook(t.Context(), one.name, one.closing, subject, "key")
		if err == nil || errors.Is(err, checks.ErrMisconfigured) != one.misconfigured || !strings.Contains(err.Error(), one.want) {
			t.Errorf("%s: got %v, want %q", one.name, err, one.want)
		}
	}
}

func TestBodiesAreEscapedAsTheirContentTypeHasIt(t *testing.T) {
	s := serve(t, answering(200, ""))
	hostile := subject
	hostile.Reason = "a&b=\"c\nd"
	for contentType, want := range map[string]string{
		"application/x-www-form-urlencoded": "reason=a%26b%3D%22c%0Ad",
		"application/ld+json":               `reason=a\u0026b=\"c\nd`,
		"text/plain; charset=utf-8":         "reason=a&b=\"c d",
	} {
		c := httpHook(checks.HTTP{URL: s.URL, Body: "reason={{.Reason}}", Headers: map[string]string{"Content-Type": contentType}})
		if _, err := runner(t, c).Hook(t.Context(), "tell", false, hostile, "key"); err != nil {
			t.Fatal(err)
		}
		if _, body := s.last(t); body != want {
			t.Errorf("%s: got %s, want %s", contentType, body, want)
		}
	}
}

func TestCheckAllAnswersForEach(t *testing.T) {
	s := serve(t, answering(200, ""))
	c := httpCheck(checks.HTTP{URL: s.URL})
	c.Checks["unreadable"] = checks.Check{HTTP: &checks.HTTP{URL: s.URL, BearerToken: secret.Value{File: "/does/not/exist"}}}
	got, err := runner(t, c).CheckAll(t.Context(), []string{"unreadable", "probe", "unknown"}, subject, "key")
	if err != nil || len(got) != 3 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if got[0].OK || got[0].Check != "unreadable" || !got[1].OK || got[2].OK || !strings.Contains(got[2].Message, `there is no "unknown"`) {
		t.Fatalf("got %+v", got)
	}
}
