package http_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/checks/checkstest"
	"drydock.dev/drydock/checks/http"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/secret"
)

const canary = `ca"na/ry secret`

func httpCheck(c http.Config) checks.Config {
	return checks.Config{Checks: map[string]checks.Check{"probe": checkstest.Check("http", &c)}}
}

func httpHook(c http.Config) checks.Config {
	return checks.Config{Hooks: map[string]checks.Hook{"tell": checkstest.Hook("http", &c)}}
}

func TestHTTPVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		body    string
		config  http.Config
		ok      bool
		message string
	}{
		"200":                 {200, "", http.Config{}, true, "answered 200 OK"},
		"299":                 {299, "", http.Config{}, true, "answered 299"},
		"503":                 {503, "down\nfor\x00 lunch", http.Config{}, false, "answered 503 Service Unavailable: down for lunch"},
		"wanted status":       {404, "", http.Config{ExpectStatus: []int{404}}, true, "answered 404"},
		"not the one":         {200, "", http.Config{ExpectStatus: []int{204}}, false, "answered 200 OK"},
		"body":                {200, "status: ok", http.Config{ExpectBody: "ok$"}, true, "answered 200"},
		"not the body":        {200, "status: bad", http.Config{ExpectBody: "ok$"}, false, `does not match "ok$": status: bad`},
		"redirect":            {302, "", http.Config{}, false, "answered 302 Found"},
		"long body":           {500, strings.Repeat("x", 5000), http.Config{}, false, "…"},
		"body beyond the MiB": {200, strings.Repeat("x", 1<<20) + "ok", http.Config{ExpectBody: "ok$"}, false, "does not match"},
	} {
		t.Run(name, func(t *testing.T) {
			s := checkstest.Serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
				w.Header().Set("Location", "http://127.0.0.1:1/")
				checkstest.Answering(c.status, c.body)(w, r)
			})
			c.config.URL = s.URL + "/{{.Node}}"
			got, err := checkstest.Runner(t, httpCheck(c.config)).Check(t.Context(), "probe", checkstest.Subject, "key")
			if err != nil || got.OK != c.ok || !strings.Contains(got.Message, c.message) || len(got.Message) > 500 {
				t.Fatalf("got %+v, %v; want OK %v and %q", got, err, c.ok, c.message)
			}
			r, _ := s.Last(t)
			if r.Method != "GET" || r.URL.Path != "/worker-01" || r.Header.Get("User-Agent") != "drydock/1.2.3" || r.Header.Get("Idempotency-Key") != "" {
				t.Errorf("got %s %s %v", r.Method, r.URL, r.Header)
			}
		})
	}
}

func TestAServerThatDoesNotAnswerIsAVerdict(t *testing.T) {
	hangs := checkstest.Serve(t, func(_ nethttp.ResponseWriter, r *nethttp.Request) { <-r.Context().Done() })
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, c := range map[string]struct {
		config  http.Config
		message string
	}{
		"refused": {http.Config{URL: gone.URL + "?reason={{.Reason}}"}, "did not answer: "},
		"hangs":   {http.Config{URL: hangs.URL + "?reason={{.Reason}}", Timeout: period.Duration(1e8)}, "Client.Timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			s := checkstest.Subject
			s.Reason = "reason-in-the-url"
			got, err := checkstest.Runner(t, httpCheck(c.config)).Check(t.Context(), "probe", s, "")
			if err != nil || got.OK || !strings.Contains(got.Message, c.message) || strings.Contains(got.Message, s.Reason) {
				t.Fatalf("got %+v, %v", got, err)
			}
		})
	}
}

func TestHostileTextChangesNeitherHostNorPathNorQuery(t *testing.T) {
	s := checkstest.Serve(t, checkstest.Answering(200, ""))
	r := checkstest.Runner(t, httpCheck(http.Config{
		URL: s.URL + "/nodes/{{.Node}}/by/{{.Requestor}}?reason={{.Reason}}&fixed=1", Headers: map[string]string{"X-Reason": "r: {{.Reason}}"},
		Body: `{"reason":"{{.Reason}}","fixed":1}`, Method: "POST",
	}))
	for _, reason := range []string{
		"a&fixed=2#x", "@evil.example/", "a b+c%20d", "\r\nX-Evil: 1", `","fixed":2,"x":"`, "{{.RunID}}", "é\u2028\xff", "../..", `\`,
	} {
		hostile := checkstest.Subject
		hostile.Reason = reason
		if got, err := r.Check(t.Context(), "probe", hostile, ""); err != nil || !got.OK {
			t.Fatalf("%q: %+v, %v", reason, got, err)
		}
		request, body := s.Last(t)
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
	before := len(s.Got)
	for _, path := range []string{"..", ".", "a/../../admin", `..\admin`} {
		hostile := checkstest.Subject
		hostile.Requestor = path
		if _, err := r.Check(t.Context(), "probe", hostile, ""); !errors.Is(err, checks.ErrMisconfigured) || !strings.Contains(err.Error(), "url: its path has a segment that leads elsewhere") {
			t.Errorf("%q: got %v", path, err)
		}
	}
	if len(s.Got) != before {
		t.Error("a request was made all the same")
	}
}

func TestTheNameOfANodeThatDoesNotExistIsNoHost(t *testing.T) {
	r := checkstest.Runner(t, httpCheck(http.Config{URL: "http://{{.Node}}:9100/"}))
	unknown := checkstest.Subject
	unknown.Node, unknown.InternalIP = "evil.example", ""
	if _, err := r.Check(t.Context(), "probe", unknown, ""); !errors.Is(err, checks.ErrMisconfigured) {
		t.Fatalf("got %v", err)
	}
	byText := checkstest.Runner(t, httpCheck(http.Config{URL: `http://{{if eq .Reason "go"}}evil.example{{else}}127.0.0.1:1{{end}}/`}))
	chosen := checkstest.Subject
	chosen.Reason = "go"
	if _, err := byText.Check(t.Context(), "probe", chosen, ""); !errors.Is(err, checks.ErrMisconfigured) {
		t.Fatalf("got %v", err)
	}
}

func TestAnyTextArrivesOrIsRefused(t *testing.T) {
	s := checkstest.Serve(t, checkstest.Answering(200, ""))
	r := checkstest.Runner(t, httpCheck(http.Config{URL: s.URL + "/a/{{.Requestor}}/b?q={{.Reason}}"}))
	rapid.Check(t, func(rt *rapid.T) {
		hostile := checkstest.Subject
		hostile.Requestor, hostile.Reason = rapid.String().Draw(rt, "requestor"), rapid.String().Draw(rt, "reason")
		got, err := r.Check(t.Context(), "probe", hostile, "")
		if err != nil {
			if !strings.Contains(err.Error(), "leads elsewhere") {
				rt.Fatal(err)
			}
			return
		}
		request, _ := s.Last(t)
		if !got.OK || request.URL.Path != "/a/"+hostile.Requestor+"/b" || request.URL.Query().Get("q") != hostile.Reason || len(request.URL.Query()) != 1 {
			rt.Fatalf("got %+v for %s", got, request.URL)
		}
	})
}

func TestAnIPv6AddressIsAHost(t *testing.T) {
	s := checkstest.Subject
	s.InternalIP = "::1"
	c := httpCheck(http.Config{URL: "http://{{.InternalIP}}:1/"})
	c.NodeAddresses = allowed(t, "::1/128")
	r := checkstest.Runner(t, c)
	got, err := r.Check(t.Context(), "probe", s, "")
	if err != nil || got.OK || !strings.HasPrefix(got.Message, "[::1]:1 did not answer") || strings.Contains(got.Message, "loopback") {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func allowed(t *testing.T, ranges ...string) outbound.NodeAddresses {
	t.Helper()
	n, err := outbound.ParseNodeAddresses(ranges)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAKubeletDoesNotChooseWhereARequestGoes(t *testing.T) {
	s := checkstest.Serve(t, checkstest.Answering(200, ""))
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	const refused = "outbound.allowNodeAddresses"
	for name, c := range map[string]struct {
		url     string
		subject checks.Subject
		allow   []string
		message string // empty: it is answered
	}{
		"its address is loopback":     {"http://{{.InternalIP}}" + port, checks.Subject{Node: "n1", InternalIP: "127.0.0.1"}, nil, refused},
		"as an IPv6 address":          {"http://{{.InternalIP}}" + port, checks.Subject{Node: "n1", InternalIP: "::ffff:127.0.0.1"}, nil, refused},
		"its address is a name":       {"http://{{.InternalIP}}" + port, checks.Subject{Node: "n1", InternalIP: "localhost"}, nil, refused},
		"its name resolves so":        {"http://{{.Node}}" + port, checks.Subject{Node: "localhost", InternalIP: "192.0.2.1"}, nil, refused},
		"the metadata service":        {"http://{{.InternalIP}}/", checks.Subject{Node: "n1", InternalIP: "169.254.169.254"}, nil, refused},
		"the name decides by a test":  {`http://{{if eq .Node "n1"}}127.0.0.1{{else}}n2{{end}}` + port, checks.Subject{Node: "n1", InternalIP: "192.0.2.1"}, nil, refused},
		"it is allowed":               {"http://{{.InternalIP}}" + port, checks.Subject{Node: "n1", InternalIP: "127.0.0.1"}, []string{"127.0.0.0/8"}, ""},
		"another range is":            {"http://{{.InternalIP}}" + port, checks.Subject{Node: "n1", InternalIP: "127.0.0.1"}, []string{"::1/128"}, refused},
		"the administrator wrote it":  {"http://127.0.0.1" + port + "/{{.Node}}?ip={{.InternalIP}}", checks.Subject{Node: "n1", InternalIP: "192.0.2.1"}, nil, ""},
		"the cluster's configuration": {"http://{{.Cluster}}" + port, checks.Subject{Node: "n1", InternalIP: "192.0.2.1", Cluster: "localhost"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			config := httpCheck(http.Config{URL: c.url})
			config.NodeAddresses = allowed(t, c.allow...)
			before := len(s.Got)
			got, err := checkstest.Runner(t, config).Check(t.Context(), "probe", c.subject, "")
			if err != nil || got.OK != (c.message == "") || !strings.Contains(got.Message, c.message) || (len(s.Got) > before) != got.OK {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestARedirectOfANodeIsNotFollowed(t *testing.T) {
	s := checkstest.Serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		w.Header().Set("Location", "http://127.0.0.1"+r.Host[strings.LastIndex(r.Host, ":"):]+"/secret")
		w.WriteHeader(302)
	})
	c := httpCheck(http.Config{URL: "http://{{.InternalIP}}" + s.URL[strings.LastIndex(s.URL, ":"):] + "/"})
	c.NodeAddresses = allowed(t, "127.0.0.1/32")
	got, err := checkstest.Runner(t, c).Check(t.Context(), "probe", checks.Subject{Node: "n1", InternalIP: "127.0.0.1"}, "")
	if err != nil || got.OK || len(s.Got) != 1 {
		t.Errorf("got %+v, %v after %d requests", got, err, len(s.Got))
	}
}

func TestSecretsReachTheServerAndNobodyElse(t *testing.T) {
	t.Setenv("API_KEY", canary)
	name := checkstest.File(t, canary+"\n")
	echo := checkstest.Serve(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		w.WriteHeader(500)
		quoted, _ := json.Marshal(canary)
		_, _ = io.WriteString(w, "no "+r.Header.Get("X-Key")+" "+r.Header.Get("Authorization")+" "+url.QueryEscape(canary)+" "+url.PathEscape(canary)+string(quoted))
	})
	config := http.Config{
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
	got, err := checkstest.Runner(t, httpCheck(config)).Check(t.Context(), "probe", checkstest.Subject, "")
	if err != nil || got.OK || !strings.Contains(got.Message, "no (secret) Bearer (secret)") {
		t.Fatalf("got %+v, %v", got, err)
	}
	clean(got.Message)
	if r, _ := echo.Last(t); r.Header.Get("X-Key") != canary || r.Header.Get("Authorization") != "Bearer "+canary {
		t.Fatalf("got %v", r.Header)
	}
	_, err = checkstest.Runner(t, httpHook(config)).Hook(t.Context(), "tell", false, checkstest.Subject, "key")
	if err == nil || !strings.Contains(err.Error(), "500") {
		t.Fatalf("got %v", err)
	}
	clean(err.Error())

	// Rotated: the next request has the new one.
	if err := os.WriteFile(name, []byte("rotated\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := checkstest.Runner(t, httpCheck(config))
	if _, err := r.Check(t.Context(), "probe", checkstest.Subject, ""); err != nil {
		t.Fatal(err)
	}
	if r, _ := echo.Last(t); r.Header.Get("Authorization") != "Bearer rotated" {
		t.Fatalf("got %v", r.Header)
	}
	for content, want := range map[string]string{"\n": "is empty", "a\nb": "characters that no header may have", strings.Repeat("x", 70000): "has more than"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Check(t.Context(), "probe", checkstest.Subject, ""); !errors.Is(err, checks.ErrMisconfigured) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Check(t.Context(), "probe", checkstest.Subject, ""); !errors.Is(err, checks.ErrMisconfigured) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestTLSNeedsTheAuthority(t *testing.T) {
	s := httptest.NewTLSServer(checkstest.Answering(200, ""))
	t.Cleanup(s.Close)
	got, err := checkstest.Runner(t, httpCheck(http.Config{URL: s.URL})).Check(t.Context(), "probe", checkstest.Subject, "")
	if err != nil || got.OK || !strings.Contains(got.Message, "certificate") {
		t.Fatalf("without the authority: %+v, %v", got, err)
	}
	authority := checkstest.File(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	r := checkstest.Runner(t, httpCheck(http.Config{URL: s.URL, CAFile: authority}))
	if got, err := r.Check(t.Context(), "probe", checkstest.Subject, ""); err != nil || !got.OK {
		t.Fatalf("with the authority: %+v, %v", got, err)
	}
	if err := os.WriteFile(authority, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Check(t.Context(), "probe", checkstest.Subject, ""); !errors.Is(err, checks.ErrMisconfigured) || !strings.Contains(err.Error(), "caFile") {
		t.Fatalf("got %v", err)
	}
}

func TestAHookCapturesForItsClosing(t *testing.T) {
	s := checkstest.Serve(t, checkstest.Answering(200, `{"silenceID":"a/b?c"}`))
	c := httpHook(http.Config{URL: s.URL + "/silences", Body: `{"endsAt":"{{after "4h"}}"}`, Capture: `"silenceID":"([^"]+)"`})
	h := c.Hooks["tell"]
	h.Cleanup = checkstest.Cleanup("http", &http.Config{URL: s.URL + "/silence/{{.Captured}}", Method: "DELETE"})
	c.Hooks["tell"] = h
	r := checkstest.Runner(t, c)
	got, err := r.Hook(t.Context(), "tell", false, checkstest.Subject, "wf/run/1")
	if err != nil || got.Captured != "a/b?c" {
		t.Fatalf("got %+v, %v", got, err)
	}
	if request, body := s.Last(t); request.Method != "POST" || request.Header.Get("Idempotency-Key") != "wf/run/1" || request.Header.Get("Content-Type") != "application/json" || !strings.Contains(body, "T") {
		t.Fatalf("got %s %v %s", request.Method, request.Header, body)
	}
	closing := checkstest.Subject
	closing.Captured = got.Captured
	if _, err := r.Hook(t.Context(), "tell", true, closing, "wf/run/2"); err != nil {
		t.Fatal(err)
	}
	if request, _ := s.Last(t); request.Method != "DELETE" || request.URL.EscapedPath() != "/silence/a%2Fb%3Fc" {
		t.Fatalf("got %s %s", request.Method, request.URL.EscapedPath())
	}
}

func TestHooksThatCannotBeCalled(t *testing.T) {
	s := checkstest.Serve(t, checkstest.Answering(200, `{"id":"`+strings.Repeat("x", 300)+`"}`))
	c := checks.Config{Hooks: map[string]checks.Hook{
		"nothing": checkstest.Hook("http", &http.Config{URL: s.URL, Capture: "no(thing)"}),
		"long":    checkstest.Hook("http", &http.Config{URL: s.URL, Capture: `"id":"(.*)"`}),
		"signal":  {HookSettings: checks.HookSettings{Signal: &struct{}{}}},
	}}
	r := checkstest.Runner(t, c)
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
		_, err := r.Hook(t.Context(), one.name, one.closing, checkstest.Subject, "key")
		if err == nil || errors.Is(err, checks.ErrMisconfigured) != one.misconfigured || !strings.Contains(err.Error(), one.want) {
			t.Errorf("%s: got %v, want %q", one.name, err, one.want)
		}
	}
}

func TestBodiesAreEscapedAsTheirContentTypeHasIt(t *testing.T) {
	s := checkstest.Serve(t, checkstest.Answering(200, ""))
	hostile := checkstest.Subject
	hostile.Reason = "a&b=\"c\nd"
	for contentType, want := range map[string]string{
		"application/x-www-form-urlencoded": "reason=a%26b%3D%22c%0Ad",
		"application/ld+json":               `reason=a\u0026b=\"c\nd`,
		"text/plain; charset=utf-8":         "reason=a&b=\"c d",
	} {
		c := httpHook(http.Config{URL: s.URL, Body: "reason={{.Reason}}", Headers: map[string]string{"Content-Type": contentType}})
		if _, err := checkstest.Runner(t, c).Hook(t.Context(), "tell", false, hostile, "key"); err != nil {
			t.Fatal(err)
		}
		if _, body := s.Last(t); body != want {
			t.Errorf("%s: got %s, want %s", contentType, body, want)
		}
	}
}

func TestCheckAllAnswersForEach(t *testing.T) {
	s := checkstest.Serve(t, checkstest.Answering(200, ""))
	c := httpCheck(http.Config{URL: s.URL})
	c.Checks["unreadable"] = checkstest.Check("http", &http.Config{URL: s.URL, BearerToken: secret.Value{File: "/does/not/exist"}})
	got, err := checkstest.Runner(t, c).CheckAll(t.Context(), []string{"unreadable", "probe", "unknown"}, checkstest.Subject, "key")
	if err != nil || len(got) != 3 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if got[0].OK || got[0].Check != "unreadable" || !got[1].OK || got[2].OK || !strings.Contains(got[2].Message, `there is no "unknown"`) {
		t.Fatalf("got %+v", got)
	}
}
