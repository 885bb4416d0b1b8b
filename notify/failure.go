package notify

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// maxRetryAfter bounds what a receiver can ask for.
const maxRetryAfter = 24 * time.Hour

// failure is an error of a delivery before its secrets are taken out.
type failure struct {
	err       error
	doing     string
	permanent bool
}

func (f *failure) Error() string {
	if f.doing == "" {
		return f.err.Error()
	}
	return f.doing + ": " + f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

func permanent(err error) error { return &failure{err: err, permanent: true} }

// byStatus makes an error permanent where the receiver's HTTP status says that another try gets the same answer. 401 and
// 403 are not among them: credentials are read anew for every try, and rotated ones arrive a little later.
func byStatus(status int, err error) error {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired,
		http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return err
	}
	if status >= 300 && status < 500 {
		return permanent(err)
	}
	return err
}

// deliveryError is what leaves Send: text without secrets, and nothing to unwrap that still has them.
type deliveryError struct {
	text       string
	permanent  bool
	retryAfter time.Duration
	interrupt  error // context.Canceled, context.DeadlineExceeded or nil
}

func (e *deliveryError) Error() string { return e.text }

func (e *deliveryError) Unwrap() error { return e.interrupt }

// Permanent says that another try cannot succeed before somebody changes the configuration or the receiver.
func Permanent(err error) bool {
	var e *deliveryError
	return errors.As(err, &e) && e.permanent
}

// RetryAfter is how long the receiver asked to be left alone; 0 where it did not ask.
func RetryAfter(err error) time.Duration {
	var e *deliveryError
	if errors.As(err, &e) {
		return e.retryAfter
	}
	return 0
}

// reported turns an error into what may be seen of it.
func reported(ctx context.Context, channel string, err error, secrets *disclosed, retryAfter time.Duration) error {
	out := &deliveryError{text: "channel " + channel + ": " + secrets.Redact(err.Error()), retryAfter: retryAfter}
	var f *failure
	for inner := err; errors.As(inner, &f); inner = f.err {
		out.permanent = out.permanent || f.permanent
	}
	if ctx.Err() != nil {
		out.interrupt, out.permanent = ctx.Err(), false
	}
	return out
}

// parseRetryAfter reads the header's two forms, seconds and a date; 0 is what it cannot read.
func parseRetryAfter(header string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.Atoi(header); err == nil {
		wait = time.Duration(min(max(seconds, 0), int(maxRetryAfter/time.Second))) * time.Second
	} else if date, err := http.ParseTime(header); err == nil {
		wait = date.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}
