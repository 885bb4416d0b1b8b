package temporalenv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
)

// Process are the options of a process that runs for long: those that are given, or where that is nil those of its environment, with an
// address and a namespace in any case.
func Process(given *client.Options, logger *slog.Logger) (client.Options, error) {
	var options client.Options
	if given != nil {
		options = *given
	} else {
		var err error
		report := func(err error) { logger.Warn("what was read before is used", "error", err) }
		if options, err = Reported(envconfig.EnvLookupOS, "", report); err != nil {
			return options, fmt.Errorf("reading the Temporal connection from the environment: %w", err)
		}
	}
	options.HostPort = cmp.Or(options.HostPort, client.DefaultHostPort)
	options.Namespace = cmp.Or(options.Namespace, client.DefaultNamespace)
	return options, nil
}

// dialPause is the pause between two tries to reach Temporal.
const dialPause = 2 * time.Second

// Dial connects to Temporal, and keeps trying while the server is not there: a process may start before its server.
func Dial(ctx context.Context, options client.Options, logger *slog.Logger) (client.Client, error) {
	for {
		temporal, err := client.DialContext(ctx, options)
		if err == nil {
			return temporal, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("connecting to Temporal at %s: %w", options.HostPort, errors.Join(ctx.Err(), err))
		}
		logger.Warn("Temporal is not reachable; trying again",
			"address", options.HostPort, "error", err, "next", cmp.Or(Advice(err), "TEMPORAL_ADDRESS says where it is"), "again", dialPause)
		select {
		case <-time.After(dialPause):
		case <-ctx.Done():
		}
	}
}
