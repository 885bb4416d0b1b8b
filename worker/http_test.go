package worker

import (
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"drydock.dev/drydock/config"
)

func ask(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, strings.TrimSpace(string(text))
}

// Whoever reads the metrics cannot change the log level, and nobody holds a connection for ever.
func TestTheLogLevelHasAListenerOfItsOwn(t *testing.T) {
	c := config.Default()
	c.Listen, c.AdminListen = "127.0.0.1:0", "127.0.0.1:0"
	o := Options{Config: c, Logger: slog.New(slog.DiscardHandler), Level: new(slog.LevelVar)}
	all, err := serve(o, &health{}, prometheus.NewRegistry())
	if err != nil || len(all) != 2 {
		t.Fatalf("%d servers, %v", len(all), err)
	}
	defer all.stop()
	for _, server := range all {
		if server.ReadTimeout == 0 || server.ReadHeaderTimeout == 0 || server.WriteTimeout == 0 || server.IdleTimeout == 0 {
			t.Errorf("%s has no timeouts: %+v", server.Addr, server)
		}
	}
	probes, admin := "http://"+all[0].Addr, "http://"+all[1].Addr
	for path, code := range map[string]int{"/healthz": 200, "/readyz": 503, "/metrics": 200, "/loglevel": 404} {
		if got, _ := ask(t, http.MethodGet, probes+path, ""); got != code {
			t.Errorf("GET %s: %d, want %d", path, got, code)
		}
	}
	for body, want := range map[string]slog.Level{"debug": slog.LevelDebug, "WARN\n": slog.LevelWarn, "error": slog.LevelError, "info": slog.LevelInfo} {
		if code, said := ask(t, http.MethodPut, admin+"/loglevel", body); code != 200 || o.Level.Level() != want || said != want.String() {
			t.Errorf("PUT %q: %d %s, level %s", body, code, said, o.Level.Level())
		}
	}
	o.Level.Set(slog.LevelInfo)
	for _, body := range []string{"", "loud", "info+2", "DEBUG-4", "8", strings.Repeat("x", 100)} {
		if code, _ := ask(t, http.MethodPut, admin+"/loglevel", body); code != 400 || o.Level.Level() != slog.LevelInfo {
			t.Errorf("PUT %q: %d, level %s", body, code, o.Level.Level())
		}
	}
}

// A page whose name leads to this machine neither reads the metrics nor changes the log level.
func TestAPageDoesNotReachTheWorker(t *testing.T) {
	c := config.Default()
	c.Listen, c.AdminListen = "127.0.0.1:0", "127.0.0.1:0"
	o := Options{Config: c, Logger: slog.New(slog.DiscardHandler), Level: new(slog.LevelVar)}
	all, err := serve(o, &health{}, prometheus.NewRegistry())
	if err != nil || len(all) != 2 {
		t.Fatalf("%d servers, %v", len(all), err)
	}
	defer all.stop()
	for _, one := range []struct{ method, url, host, origin string }{
		{http.MethodGet, "http://" + all[0].Addr + "/metrics", "evil.example", ""},
		{http.MethodPut, "http://" + all[1].Addr + "/loglevel", "evil.example", ""},
		{http.MethodPut, "http://" + all[1].Addr + "/loglevel", "", "http://evil.example"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), one.method, one.url, strings.NewReader("debug"))
		if err != nil {
			t.Fatal(err)
		}
		request.Host = one.host
		if one.origin != "" {
			request.Header.Set("Origin", one.origin)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusForbidden || o.Level.Level() != slog.LevelInfo {
			t.Errorf("%+v: %d, level %s", one, response.StatusCode, o.Level.Level())
		}
	}
}

// A taken address of the log level is no reason not to work; one of the probes is.
func TestATakenAddress(t *testing.T) {
	c := config.Default()
	c.Listen, c.AdminListen = "127.0.0.1:0", ""
	o := Options{Config: c, Logger: slog.New(slog.DiscardHandler), Level: new(slog.LevelVar)}
	first, err := serve(o, &health{}, prometheus.NewRegistry())
	if err != nil || len(first) != 1 {
		t.Fatalf("%d servers, %v", len(first), err)
	}
	defer first.stop()
	o.Config.AdminListen = first[0].Addr
	second, err := serve(o, &health{}, prometheus.NewRegistry())
	if err != nil || len(second) != 1 {
		t.Errorf("%d servers, %v", len(second), err)
	}
	second.stop()
	o.Config.Listen = first[0].Addr
	if _, err := serve(o, &health{}, prometheus.NewRegistry()); err == nil {
		t.Error("the probes are nowhere, and nobody is told")
	}
}

// Probes bring no token: the kubelet asks.
func TestMetricsWantATokenWhereTheConfigurationSaysSo(t *testing.T) {
	c := config.Default()
	c.Listen, c.AdminListen, c.Metrics.Authentication = "127.0.0.1:0", "", config.AuthenticationToken
	c.Kubernetes.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	const kubeconfig = `{clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}`
	if err := os.WriteFile(c.Kubernetes.Kubeconfig, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := serve(Options{Config: c, Logger: slog.New(slog.DiscardHandler), Level: new(slog.LevelVar)}, &health{}, prometheus.NewRegistry())
	if err != nil || len(all) != 1 {
		t.Fatalf("%d servers, %v", len(all), err)
	}
	defer all.stop()
	for path, code := range map[string]int{"/healthz": 200, "/readyz": 503, "/metrics": 401} {
		if got, said := ask(t, http.MethodGet, "http://"+all[0].Addr+path, ""); got != code {
			t.Errorf("GET %s: %d %s, want %d", path, got, said, code)
		}
	}
}
