package log_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/audit/audittest"
	"drydock.dev/drydock/audit/log"
	"drydock.dev/drydock/rules/record"
)

func on() *log.Config {
	c := log.Config(true)
	return &c
}

func TestRecordsGoToTheLogWhateverItsLevel(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelError}))
	s := audittest.Sinks("log", on(), logger)
	if _, err := s.Write(t.Context(), audittest.Record("worker-01", "run-1"), nil); err != nil {
		t.Fatal(err)
	}
	var line struct {
		Message string        `json:"msg"`
		Record  record.Record `json:"record"`
	}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	if line.Record.Number != 1 || line.Record.Hash == "" {
		t.Errorf("its place is %+v", line.Record.Link)
	}
	line.Record.Link = record.Link{}
	if diff := cmp.Diff(audittest.Record("worker-01", "run-1"), line.Record); diff != "" || line.Message != "audit record" {
		t.Errorf("%s: want - got +\n%s", line.Message, diff)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestALogThatTakesNothingIsAnError(t *testing.T) {
	s := audittest.Sinks("log", on(), slog.New(slog.NewTextHandler(brokenWriter{}, nil)))
	written, err := s.Write(t.Context(), audittest.Record("worker-01", "run-1"), nil)
	if err == nil || !strings.Contains(err.Error(), "audit sink log: broken pipe") || len(written) > 0 {
		t.Errorf("%v, %v", written, err)
	}
}
