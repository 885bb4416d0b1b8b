package kube

import (
	"context"
	"net/http"
	"time"
)

// serverTimeKey is where a context has the *time.Time that dated fills.
type serverTimeKey struct{}

// NoteServerTime lets requests with the context say what time it was by the API server's clock when it answered, in whole seconds:
// at stays as it is where the answer does not say.
func NoteServerTime(ctx context.Context, at *time.Time) context.Context {
	return context.WithValue(ctx, serverTimeKey{}, at)
}

// dated notes the time of answers.
type dated struct{ next http.RoundTripper }

// RoundTrip sends a request.
func (d dated) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := d.next.RoundTrip(r)
	if at, ok := r.Context().Value(serverTimeKey{}).(*time.Time); ok && err == nil {
		if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
			*at = date
		}
	}
	return response, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (d dated) WrappedRoundTripper() http.RoundTripper { return d.next }
