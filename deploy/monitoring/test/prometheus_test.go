package monitoring_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// server is a Prometheus that scrapes a worker every second.
type server struct{ url string }

// configuration asks for native histograms and for classic ones, as docs/reference/metrics.md does.
const configuration = `
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
- job_name: drydock
  scrape_native_histograms: true
  always_scrape_classic_histograms: true
  static_configs: [{targets: [%s]}]
`

// startPrometheus runs one until the test ends.
func startPrometheus(t *testing.T, worker string) server {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs("../rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	target := strings.TrimPrefix(worker, "http://")
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, fmt.Appendf(nil, configuration, rules, target), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "config", file)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	cmd := exec.Command(tool(t, "prometheus"), "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself, which Wait tells
		if err := cmd.Wait(); err != nil {
			t.Errorf("prometheus: %v", err)
		}
	})
	s := server{"http://" + address}
	s.eventually(t, "Prometheus to be ready", func() error {
		response, err := http.Get(s.url + "/-/ready") //nolint:noctx // it is on this machine
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return errors.New(response.Status)
		}
		return nil
	})
	return s
}

func (s server) eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waiting for %s: %v", what, err)
		}
	}
}

// get asks Prometheus, and reads what it answers.
func get[T any](ctx context.Context, s server, path string, query url.Values) (data T, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/"+path+"?"+query.Encode(), nil)
	if err != nil {
		return data, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return data, err
	}
	defer response.Body.Close()
	var answer struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   T      `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return data, fmt.Errorf("%s: %w", response.Status, err)
	}
	if answer.Status != "success" {
		return data, errors.New(answer.Error)
	}
	return answer.Data, nil
}

// result is what a query finds.
type result struct {
	Result []found `json:"result"`
}

// found is a series. It has a Value where it was asked for now, and Values where it was asked for over a time.
type found struct {
	Metric map[string]string `json:"metric"`
	Value  sample            `json:"value"`
	Values []sample          `json:"values"`
}

// sample is a value of a series: its time in seconds, and a number as text.
type sample struct{ at, value float64 }

// UnmarshalJSON reads the pair that Prometheus sends.
func (s *sample) UnmarshalJSON(text []byte) (err error) {
	var number string
	if err := json.Unmarshal(text, &[]any{&s.at, &number}); err != nil {
		return err
	}
	s.value, err = strconv.ParseFloat(number, 64)
	return err
}

// now asks for a query's value now.
func (s server) now(ctx context.Context, query string) (result, error) {
	return get[result](ctx, s, "query", url.Values{"query": {query}})
}

// between asks for its values of each second of a time.
func (s server) between(ctx context.Context, query string, from, to time.Time) (result, error) {
	seconds := func(at time.Time) string { return fmt.Sprint(at.Unix()) }
	return get[result](ctx, s, "query_range", url.Values{"query": {query}, "start": {seconds(from)}, "end": {seconds(to)}, "step": {"1"}})
}

// series are those that match a selector.
func (s server) series(ctx context.Context, selector string) ([]map[string]string, error) {
	return get[[]map[string]string](ctx, s, "series", url.Values{"match[]": {selector}})
}
