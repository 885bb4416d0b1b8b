// Package audit keeps the audit records of maintenances: in the log, in files and behind a webhook.
package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"drydock/rules/record"
)

// sink is one place where records go. A sink can get a record again, where it is not known whether the first time
// succeeded.
type sink interface {
	name() string
	// write keeps the record, whose encoding is line, a JSON document without a line's end.
	write(ctx context.Context, r record.Record, line []byte) error
}

// Sinks are all the places where records go.
type Sinks struct {
	sinks []sink
}

// New makes the sinks of a configuration that is valid. It opens nothing: what is not there yet is an error of Write, which
// can be tried again.
func New(c Config, logger *slog.Logger) *Sinks {
	s := &Sinks{}
	if c.Log {
		s.sinks = append(s.sinks, logSink{logger})
	}
	if c.File != nil {
		s.sinks = append(s.sinks, newFileSink(*c.File))
	}
	if c.Webhook != nil {
		s.sinks = append(s.sinks, newWebhookSink(*c.Webhook))
	}
	return s
}

// Names are the sinks' names, in the order in which they are written to.
func (s *Sinks) Names() []string {
	names := make([]string, len(s.sinks))
	for i, sink := range s.sinks {
		names[i] = sink.name()
	}
	return names
}

// Write gives a record to every sink but those in done, which took it before. It returns all that have taken it by now, to
// be passed as done to the next attempt, and joins the errors of those that have not. None of them keeps the others from
// getting the record.
func (s *Sinks) Write(ctx context.Context, r record.Record, done []string) (written []string, err error) {
	written = slices.Clone(done)
	line, err := r.Bounded().Encode()
	if err != nil {
		return written, fmt.Errorf("audit record: %w", err)
	}
	var problems []error
	for _, sink := range s.sinks {
		if slices.Contains(done, sink.name()) {
			continue
		}
		if err := sink.write(ctx, r, line); err != nil {
			problems = append(problems, fmt.Errorf("audit sink %s: %w", sink.name(), err))
			continue
		}
		written = append(written, sink.name())
	}
	return written, errors.Join(problems...)
}

// logSink writes to the worker's log.
type logSink struct{ logger *slog.Logger }

func (logSink) name() string { return "log" }

// write goes to the handler itself: a level that hides what workers say must not hide records, and the handler's error
// has to be known.
func (s logSink) write(ctx context.Context, r record.Record, line []byte) error {
	entry := slog.NewRecord(time.Now(), slog.LevelInfo, "audit record", 0)
	entry.AddAttrs(slog.String("workflowId", r.WorkflowID), slog.String("runId", r.RunID), slog.Any("record", json.RawMessage(line)))
	return s.logger.Handler().Handle(ctx, entry)
}
