package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// service is a process that outlives this command. Its pid file is locked for as long as it lives, by a descriptor that it
// inherits: whoever finds the file not locked knows that its number may be anybody's by now.
type service struct {
	name string
	file string
}

func (f folder) service(name string) service { return service{name: name, file: f.path(name + ".pid")} }

// running is what a pid file says.
type running struct {
	PID int `json:"pid"`
	// Made is what it was started from: its binary, and the files that it reads once.
	Made string `json:"made"`
}

// look reports whether the service runs. Where it does not, the file comes back open and locked, for the next one to inherit;
// stale means that one has died.
func (s service) look() (now *running, file *os.File, stale bool, err error) {
	file, err = os.OpenFile(s.file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, false, err
	}
	locked := errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
	data, err := io.ReadAll(file)
	if err != nil || !locked {
		return nil, file, err == nil && len(data) > 0, err
	}
	defer file.Close()
	now = &running{}
	if err := json.Unmarshal(data, now); err != nil || now.PID <= 1 {
		return nil, nil, false, fmt.Errorf("%s is locked by a process that it does not name: end what uses it (fuser %s), and try again", s.file, s.file)
	}
	if errors.Is(syscall.Kill(now.PID, 0), syscall.ESRCH) {
		// What the service had started has inherited the lock, and lives on.
		if err := os.Remove(s.file); err != nil {
			return nil, nil, false, err
		}
		_, file, _, err = s.look()
		return nil, file, true, err
	}
	return now, nil, false, nil
}

// started writes down which process has the file now.
func (s service) started(file *os.File, r running) error {
	data, err := json.Marshal(r)
	if err == nil {
		err = file.Truncate(0)
	}
	if err == nil {
		_, err = file.WriteAt(append(data, '\n'), 0)
	}
	return err
}

// patience is how long a process may take to stop: a worker hands its drains over within 15 s.
const patience = 40 * time.Second

// stop ends the service, if it runs, and waits until it has ended.
func (s service) stop(ctx context.Context) (stopped, stale bool, err error) {
	now, file, stale, err := s.look()
	if err != nil {
		return false, false, err
	}
	if now == nil {
		return false, stale, errors.Join(file.Truncate(0), file.Close())
	}
	if err := syscall.Kill(now.PID, syscall.SIGTERM); err != nil {
		return false, false, fmt.Errorf("stopping %s (process %d): %w", s.name, now.PID, err)
	}
	if err := s.ended(ctx, patience); err != nil {
		if ctx.Err() != nil {
			return false, false, err
		}
		if err := syscall.Kill(now.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return false, false, err
		}
		if err := s.ended(ctx, patience); err != nil {
			return false, false, err
		}
		return true, false, fmt.Errorf("%s (process %d) did not stop within %s and was killed", s.name, now.PID, patience)
	}
	return true, false, nil
}

// ended waits until nobody has the lock any more.
func (s service) ended(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		now, file, _, err := s.look()
		if err != nil {
			return err
		}
		if now == nil {
			return errors.Join(file.Truncate(0), file.Close())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s (process %d) still runs: %w", s.name, now.PID, ctx.Err())
		}
	}
}

// madeOf tells one set of files from another.
func madeOf(paths ...string) (string, error) {
	hash := sha256.New()
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(hash, file)
		file.Close()
		if err != nil {
			return "", err
		}
		hash.Write([]byte{0})
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
