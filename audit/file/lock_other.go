//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package file

import "context"

// lock keeps nobody from writing here: each worker wants a file of its own.
func lock(context.Context, string) (unlock func() error, err error) {
	return func() error { return nil }, nil
}
