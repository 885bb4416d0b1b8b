package worker

import (
	"context"
	"errors"
	"log/slog"

	"go.temporal.io/sdk/temporal"
)

// endings are the messages with which Temporal's SDK and client-go log what was cancelled.
var endings = map[string]bool{"Activity error.": true, "RecordActivityHeartbeat with error": true, "Failed to watch": true}

// calm keeps endings from being logged as errors and warnings: the drain of a maintenance is cancelled with it, and after a consent.
type calm struct{ slog.Handler }

// Handle logs an activity that was cancelled for those who look for it only.
func (h calm) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn && endings[r.Message] && wasCancelled(r) {
		if !h.Enabled(ctx, slog.LevelDebug) {
			return nil
		}
		r.Level = slog.LevelDebug
	}
	return h.Handler.Handle(ctx, r)
}

func wasCancelled(r slog.Record) (cancelled bool) {
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		cancelled = ok && (temporal.IsCanceledError(err) || errors.Is(err, context.Canceled))
		return !cancelled
	})
	return cancelled
}

// WithAttrs keeps calm.
func (h calm) WithAttrs(attrs []slog.Attr) slog.Handler { return calm{h.Handler.WithAttrs(attrs)} }

// WithGroup keeps calm.
func (h calm) WithGroup(name string) slog.Handler { return calm{h.Handler.WithGroup(name)} }
