package invocation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const endWithin = 5 * time.Second

// Serve serves at the server's address until ctx ends, by TLS where the server is configured for it, and prints where what is served is.
func (a *App) Serve(ctx context.Context, server *http.Server, what string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", server.Addr)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	scheme, served := "http", make(chan error, 1)
	if server.TLSConfig != nil {
		scheme = "https"
		go func() { served <- server.ServeTLS(listener, "", "") }()
	} else {
		go func() { served <- server.Serve(listener) }()
	}
	fmt.Fprintf(a.Stdout, "%s is %s://%s\n", what, scheme, listener.Addr())
	select {
	case err := <-served:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
		defer cancel()
		if err := server.Shutdown(ending); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("stopping: %w", err)
		}
		return nil
	}
}
