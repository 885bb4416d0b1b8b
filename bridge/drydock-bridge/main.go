// Command drydock-bridge mirrors Kubernetes objects to Drydock's workflows.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	// Root certificates for images that have none.
	_ "golang.org/x/crypto/x509roots/fallback"

	"drydock.dev/drydock/bridge"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return bridge.Main(ctx, os.Args[1:], os.Stderr)
}
