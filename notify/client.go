package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	requestTimeout = 15 * time.Second
	// maxAnswer bounds what is read of a receiver's answer.
	maxAnswer = 1 << 20
)

// newClient makes a client that follows no redirect: the next host would get the secrets of this one.
func newClient(transport *http.Transport) *http.Client {
	return &http.Client{
		Transport:     careful{transport},
		Timeout:       requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func defaultTransport() *http.Transport {
	return http.DefaultTransport.(*http.Transport).Clone()
}

// careful reads no more of an answer than is worth reading, and notes how long the receiver wants to be left alone.
type careful struct{ next http.RoundTripper }

func (c careful) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, maxAnswer), response.Body}
	if wait, ok := r.Context().Value(waitKey{}).(*time.Duration); ok && response.StatusCode >= 300 {
		*wait = parseRetryAfter(response.Header.Get("Retry-After"), time.Now())
	}
	return response, nil
}

// waitKey is where a delivery's context has the *time.Duration that careful fills.
type waitKey struct{}

func noting(ctx context.Context, wait *time.Duration) context.Context {
	return context.WithValue(ctx, waitKey{}, wait)
}

// authority is a file of certificates that are trusted besides the system's; empty is none. It is read anew for each
// delivery, so that a renewed one counts, and the client is kept for as long as it stays the same.
type authority struct {
	file string

	mu     sync.Mutex
	pem    []byte
	client *http.Client
}

// pool reads the certificates; nil stands for the system's.
func (a *authority) pool() (*x509.CertPool, []byte, error) {
	if a.file == "" {
		return nil, nil, nil
	}
	pem, err := os.ReadFile(a.file)
	if err != nil {
		return nil, nil, fmt.Errorf("caFile: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, nil, fmt.Errorf("the system's certificates: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, nil, fmt.Errorf("caFile: %s has no certificate in PEM form", a.file)
	}
	return pool, pem, nil
}

func (a *authority) http() (*http.Client, error) {
	pool, pem, err := a.pool()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client != nil && bytes.Equal(pem, a.pem) {
		return a.client, nil
	}
	if a.client != nil {
		a.client.CloseIdleConnections()
	}
	transport := defaultTransport()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	a.client, a.pem = newClient(transport), pem
	return a.client, nil
}

// answered is nil for a 2xx status and otherwise an error with the beginning of the answer.
func answered(response *http.Response) error {
	if response.StatusCode >= 200 && response.StatusCode < 300 {
		return nil
	}
	if response.StatusCode < 400 {
		return permanent(fmt.Errorf("the receiver answers %s to %q: configure the address that it redirects to",
			response.Status, response.Header.Get("Location")))
	}
	beginning, err := io.ReadAll(io.LimitReader(response.Body, 300))
	refused := fmt.Errorf("the receiver answers %s: %s", response.Status, oneLine(string(beginning)))
	return byStatus(response.StatusCode, errors.Join(refused, err))
}
