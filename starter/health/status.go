package health

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/health/nhc"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

// formatNHC is the form of medik8s' NodeHealthCheck, in YAML.
const formatNHC = "nhc"

type statusOptions struct {
	app    *invocation.App
	output terminal.Output
	all    bool
}

func newStatus(a *invocation.App) *cobra.Command {
	o := &statusOptions{app: a}
	cmd := &cobra.Command{
		Use:   "status NAME",
		Short: "Show a health check: its nodes that are ill, and what is done about each",
		Long: `Show a health check: how many nodes are healthy, what keeps remediations from beginning, and each node that is ill: which
condition it has and since when, which step is at work, what blocks, and what comes next. With -o nhc it is medik8s' NodeHealthCheck,
with that object's status.`,
		Example: `  drydock health status workers
  drydock health status workers -o nhc
  drydock health status workers --all -o json | jq -r '.unhealthyNodes[].name'`,
		Args: oneCheck,
		RunE: a.Connected(o.run),
	}
	o.output.Register(cmd, formatNHC)
	cmd.Flags().BoolVar(&o.all, "all", false, "show all nodes that are not healthy, not only the first 100")
	return cmd
}

func (o *statusOptions) run(ctx context.Context, c *invocation.Connection, args []string) error {
	name := args[0]
	check := client.HealthCheckOf(c.Client, name)
	v, err := check.Observe(ctx, api.HealthStatusRequest{})
	if err == nil && o.all && v.Status != nil {
		var all api.HealthStatus
		if all, err = check.AllNodes(ctx); err == nil {
			v.Status = &all
		}
	}
	if err != nil {
		return explain(c, name, err)
	}
	o.app.WarnUnanswered(v.Unanswered)
	if o.output.Format == formatNHC {
		if v.Status == nil {
			return fmt.Errorf("-o nhc needs the check's own answer: %w", notAnswered(v))
		}
		yaml := terminal.Output{Format: terminal.FormatYAML}
		return yaml.Write(o.app.Stdout, nhc.Show(name, v.Status.Spec, v.Status.Status))
	}
	shown := v.Known()
	return o.output.Write(o.app.Stdout, shown, views.HealthCheck(shown, views.At(c.Clock())))
}

// notAnswered is why a check has no status.
func notAnswered(v client.HealthCheckView) error {
	if v.Unanswered != nil {
		return v.Unanswered
	}
	return &client.NoneError{What: "health check " + v.Name, Ended: true}
}
