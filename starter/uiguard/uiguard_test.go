package uiguard_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"drydock.dev/drydock/starter"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
)

// guard runs the command before a UI, and returns where it listens.
func guard(t *testing.T, ui http.Handler, args ...string) string {
	t.Helper()
	behind := httptest.NewServer(ui)
	t.Cleanup(behind.Close)
	ctx, stop := context.WithCancel(t.Context())
	out, said := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- starter.Run(ctx, invocation.Process{
			Args:  append([]string{"drydock", "ui-guard", "--listen", "127.0.0.1:0", "--ui", behind.URL}, args...),
			Stdin: strings.NewReader(""), Stdout: said, Stderr: io.Discard,
		})
		said.Close()
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != exit.OK {
			t.Errorf("it ended with %d", code)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(strings.TrimSpace(line), "The UI is ")
}

// answer is a response whose body was read.
type answer struct {
	StatusCode int
	Status     string
	Header     http.Header
	Cookies    []*http.Cookie
}

func send(t *testing.T, method, url, host string, header map[string]string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return answer{response.StatusCode, response.Status, response.Header, response.Cookies()}
}

func TestPagesOfOtherSitesDoNotReachTheUI(t *testing.T) {
	var reached atomic.Int32
	url := guard(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		http.SetCookie(w, &http.Cookie{Name: "_csrf", Value: "x", SameSite: http.SameSiteStrictMode})
		http.SetCookie(w, &http.Cookie{Name: "user", Value: "y"})
		w.Header().Set("X-Frame-Options", "ALLOWALL")
		w.Header().Set("Content-Security-Policy", "script-src 'self'")
	}), "--name", "ui.example")
	for name, one := range map[string]struct {
		host   string
		header map[string]string
		want   int
	}{
		"a name that leads here": {"evil.example", map[string]string{"Content-Type": "application/json"}, http.StatusForbidden},
		"another page":           {"", map[string]string{"Content-Type": "application/json", "Origin": "https://evil.example"}, http.StatusForbidden},
		"text":                   {"", map[string]string{"Content-Type": "text/plain"}, http.StatusUnsupportedMediaType},
	} {
		if got := send(t, http.MethodPost, url, one.host, one.header); got.StatusCode != one.want {
			t.Errorf("%s: %s, want %d", name, got.Status, one.want)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Fatalf("%d requests reached the UI", n)
	}
	for _, host := range []string{"", "ui.example"} {
		if got := send(t, http.MethodPost, url, host, map[string]string{"Content-Type": "text/plain", "X-CSRF-TOKEN": "x"}); got.StatusCode != http.StatusOK {
			t.Errorf("the UI's own request at %q: %s", host, got.Status)
		}
	}
	page := send(t, http.MethodGet, url, "", nil)
	if got := page.Header.Values("X-Frame-Options"); len(got) != 1 || got[0] != "SAMEORIGIN" {
		t.Errorf("X-Frame-Options: %q", got)
	}
	if got := strings.Join(page.Header.Values("Content-Security-Policy"), ","); !strings.Contains(got, "frame-ancestors 'self'") || !strings.Contains(got, "script-src 'self'") {
		t.Errorf("Content-Security-Policy: %q", got)
	}
	for _, cookie := range page.Cookies {
		if want := map[string]http.SameSite{"_csrf": http.SameSiteStrictMode, "user": http.SameSiteLaxMode}[cookie.Name]; cookie.SameSite != want {
			t.Errorf("cookie %s: SameSite %v, want %v", cookie.Name, cookie.SameSite, want)
		}
	}
}

// Prometheus' clients send a query as a form, and as GET where that is answered with 405.
func TestAReadOnlyGuardAnswersNothingThatChanges(t *testing.T) {
	var reached atomic.Int32
	url := guard(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }), "--read-only")
	for name, one := range map[string]struct {
		method, host, kind string
		want               int
	}{
		"a query as a form":      {http.MethodPost, "", "application/x-www-form-urlencoded", http.StatusMethodNotAllowed},
		"JSON":                   {http.MethodPost, "", "application/json", http.StatusMethodNotAllowed},
		"PUT":                    {http.MethodPut, "", "application/json", http.StatusMethodNotAllowed},
		"a name that leads here": {http.MethodGet, "evil.example", "", http.StatusForbidden},
		"GET":                    {http.MethodGet, "", "", http.StatusOK},
		"HEAD":                   {http.MethodHead, "", "", http.StatusOK},
	} {
		got := send(t, one.method, url, one.host, map[string]string{"Content-Type": one.kind})
		if got.StatusCode != one.want || one.want == http.StatusMethodNotAllowed && got.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %s, Allow %q, want %d", name, got.Status, got.Header.Get("Allow"), one.want)
		}
	}
	if n := reached.Load(); n != 2 {
		t.Errorf("%d requests reached the UI", n)
	}
}

func TestAWrongAddressOfTheUIIsRefused(t *testing.T) {
	for _, ui := range []string{"", "127.0.0.1:6668", "http://127.0.0.1:6668/", "ftp://127.0.0.1:6668"} {
		var said strings.Builder
		code := starter.Run(t.Context(), invocation.Process{
			Args: []string{"drydock", "ui-guard", "--ui", ui}, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &said,
		})
		if code != exit.Usage || !strings.Contains(said.String(), "--ui") {
			t.Errorf("--ui %q: %d, %s", ui, code, said.String())
		}
	}
}
