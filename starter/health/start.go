package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/health/nhc"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

// fileHelp says what --file takes.
const fileHelp = `The file, or standard input with "-", is a NodeHealthCheck of medik8s as it is, or a list of them; a health check with its name
and its fields; or a worker's configuration, whose section healthChecks is read. It may have several documents. NAME chooses among them.`

type startOptions struct {
	app             *invocation.App
	output          terminal.Output
	file, by        string
	paused, comment string
	dryRun          bool
}

func (o *startOptions) register(cmd *cobra.Command) {
	o.output.Register(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.file, "file", "f", "", "YAML or JSON file with the health checks, - for standard input")
	f.StringVar(&o.by, "by", "", "who does it, recorded (default user@host)")
}

func newStart(a *invocation.App) *cobra.Command {
	o := &startOptions{app: a}
	cmd := &cobra.Command{
		Use:        "start [NAME...] --file FILE",
		SuggestFor: []string{"create", "run"},
		Short:      "Start health checks",
		Long: `Start health checks. They go on until "drydock health remove"; one that is to be there for good is better kept in the worker's
configuration, which starts it again whatever happens.

` + fileHelp + `

With --dry-run nothing is started: it shows the checks as a worker's configuration has them.`,
		Example: `  drydock health start --file nodehealthcheck.yaml --paused "moving over"
  drydock health start --file check.yaml
  drydock health start --file nodehealthchecks.yaml --dry-run >> worker.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args, o.start) },
	}
	o.register(cmd)
	cmd.Flags().StringVar(&o.paused, "paused", "", "begin paused, for this reason, until \"health resume\"")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "start nothing; show the checks in the form of the worker's configuration")
	return cmd
}

func newApply(a *invocation.App) *cobra.Command {
	o := &startOptions{app: a}
	cmd := &cobra.Command{
		Use:   "apply [NAME...] --file FILE",
		Short: "Change health checks, and start those that do not run",
		Long: `Give health checks that run another specification, and start those that do not. While a check remediates, a change of its
selector, its templates or its steps is refused; anything else takes effect at once.

` + fileHelp + `

If the worker's configuration has the check, change it there too: a worker that is started tells the check what its file says.`,
		Example: `  drydock health apply --file check.yaml --comment "five minutes were too short"`,
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args, o.apply) },
	}
	o.register(cmd)
	cmd.Flags().StringVar(&o.comment, "comment", "", "why, recorded with the change")
	return cmd
}

func (o *startOptions) run(ctx context.Context, names []string, do func(context.Context, *invocation.Connection, *client.HealthCheck, nhc.Check) (string, error)) error {
	if o.file == "" {
		return exit.UsageError("missing --file: a file with the health checks, or - for standard input")
	}
	checks, err := readChecks(o.file, o.app.Stdin, names)
	if err != nil {
		return err
	}
	if o.dryRun {
		return o.show(checks)
	}
	c, err := o.app.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	shown, failures := api.HealthChecks{}, []error{}
	for _, check := range checks {
		h := client.HealthCheckOf(c.Client, check.Name).As(o.by)
		effect, err := do(ctx, c, h, check)
		if err != nil {
			failures = append(failures, explain(c, check.Name, err))
			continue
		}
		fmt.Fprintf(o.app.Messages(&o.output), "%s: %s\n", check.Name, terminal.OneLine(terminal.Words(effect, c.Clock())))
		if v, err := h.Observe(ctx, api.HealthStatusRequest{Limit: 1}); err == nil {
			shown = append(shown, v.Summary())
		}
	}
	return exit.Joined(append(failures, o.output.Write(o.app.Stdout, shown)))
}

// show writes the checks as a worker's configuration has them.
func (o *startOptions) show(checks []nhc.Check) error {
	section := map[string]json.RawMessage{}
	for _, check := range checks {
		section[check.Name] = check.Spec
	}
	output := o.output
	if output.Table() {
		output.Format = terminal.FormatYAML
	}
	return output.Write(o.app.Stdout, map[string]any{"healthChecks": section})
}

// takenWithin bounds the wait for a worker to read a check, which takes it a moment.
const takenWithin = 10 * time.Second

func (o *startOptions) start(ctx context.Context, c *invocation.Connection, h *client.HealthCheck, check nhc.Check) (string, error) {
	if err := c.Permitted(ctx, o.app, "health check "+h.Name, api.PermissionsInput{HealthCheck: check.Spec}); err != nil {
		return "", err
	}
	if err := h.Start(ctx, check.Spec, o.paused); err != nil {
		return "", err
	}
	if err := o.taken(ctx, c, h); err != nil {
		return "", err
	}
	if o.paused != "" {
		return fmt.Sprintf("health check started, paused; \"%s health resume %s\" has it begin", c.Program, h.Name), nil
	}
	return fmt.Sprintf("health check started; see it with \"%s health status %s\"", c.Program, h.Name), nil
}

// taken waits until a worker has read the check. One that it refuses is an error; where there is no worker it warns.
func (o *startOptions) taken(ctx context.Context, c *invocation.Connection, h *client.HealthCheck) error {
	waiting, cancel := exit.WithTimeout(ctx, takenWithin)
	defer cancel()
	v, err := h.Taken(waiting)
	switch {
	case ctx.Err() != nil:
		return exit.StopCause(ctx)
	case v.Refused:
		return exit.UsageError("health check %s was refused: %s", h.Name, v.Failure)
	case err != nil:
		fmt.Fprintf(o.app.Stderr, "Warning: no worker has read the check within %s: see the log of drydock-worker\n", takenWithin)
	case v.Unanswered != nil:
		fmt.Fprintf(o.app.Stderr, "Warning: %s\n", terminal.OneLine(v.Unanswered.Error()))
	}
	return nil
}

func (o *startOptions) apply(ctx context.Context, c *invocation.Connection, h *client.HealthCheck, check nhc.Check) (string, error) {
	sent, err := h.Send(ctx, api.MsgConfigure, api.ConfigureHealth{Spec: check.Spec}, o.comment)
	if exit.Has[*client.NoneError](err) || errors.Is(err, client.ErrEnded) {
		return o.start(ctx, c, h, check)
	}
	return sent.Effect, err
}

// prefixed puts a check's name before every line of an error.
func prefixed(name string, err error) error {
	return errors.New(name + "." + strings.ReplaceAll(err.Error(), "\n", "\n"+name+"."))
}
