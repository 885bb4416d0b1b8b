package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"gopkg.in/natefinch/lumberjack.v2"

	"drydock/audit"
	"drydock/rules/record"
)

// sink writes lines to a file that it rotates.
type sink struct {
	mu     sync.Mutex
	path   string
	rotate lumberjack.Logger
}

// Sink makes the sink.
func (c *Config) Sink(*slog.Logger) audit.Sink {
	return &sink{path: c.Path, rotate: lumberjack.Logger{
		Filename: c.Path, MaxSize: c.sizeMB(), MaxBackups: c.MaxBackups, MaxAge: c.MaxAgeDays, Compress: c.Compress,
	}}
}

// Write writes the line at once. Records are rare, and so the file is opened for each: it may have been moved or removed
// meanwhile, and an error that only closing it tells is not missed.
func (s *sink) Write(_ context.Context, _ record.Record, line []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	torn, err := prepare(s.path)
	if err != nil {
		return err
	}
	var whole []byte
	if torn {
		// What a crash or a full disk has left of a line must not take this one with it.
		whole = append(whole, '\n')
	}
	whole = append(append(whole, line...), '\n')
	_, err = s.rotate.Write(whole)
	return errors.Join(err, s.rotate.Close())
}

// prepare makes the file where there is none, and tells whether its last line has no end.
func prepare(path string) (torn bool, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, fmt.Errorf("making the file's folder: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return false, err
	}
	last := make([]byte, 1)
	if _, err := file.ReadAt(last, size-1); err != nil {
		return false, fmt.Errorf("reading the end of %s: %w", path, err)
	}
	return last[0] != '\n', nil
}
