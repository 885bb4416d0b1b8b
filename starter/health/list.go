package health

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/overview"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

type listOptions struct {
	app    *invocation.App
	output terminal.Output
	all    bool
	config string
}

func newList(a *invocation.App) *cobra.Command {
	o := &listOptions{app: a}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the health checks",
		Long: `List the health checks that run: how many nodes are healthy, soon unhealthy, unhealthy, and under remediation, and what
blocks. FROM says who started a check: a worker, because its configuration has it, or somebody by hand.

A check that is taken out of the worker's configuration goes on until "drydock health remove". With --config, or ` + invocation.EnvConfig + `,
such a check is shown as "not in the file".`,
		Example: `  drydock health list
  drydock health list --config worker.yaml -o wide`,
		Args: invocation.NoArgs,
		RunE: a.Connected(o.run, o.check),
	}
	o.output.Register(cmd, terminal.FormatName)
	o.output.RegisterNoHeaders(cmd)
	cmd.Flags().BoolVarP(&o.all, "all", "a", false, "list those that ended too")
	cmd.Flags().StringVar(&o.config, "config", "", "the worker's configuration, to tell which checks are not in it (env "+invocation.EnvConfig+")")
	return cmd
}

func (o *listOptions) check([]string) (err error) {
	if o.config != "" {
		_, err = input.ReadObject(o.config, o.app.Stdin)
	}
	return err
}

func (o *listOptions) run(ctx context.Context, c *invocation.Connection, _ []string) error {
	runs, err := client.ListHealthChecks(ctx, c.Client, !o.all)
	if err != nil {
		return c.Explain(err)
	}
	observed, err := overview.HealthChecks(ctx, c.Client, runs, len(runs))
	if err != nil {
		return c.Explain(err)
	}
	checks := api.HealthChecks{}
	var unanswered error
	for _, v := range observed {
		checks, unanswered = append(checks, v.Summary()), cmp.Or(unanswered, v.Unanswered)
	}
	o.app.WarnUnanswered(unanswered)
	if path := cmp.Or(o.config, o.app.Env.Get(invocation.EnvConfig)); path != "" && path != "-" {
		compare(checks, input.NamesIn(path, "healthChecks"))
	}
	if len(checks) == 0 && o.output.Table() {
		fmt.Fprintln(o.app.Stderr, map[bool]string{true: "No health checks.", false: "No health checks run."}[o.all])
		return nil
	}
	return o.output.Write(o.app.Stdout, checks, views.HealthChecks(checks, o.output.Wide(), views.At(c.Clock())))
}

// compare marks what a worker has started and is not in its configuration any more.
func compare(c api.HealthChecks, configured []string) {
	for i := range c {
		if c[i].Configured && c[i].EndedAt == nil && !slices.Contains(configured, c[i].Name) {
			c[i].Left, c[i].Source = true, api.SourceLeft
		}
	}
}
