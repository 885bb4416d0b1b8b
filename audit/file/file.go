package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"gopkg.in/natefinch/lumberjack.v2"

	"drydock.dev/drydock/audit"
	"drydock.dev/drydock/rules/record"
)

// sink writes lines to a file that it rotates. The file has one chain, which all its writers go on with in turn: they
// read the link of its last record under a lock.
type sink struct {
	mu     sync.Mutex
	path   string
	key    audit.Key
	logger *slog.Logger
	rotate lumberjack.Logger
	// last is the link of the record that this process wrote last.
	last record.Link
}

// Sink makes the sink.
func (c *Config) Sink(e audit.Environment) audit.Sink {
	return &sink{path: c.Path, key: e.Key, logger: e.Logger, rotate: lumberjack.Logger{
		Filename: c.Path, MaxSize: c.sizeMB(), MaxBackups: c.MaxBackups, MaxAge: c.MaxAgeDays, Compress: c.Compress,
	}}
}

// Write writes the line at once. Records are rare, and so the file is opened for each: it may have been moved or removed meanwhile, and an
// error that only closing it returns is not missed.
func (s *sink) Write(ctx context.Context, r record.Record) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(s.path), 0o755); err != nil {
		return fmt.Errorf("making the file's folder: %w", err)
	}
	unlock, err := lock(ctx, s.path+lockEnding)
	if err != nil {
		return fmt.Errorf("waiting for other writers of the file: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	end, err := endOf(s.path)
	if err != nil {
		return err
	}
	if end.torn {
		s.logger.WarnContext(ctx, "the last line of the audit file is not whole: a writer was stopped in the middle of it", "file", s.path)
	}
	after, err := s.after(end.last)
	if err != nil {
		return err
	}
	key, err := s.key.Read()
	if err != nil {
		return err
	}
	sealed, err := r.Sealed(after, key)
	if err != nil {
		return err
	}
	if err := s.append(sealed, end.unended); err != nil {
		return err
	}
	s.last = sealed.Link
	return nil
}

// append writes a line behind one that may have no end: what a crash or a full disk has left of a line must not take this
// one with it.
func (s *sink) append(sealed record.Record, unended bool) error {
	line, err := sealed.Encode()
	if err != nil {
		return err
	}
	var whole []byte
	if unended {
		whole = append(whole, '\n')
	}
	whole = append(append(whole, line...), '\n')
	_, err = s.rotate.Write(whole)
	return errors.Join(err, s.rotate.Close())
}

// after is the link of the record to go on behind: the last of the file, which another process may have written. Where this process's own
// records are missing from the file, it goes on behind its own last one, so that the gap shows. Where neither the file nor this process has
// a record, it goes on behind the last of the rotated files.
func (s *sink) after(end record.Link) (record.Link, error) {
	known := s.last
	if known.Writer == "" && end.Writer == "" {
		rotated, err := lastOfRotated(s.path)
		if err != nil {
			return record.Link{}, err
		}
		known = rotated
	}
	switch {
	case end.Writer != "" && (end.Writer != known.Writer || end.Number > known.Number):
		return end, nil
	case known.Writer != "":
		return known, nil
	}
	return record.Link{Writer: audit.NewWriter()}, nil
}

// lastOfRotated is the link of the last record of the files that were rotated.
func lastOfRotated(path string) (record.Link, error) {
	files, err := rotatedFiles(path)
	if err != nil || len(files) == 0 {
		return record.Link{}, err
	}
	var last record.Link
	newest := files[len(files)-1]
	err = scanRotated(newest, func(l line) {
		if r, err := record.Decode(l.text); err == nil && r.Writer != "" {
			last = r.Link
		}
	})
	var damage DamageReport
	if errors.As(err, &damage) || errors.Is(err, fs.ErrNotExist) {
		err = nil // what is left of it counts
	}
	return last, err
}
