// Command drydock-worker runs Drydock's workflows and activities.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	// Root certificates for images that have none.
	_ "golang.org/x/crypto/x509roots/fallback"

	"drydock.dev/drydock/worker"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return worker.Main(ctx, os.Args[1:], os.Stderr)
}
