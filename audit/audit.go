// Package audit keeps the audit records of maintenances. Each kind of sink is a package below this one, which imports none of them: package
// kinds lists them.
package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/secret"
)

// Sink is one place where records go. A sink can get a record again, where it is not known whether the first time
// succeeded.
type Sink interface {
	// Write keeps the record as the next one of the sink's chain.
	Write(ctx context.Context, r record.Record) error
}

// Environment is what sinks get from the worker.
type Environment struct {
	Logger *slog.Logger
	Key    Key
}

// Key proves who wrote a record. The zero value proves nothing.
type Key struct{ place secret.Value }

// Read reads the key, nil if none is configured: each time, so that a rotated one counts without a restart.
func (k Key) Read() ([]byte, error) {
	if k.place.IsZero() {
		return nil, nil
	}
	text, err := k.place.Read()
	if err == nil {
		err = record.CheckKey([]byte(text))
	}
	if err != nil {
		return nil, fmt.Errorf("audit.key: %w", err)
	}
	return []byte(text), nil
}

// Sinks are all the places where records go.
type Sinks struct{ sinks []namedSink }

type namedSink struct {
	name string
	Sink
}

// New makes the sinks of a configuration that is valid. It opens nothing: what is not there yet is an error of Write, which
// can be tried again.
func New(c Config, logger *slog.Logger) *Sinks {
	s := &Sinks{}
	for _, chosen := range c.Sinks {
		if sink := chosen.Config.Sink(Environment{Logger: logger, Key: Key{c.Key}}); sink != nil {
			s.sinks = append(s.sinks, namedSink{chosen.Kind, sink})
		}
	}
	return s
}

// Names are the sinks' names, in the order in which they are written to.
func (s *Sinks) Names() []string {
	names := make([]string, len(s.sinks))
	for i, sink := range s.sinks {
		names[i] = sink.name
	}
	return names
}

// Write gives a record to every sink but those in done, which took it before. It returns all that have taken it by now, to
// be passed as done to the next attempt, and joins the errors of those that have not. None of them keeps the others from
// getting the record.
func (s *Sinks) Write(ctx context.Context, r record.Record, done []string) (written []string, err error) {
	written = slices.Clone(done)
	if err := r.Validate(); err != nil {
		return written, fmt.Errorf("audit record: %w", err)
	}
	var problems []error
	for _, sink := range s.sinks {
		if slices.Contains(done, sink.name) {
			continue
		}
		if err := sink.Write(ctx, r); err != nil {
			problems = append(problems, fmt.Errorf("audit sink %s: %w", sink.name, err))
			continue
		}
		written = append(written, sink.name)
	}
	return written, errors.Join(problems...)
}
