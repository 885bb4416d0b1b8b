// Package exit has the exit codes of the command line, and errors that know theirs.
package exit

import (
	"errors"
	"fmt"
	"strings"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/visible"
)

// Exit codes. The help of the root command documents them.
const (
	OK        = 0
	Failed    = 1
	Usage     = 2
	Cancelled = 3
	TimedOut  = 4
	WouldStop = 5

	// exec exits with its command's status, so its own errors need codes that commands rarely use.
	OwnError      = 125
	CannotExecute = 126
	NotFound      = 127
	Interrupted   = 130
)

// CodesHelp lists the codes for the help of the root command.
const CodesHelp = `Exit codes:
  0    success
  1    failed; doctor: something is inconsistent; setup: something is missing
  2    usage: a flag, an argument or the input is wrong, nothing was done
  3    cancelled: the maintenance or the plan ended Cancelled, or a rollout was stopped
  4    timed out: what --timeout waited for did not happen in time, or what was sent is not confirmed
  5    preflight, plan create --dry-run: something would stop a drain; plan create, health start: the worker lacks a permission
  130  waiting was interrupted; the maintenance goes on
exec exits with its command's status, 125 for its own errors, 126 and 127 for a command that cannot be executed or
is not found, and 3 when it was interrupted before the node was ready.`

// Error is an error with the exit code it leads to. Without err there is nothing left to print.
type Error struct {
	code int
	Err  error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// WithCode gives an error its exit code; without an error there is nothing left to print.
func WithCode(code int, err error) error { return &Error{code: code, Err: err} }

// Unless is a code with nothing left to print, unless all is well.
func Unless(well bool, code int) error {
	if well {
		return nil
	}
	return WithCode(code, nil)
}

// UsageError is for what the user can only mend by typing something else.
func UsageError(format string, args ...any) error {
	return WithCode(Usage, fmt.Errorf(format, args...))
}

// CodeOf is the exit code of an error; of several joined ones the worst, in the order failed, timed out, cancelled.
func CodeOf(err error) int {
	if err == nil {
		return OK
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		code := OK
		for _, e := range joined.Unwrap() {
			code = worse(code, CodeOf(e))
		}
		return code
	}
	var coded *Error
	switch {
	case errors.As(err, &coded):
		return coded.code
	case errors.Is(err, ErrTimedOut):
		return TimedOut
	case errors.Is(err, ErrInterrupted):
		return Interrupted
	default:
		return Failed
	}
}

// Has reports whether an error is of a type, or wraps one that is.
func Has[E error](err error) bool {
	_, has := errors.AsType[E](err)
	return has
}

// worse picks the code that says more of two, so that of many nodes one failure is never hidden.
func worse(a, b int) int {
	for _, code := range []int{Interrupted, Usage, Failed, TimedOut, Cancelled} {
		if a == code || b == code {
			return code
		}
	}
	return max(a, b)
}

// EndCode is the exit code for the end of a maintenance that was meant to complete.
func EndCode(end api.Phase) int {
	switch end {
	case api.Completed:
		return OK
	case api.Cancelled:
		return Cancelled
	default:
		return Failed
	}
}

// Hint appends a line that says what to do next.
func Hint(err error, format string, args ...any) error {
	return fmt.Errorf("%w\n%s", err, fmt.Sprintf(format, args...))
}

// Indent shifts all lines but the first, which follows "Error: ".
func Indent(text string) string { return strings.ReplaceAll(visible.Lines(text), "\n", "\n  ") }

// Joined is nil for no errors, and for one is that one.
func Joined(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// InWords is an error with another text for people, that is still the same to programs.
func InWords(text string, err error) error { return &inWords{text: text, err: err} }

type inWords struct {
	text string
	err  error
}

func (e *inWords) Error() string { return e.text }
func (e *inWords) Unwrap() error { return e.err }
