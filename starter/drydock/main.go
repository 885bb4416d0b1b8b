// Command drydock is the command line of Drydock. Installed as kubectl-drydock, it is a kubectl plugin.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	_ "golang.org/x/crypto/x509roots/fallback"

	"drydock.dev/drydock/starter"
	"drydock.dev/drydock/starter/invocation"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return starter.Run(ctx, invocation.Process{
		Args:    os.Args,
		Environ: os.Environ(),
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
		Notify:  func(c chan<- os.Signal) { signal.Notify(c, os.Interrupt, syscall.SIGTERM) },
	})
}
