//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package file

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// lockPause is the time between attempts to get a lock.
const lockPause = 20 * time.Millisecond

// lock keeps other processes from writing. The lock is on a file of its own, since the file that is written to may be
// rotated under it; it ends with the process.
func lock(ctx context.Context, path string) (unlock func() error, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return file.Close, nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return nil, errors.Join(os.NewSyscallError("flock", err), file.Close())
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), file.Close())
		}
	}
}
