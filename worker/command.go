package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/config"
	"drydock.dev/drydock/docs/schemas"
)

// Version is the release, set by the linker.
var Version = "dev"

const long = `drydock-worker runs Drydock's workflows and activities: it polls a Temporal task queue and calls the
Kubernetes API. Run one or more per cluster; they share the work.

Temporal is found as by every other Temporal tool: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY,
TEMPORAL_TLS..., or a profile of the Temporal configuration file (TEMPORAL_PROFILE). Files that they name, and those of
DRYDOCK_TEMPORAL_API_KEY_FILE and DRYDOCK_CODEC_KEYS_FILE, are read anew while it runs.
Kubernetes is found as by kubectl (KUBECONFIG), or inside a cluster by the pod's service account.

Everything else is in a YAML file (--config or DRYDOCK_CONFIG); the environment beats the file, flags beat both:
  %s

It serves /metrics, /healthz and /readyz, and on loopback /loglevel. To see more for a while:
  curl -X PUT -d debug http://127.0.0.1:8081/loglevel

SIGINT and SIGTERM stop it gracefully: running drains are handed to another worker, or go on when it is back.`

// Main runs the command line; it returns the exit status.
func Main(ctx context.Context, args []string, stderr io.Writer) int {
	tuneGarbage()
	cmd := new(flags).command(stderr)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(stderr, "drydock-worker:", err)
		var usage usageError
		if errors.As(err, &usage) {
			return 2
		}
		return 1
	}
	return 0
}

type usageError struct{ error }

type flags struct {
	file  string
	check bool
	ready bool
	set   *pflag.FlagSet
}

func (f *flags) command(stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:           "drydock-worker",
		Short:         "Run Drydock's workflows and activities",
		Long:          fmt.Sprintf(long, strings.Join(config.Environment(), ", ")),
		Example:       "  drydock-worker --config drydock.yaml\n  drydock-worker --config drydock.yaml --check",
		Version:       Version,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, stderr)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	cmd.SetErr(stderr)
	flags := cmd.Flags()
	f.set = flags
	flags.StringVar(&f.file, "config", os.Getenv("DRYDOCK_CONFIG"), "configuration file (YAML)")
	flags.BoolVar(&f.check, "check", false, "check the configuration and exit")
	flags.BoolVar(&f.ready, "ready", false, "ask the worker that serves probes at --listen on this machine whether it is ready, and exit")
	for _, field := range schemas.InputOf("config").Below() {
		if field.Flag != "" {
			flags.String(field.Flag, "", field.Usage())
		}
	}
	return cmd
}

func (f flags) run(cmd *cobra.Command, stderr io.Writer) error {
	c, err := f.load()
	if err != nil {
		return usageError{err}
	}
	if f.ready {
		return askReady(cmd.Context(), c.Listen)
	}
	if f.check {
		if err := f.tryOut(c); err != nil {
			return usageError{f.inFile(err)}
		}
		fmt.Fprintln(cmd.OutOrStdout(), "the configuration is valid")
		return nil
	}
	from, err := config.ParseLevel(c.Log.Level)
	if err != nil {
		return usageError{err}
	}
	level := new(slog.LevelVar)
	level.Set(from)
	var handler slog.Handler = slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level})
	if c.Log.Format == "json" {
		handler = slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level})
	}
	logger := slog.New(handler)
	// client-go logs through klog; its lines belong into the same log.
	klog.SetSlogLogger(slog.New(calm{logger.Handler()}).With("logger", "client-go"))
	return Run(cmd.Context(), Options{Config: c, Logger: logger, Level: level, Version: Version})
}

func (f flags) load() (config.Config, error) {
	c, err := config.Load(f.file, os.Getenv, kinds())
	if err != nil {
		return c, err
	}
	if err := c.PutFlags(func(name string) string { return f.set.Lookup(name).Value.String() }); err != nil {
		return c, err
	}
	return c, f.inFile(c.Validate())
}

// tryOut looks at what the configuration names outside of itself: the files of secrets, of Jobs and of profiles, and where audit
// records go.
func (f flags) tryOut(c config.Config) error {
	problems := []error{c.CheckSecretFiles(), c.Audit.Try(), tryProfiles(c.Profiles)}
	if problems[0] == nil {
		_, err := checks.New(c.ChecksAndHooks(), nil, Version)
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// inFile puts the file's name before every line of an error about its content.
func (f flags) inFile(err error) error {
	if err == nil || f.file == "" {
		return err
	}
	lines := strings.Split(err.Error(), "\n")
	return errors.New(f.file + ": " + strings.Join(lines, "\n"+f.file+": "))
}
