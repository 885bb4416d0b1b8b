package k8s_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"drydock.dev/drydock/k8s"
)

func TestRequestsEndThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	hung := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow-body" {
			w.(http.Flusher).Flush()
		}
		if r.URL.Path != "/quick" {
			select {
			case <-hung:
			case <-r.Context().Done():
			}
		}
		io.WriteString(w, "done")
	}))
	defer server.Close()
	defer close(hung)
	client := &http.Client{Transport: k8s.Bounded(http.DefaultTransport, 200*time.Millisecond)}
	ask := func(ctx context.Context, path string) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.ReadAll(response.Body)
		return err
	}
	if err := ask(t.Context(), "/quick"); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/hangs", "/slow-body"} {
		if err := ask(t.Context(), path); err == nil || t.Context().Err() != nil {
			t.Errorf("%s: error = %v", path, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := ask(ctx, "/hangs?watch=true"); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
		t.Errorf("a watch ended early: %v", err)
	}
}
