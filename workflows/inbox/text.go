package inbox

import (
	"errors"

	"go.temporal.io/sdk/temporal"
)

// CauseOf leaves out what Temporal says around an activity's error.
func CauseOf(err error) string {
	var cause *temporal.ApplicationError
	if errors.As(err, &cause) {
		return cause.Message()
	}
	return err.Error()
}

// Sentence is what somebody did, with who and why where that was said.
func Sentence(what, by, why string) string {
	if by != "" {
		what += " by " + by
	}
	if why != "" {
		what += ": " + why
	}
	return what
}
