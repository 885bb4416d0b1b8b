package notify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/secret"
)

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

// AsPermanent marks an error after which another try cannot succeed before somebody changes the configuration or the
// receiver.
func AsPermanent(err error) error { return &failure{err: err, permanent: true} }

// ByStatus makes an error permanent where the receiver's HTTP status says that another try gets the same answer. 401 and
// 403 are not among them: credentials are read again for every try, and rotated ones arrive a little later.
func ByStatus(status int, err error) error {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired,
		http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return err
	}
	if status >= 300 && status < 500 {
		return AsPermanent(err)
	}
	return err
}

// maxAnswer is how much of a receiver's answer an error shows, in bytes.
const maxAnswer = 300

// Answered is nil for a 2xx status and otherwise an error with the beginning of the answer.
func (d *Delivery) Answered(response *http.Response) error {
	if response.StatusCode >= 200 && response.StatusCode < 300 {
		return nil
	}
	if response.StatusCode < 400 {
		return AsPermanent(fmt.Errorf("the receiver answers %s to %q: configure the address that it redirects to",
			response.Status, response.Header.Get("Location")))
	}
	body, err := outbound.ReadBody(response)
	refused := fmt.Errorf("the receiver answers %s: %s", response.Status, outbound.Excerpt(&d.Secrets, body, maxAnswer))
	return ByStatus(response.StatusCode, errors.Join(refused, err))
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

func (d *Delivery) reported(ctx context.Context, err error, retryAfter time.Duration) error {
	return Reported(ctx, "channel "+d.Channel, &d.Secrets, err, retryAfter)
}

// Reported turns an error of a delivery into one without secrets, which Permanent and RetryAfter still understand.
func Reported(ctx context.Context, channel string, known *secret.Redactor, err error, retryAfter time.Duration) error {
	out := &deliveryError{text: channel + ": " + known.Redact(err.Error()), retryAfter: retryAfter}
	var f *failure
	for inner := err; errors.As(inner, &f); inner = f.err {
		out.permanent = out.permanent || f.permanent
	}
	if ctx.Err() != nil {
		out.interrupt, out.permanent = ctx.Err(), false
	}
	return out
}
