// Package log writes audit records to the worker's own log.
package log

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"drydock.dev/drydock/audit"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/sections"
)

// Kind is the kind of sink that is the worker's log.
var Kind = sections.Kind[audit.SinkConfig]{Name: "log", Config: new(Config)}

// Config writes records into the worker's own log, whatever its level.
type Config bool

// UnmarshalJSON reads true or false.
func (c *Config) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, (*bool)(c)) }

// Validate finds nothing wrong.
func (*Config) Validate(string, *sections.Problems) {}

// Sink makes the sink.
func (c *Config) Sink(e audit.Environment) audit.Sink {
	if !*c {
		return nil
	}
	return sink{e.Logger, audit.NewChain(e.Key)}
}

type sink struct {
	logger *slog.Logger
	chain  *audit.Chain
}

// Write logs the record as the next one of this process.
func (s sink) Write(ctx context.Context, r record.Record) error { return s.chain.Write(ctx, r, s.log) }

// log goes to the handler itself: a level that hides what workers say must not hide records, and the handler's error has
// to be known.
func (s sink) log(ctx context.Context, r record.Record, line []byte) error {
	entry := slog.NewRecord(time.Now(), slog.LevelInfo, "audit record", 0)
	entry.AddAttrs(slog.String("workflowId", r.WorkflowID), slog.String("runId", r.RunID), slog.Any("record", json.RawMessage(line)))
	return s.logger.Handler().Handle(ctx, entry)
}
