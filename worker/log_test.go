package worker

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
)

func TestAnActivityThatWasToldToEndIsNoError(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		level slog.Level
		want  string
	}{
		"told to end":              {temporal.NewCanceledError("progress"), slog.LevelInfo, ""},
		"told to end, looked for":  {temporal.NewCanceledError("progress"), slog.LevelDebug, "level=DEBUG msg=\"Activity error.\""},
		"its context was":          {context.Canceled, slog.LevelInfo, ""},
		"failed":                   {errors.New("no power"), slog.LevelInfo, "level=ERROR msg=\"Activity error.\""},
		"failed, a drain it is of": {temporal.NewApplicationError("cancelled", "Odd"), slog.LevelInfo, "level=ERROR msg=\"Activity error.\""},
	} {
		var out strings.Builder
		suite := testsuite.WorkflowTestSuite{}
		suite.SetLogger(log.NewStructuredLogger(slog.New(calm{slog.NewTextHandler(&out, &slog.HandlerOptions{Level: c.level})}).With("worker", "w")))
		env := suite.NewTestActivityEnvironment()
		drain := func(context.Context) error { return c.err }
		env.RegisterActivity(drain)
		if _, err := env.ExecuteActivity(drain); err == nil {
			t.Fatal("the activity did not fail")
		}
		lines := strings.Join(activityErrors(out.String()), "\n")
		if (c.want == "") != (lines == "") || !strings.Contains(lines, c.want) {
			t.Errorf("%s: %q, want %q", name, lines, c.want)
		}
	}
}

func activityErrors(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, "Activity error.") {
			lines = append(lines, line)
		}
	}
	return lines
}
