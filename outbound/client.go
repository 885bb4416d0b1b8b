// Package outbound is how Drydock calls others by HTTP, for notifications, checks and audit records alike: whom it trusts,
// which URLs it calls, what it reads of an answer, and what it shows of what went wrong.
package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

const (
	// DefaultTimeout bounds a call where nothing else is said.
	DefaultTimeout = 15 * time.Second
	// DefaultMaxBody bounds what is read of an answer, in bytes, where nothing else is said.
	DefaultMaxBody = 1 << 20
	// maxHeader bounds the headers of an answer, in bytes.
	maxHeader = 64 << 10
)

// Options say how one call is made.
type Options struct {
	// CAFile has certificates that are trusted besides the system's; empty is none.
	CAFile string
	// Timeout bounds the whole call, the answer's body included; 0 is DefaultTimeout.
	Timeout time.Duration
	// MaxBody is how much of an answer is read; reading on is an error. 0 is DefaultMaxBody.
	MaxBody int64
	// Header is set on every request, for libraries that make the requests themselves.
	Header http.Header
	// Node is set where a node decides the URL's host: the connection is made straight to an address that it allows, and by no
	// proxy, which would resolve the name again.
	Node *NodeAddresses
}

// NewClient makes a client for one call. Each call gets one of its own: the file of authorities can change meanwhile, and a
// kept connection may lead to a node that was rebooted. It follows no redirect: the next host would get the secrets of
// this one.
func NewClient(o Options) (*http.Client, error) {
	pool, err := Authorities(o.CAFile)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	if o.Node != nil {
		dialer := &net.Dialer{Timeout: DefaultTimeout, Control: o.Node.control}
		transport.DialContext, transport.Proxy = dialer.DialContext, nil
	}
	return Limit(transport, o), nil
}

// Limit is NewClient for a library that has a transport of its own; Options.CAFile and Options.Node do not count.
func Limit(transport *http.Transport, o Options) *http.Client {
	transport.DisableKeepAlives = true
	transport.MaxResponseHeaderBytes = maxHeader
	limited := limited{next: transport, header: o.Header, maxBody: o.MaxBody, timeout: o.Timeout}
	if limited.maxBody == 0 {
		limited.maxBody = DefaultMaxBody
	}
	if limited.timeout == 0 {
		limited.timeout = DefaultTimeout
	}
	return &http.Client{
		Transport:     limited,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Authorities are the system's, and those in the file too; nil, which stands for the system's, without a file.
func Authorities(caFile string) (*x509.CertPool, error) {
	if caFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("caFile: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("the system's certificates: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("caFile: %s has no certificate in PEM form", caFile)
	}
	return pool, nil
}

// errTimeout is what http.Client says of its own timeout. That one is not used: with a transport like limited it says so
// only sometimes.
var errTimeout = fmt.Errorf("%w (Client.Timeout exceeded while awaiting headers)", context.DeadlineExceeded)

// limited sets headers, bounds how long is waited for an answer and what is read of it, and notes how long the other side
// wants to be left alone.
type limited struct {
	next    http.RoundTripper
	header  http.Header
	maxBody int64
	timeout time.Duration
}

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(r.Context(), l.timeout, errTimeout)
	r = r.Clone(ctx)
	for name, values := range l.header {
		r.Header[name] = values
	}
	response, err := l.next.RoundTrip(r)
	if err != nil {
		cancel()
		if errors.Is(context.Cause(ctx), errTimeout) {
			return nil, errTimeout
		}
		return nil, err
	}
	response.Body = body{http.MaxBytesReader(nil, response.Body, l.maxBody), cancel}
	if wait, ok := r.Context().Value(retryAfterKey{}).(*time.Duration); ok && response.StatusCode >= 300 {
		*wait = parseRetryAfter(response.Header.Get("Retry-After"), time.Now())
	}
	return response, nil
}

// body ends the call when it is closed.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// retryAfterKey is where a context has the *time.Duration that limited fills.
type retryAfterKey struct{}

// NoteRetryAfter lets calls with the context say how long the other side asked to be left alone: wait is 0 where it did
// not ask.
func NoteRetryAfter(ctx context.Context, wait *time.Duration) context.Context {
	return context.WithValue(ctx, retryAfterKey{}, wait)
}
