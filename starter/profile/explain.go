package profile

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/views"
)

type explainOptions struct{ question }

func newExplain(a *invocation.App) *cobra.Command {
	o := &explainOptions{question{app: a}}
	cmd := &cobra.Command{
		Use:   "explain NODE",
		Short: "Say of a node which checks of its profiles hold, which do not, why, and since when",
		Long: `Say of a node, for each of its profiles, in which state it is and since when, what is under way, and of each transition that leads
out of it which checks hold, which do not, why, and since when. A worker answers: it asks all checks anew, and changes nothing.`,
		Example: `  drydock profile explain worker-07
  drydock profile explain worker-07 -o json | jq '.profiles[].transitions[] | {next, holds, refused}'`,
		Args: invocation.OneNode,
		RunE: a.Connected(o.run, o.checkTimeout),
	}
	o.output.Register(cmd)
	invocation.DurationVar(cmd.Flags(), &o.timeout, "timeout", reportWithin, "how long to wait for the answer")
	return cmd
}

func (o *explainOptions) run(ctx context.Context, c *invocation.Connection, args []string) error {
	node := args[0]
	if err := c.HasWorker(ctx); err != nil {
		return c.Explain(err)
	}
	r, err := o.report(ctx, c, api.ProfileReportInput{Node: node})
	if exit.Has[*client.FailedError](err) {
		return exit.Hint(err, `"%s profile list" shows the nodes that there are.`, c.Program)
	}
	if err != nil {
		return err
	}
	warn(o.app.Stderr, r)
	if r.Explanation == nil {
		return fmt.Errorf("a worker's answer has no explanation of %s", node)
	}
	return o.output.Write(o.app.Stdout, r.Explanation, views.ProfileExplanation(r.Lines, views.At(c.Clock())))
}
