package starter

import (
	"errors"
	"fmt"
	"strings"

	"drydock/api"
)

// Exit codes. The help of the root command documents them.
const (
	exitOK        = 0
	exitFailed    = 1
	exitUsage     = 2
	exitCancelled = 3
	exitTimedOut  = 4
	exitWouldStop = 5

	// exec exits with its command's status, so its own errors need codes that commands rarely use.
	exitOwnError      = 125
	exitCannotExecute = 126
	exitNotFound      = 127
	exitInterrupted   = 130
)

const exitCodesHelp = `Exit codes:
  0    success
  1    failed; doctor: something is inconsistent
  2    usage: a flag or an argument is wrong, nothing was done
  3    cancelled: the maintenance ended Cancelled, or a rollout was stopped
  4    timed out: what --timeout waited for did not happen in time
  5    preflight: something would stop the drain
  130  waiting was interrupted; the maintenance goes on
exec exits with its command's status, 125 for its own errors, 126 and 127 for a command that cannot be executed or
is not found, and 3 when it was interrupted before the node was ready.`

// Why a wait ended without what it waited for; both are causes of a cancelled context.
var (
	errTimedOut    = errors.New("timed out")
	errInterrupted = errors.New("interrupted")
)

// exitError is an error with the exit code it leads to. Without err there is nothing left to print.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func withCode(code int, err error) error { return &exitError{code: code, err: err} }

// usageError is for what the user can only mend by typing something else.
func usageError(format string, args ...any) error {
	return withCode(exitUsage, fmt.Errorf(format, args...))
}

// codeOf is the exit code of an error; of several joined ones the worst, in the order failed, timed out, cancelled.
func codeOf(err error) int {
	if err == nil {
		return exitOK
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		code := exitOK
		for _, e := range joined.Unwrap() {
			code = worse(code, codeOf(e))
		}
		return code
	}
	var coded *exitError
	switch {
	case errors.As(err, &coded):
		return coded.code
	case errors.Is(err, errTimedOut):
		return exitTimedOut
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	default:
		return exitFailed
	}
}

// worse picks the code that says more of two, so that of many nodes one failure is never hidden.
func worse(a, b int) int {
	for _, code := range []int{exitInterrupted, exitUsage, exitFailed, exitTimedOut, exitCancelled} {
		if a == code || b == code {
			return code
		}
	}
	return max(a, b)
}

// endCode is the exit code for the end of a maintenance that was meant to complete.
func endCode(end api.Phase) int {
	switch end {
	case api.Completed:
		return exitOK
	case api.Cancelled:
		return exitCancelled
	default:
		return exitFailed
	}
}

// hint appends a line that says what to do next.
func hint(err error, format string, args ...any) error {
	return fmt.Errorf("%w\n%s", err, fmt.Sprintf(format, args...))
}

// indent shifts all lines but the first, which follows "Error: ".
func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }
