package starter

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/show"
	"drydock.dev/drydock/starter/terminal"
)

type limitsDiffOptions struct {
	app    *invocation.App
	output terminal.Output
	config string
}

func newLimitsDiff(a *invocation.App) *cobra.Command {
	o := &limitsDiffOptions{app: a}
	cmd := &cobra.Command{
		Use:   "diff",
		Short: "Compare the limits in force with those of a file",
		Long: `Compare the limits in force with those of the worker's configuration, which count only when the scheduler is first
started. The exit code is 0 if they are equal and 1 if not. To put the file's limits in force: "drydock limits set
--from-file FILE".`,
		Example: `  drydock limits diff --config worker.yaml`,
		Args:    invocation.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.output.Register(cmd)
	cmd.Flags().StringVar(&o.config, "config", "", "the worker's configuration, or a file of limits alone (env "+invocation.EnvConfig+")")
	return cmd
}

func (o *limitsDiffOptions) run(ctx context.Context) error {
	if err := o.output.Check(); err != nil {
		return err
	}
	path := cmp.Or(o.config, o.app.Env.Get(invocation.EnvConfig))
	if path == "" {
		return exit.UsageError("missing --config (or %s)", invocation.EnvConfig)
	}
	file, err := input.ReadLimits(path, o.app.Stdin)
	if err != nil {
		return err
	}
	c, err := o.app.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	state, err := c.SchedulerState(ctx, show.FirstPending)
	if err != nil {
		return err
	}
	different := limitDifferences(state.Limits.Limits, file)
	err = o.output.Write(o.app.Stdout, different, func(w io.Writer) {
		if len(different) == 0 {
			fmt.Fprintf(w, "The limits in force are those of %s.\n", path)
			return
		}
		r := terminal.NewRows(w, "LIMIT", "IN FORCE", "FILE")
		for _, d := range different {
			r.Add(d.Limit, cmp.Or(d.InForce, "-"), cmp.Or(d.File, "-"))
		}
		r.Done()
	})
	if err == nil && len(different) > 0 {
		return exit.WithCode(exit.Failed, nil)
	}
	return err
}

// LimitDifference is a limit that is not the same on both sides; an empty side has none.
type LimitDifference struct {
	Limit   string `json:"limit"`
	InForce string `json:"inForce,omitempty"`
	File    string `json:"file,omitempty"`
}

func limitDifferences(inForce, file schedule.Limits) []LimitDifference {
	a, b := limitTexts(inForce.WithDefaults()), limitTexts(file.WithDefaults())
	all := maps.Clone(a)
	maps.Copy(all, b)
	different := []LimitDifference{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if a[name] != b[name] {
			different = append(different, LimitDifference{Limit: name, InForce: a[name], File: b[name]})
		}
	}
	return different
}

// limitTexts are the limits by name. Groups are told apart by their names, so that their order does not count.
func limitTexts(l schedule.Limits) map[string]string {
	texts := map[string]string{"maxParallel": l.MaxParallel.String(), "maxUnavailable": l.MaxUnavailable.String(), "remediations": l.Remediations.String(), "windows": show.WindowNames(l.Windows)}
	for _, g := range l.Groups {
		at := "groups." + g.Name + "."
		texts[at+"nodes"] = show.GroupNodes(g)
		texts[at+"maxParallel"] = g.MaxParallel.String()
		texts[at+"maxUnavailable"] = g.MaxUnavailable.String()
		texts[at+"windows"] = show.WindowNames(g.Windows)
	}
	for name, quota := range quotaTexts(l.Quotas) {
		texts["quotas."+name] = quota
	}
	return texts
}

func quotaTexts(q schedule.Quotas) map[string]string {
	texts := map[string]string{"pendingPerRequestor": show.Quota(q.PendingPerRequestor), "heldPerRequestor": show.Quota(q.HeldPerRequestor)}
	for requestor, own := range q.Requestors {
		at := "requestors." + requestor + "."
		texts[at+"pending"], texts[at+"held"] = show.Quota(own.Pending), show.Quota(own.Held)
	}
	return texts
}
