package starter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

type limitsSetOptions struct {
	app              *invocation.App
	output           terminal.Output
	fields           input.FieldFlags
	noMaxUnavailable bool
	noWindows        bool
	group            string
	held             map[string]int
	fromFile         string
	comment          string
}

func newLimitsSet(a *invocation.App) *cobra.Command {
	o := &limitsSetOptions{app: a}
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Change the limits",
		Long: `Change the limits that are in force. The flags change one limit each and leave the others as they are; --from-file
replaces all of them, groups included, and flags override it. With --group they are about the limits of that group, which has
to be there: a new one comes with a file.

An amount is a number of nodes, a percentage of them rounded up, or for --max-parallel and --remediations "unlimited". What is
out of service already stays so: limits are judged when a slot is granted.`,
		Example: `  drydock limits set --max-parallel 2 --comment "two crews tonight"
  drydock limits set --max-unavailable 20%
  drydock limits set --no-max-unavailable
  drydock limits set --remediations 5%
  drydock limits set --group gpu --max-parallel 3
  drydock limits set --held plans=40
  drydock limits set --window weeknights
  drydock limits set --from-file worker.yaml --comment "groups per rack"`,
		Args: invocation.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.register(cmd)
	return cmd
}

func (o *limitsSetOptions) register(cmd *cobra.Command) {
	o.output.Register(cmd)
	f := cmd.Flags()
	fields := input.WithFlags("limits")
	for i := range fields {
		fields[i].Default = nil // what no flag names stays as it is
	}
	o.fields.Register(cmd, fields, limitForms)
	f.BoolVar(&o.noMaxUnavailable, "no-max-unavailable", false, "remove the limit on unavailable nodes")
	f.BoolVar(&o.noWindows, "no-windows", false, "remove the limit to windows: slots are granted at any time, unless a group or the maintenance itself keeps to windows")
	f.StringVar(&o.group, "group", "", "change the limits of this group, not those of the whole cluster")
	f.StringToIntVar(&o.held, "held", nil, "how many nodes a requestor may hold, as REQUESTOR=NODES (repeatable)")
	f.StringVarP(&o.fromFile, "from-file", "f", "", "the worker's configuration, or a file of limits alone; - for standard input")
	f.StringVar(&o.comment, "comment", "", "why, shown with the limits")
}

func (o *limitsSetOptions) run(ctx context.Context) error {
	change, err := o.change(o.app.Stdin)
	if err != nil {
		return err
	}
	c, err := o.app.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	state, err := c.Scheduler().ChangeLimits(ctx, change, o.comment, 1)
	if err != nil {
		return c.ExplainSent(err, "limits")
	}
	o.warnOfWindows(ctx, c, state.Limits.Limits)
	return o.output.Write(o.app.Stdout, state.Limits, views.Limits(state.Limits, views.At(c.Clock())))
}

// warnOfWindows says which windows the limits name and the worker's configuration lacks: nothing goes for which they count.
func (o *limitsSetOptions) warnOfWindows(ctx context.Context, c *invocation.Connection, limits schedule.Limits) {
	named := windowsNamed(limits)
	if len(named) == 0 {
		return
	}
	horizon, err := client.Windows(ctx, c.Client, api.WindowsInput{Next: 1}, windowsWithin)
	if err != nil {
		fmt.Fprintf(o.app.Stderr, "Warning: whether there are the windows that the limits name is not known: %s\n", terminal.OneLine(err.Error()))
		return
	}
	for _, name := range named {
		if _, there := horizon.Windows[name]; !there {
			fmt.Fprintf(o.app.Stderr, "Warning: the worker's configuration has no window %q: no slot is granted where it counts. \"%s windows\" shows those that there are.\n",
				name, c.Program)
		}
	}
}

// windowsNamed are the windows of limits and of their groups, each once.
func windowsNamed(limits schedule.Limits) []string {
	named := slices.Clone(limits.Windows)
	for _, g := range limits.Groups {
		named = append(named, g.Windows...)
	}
	slices.Sort(named)
	return slices.Compact(named)
}

// change is what the flags do to the limits in force; it refuses a group that they do not have.
func (o *limitsSetOptions) change(stdin io.Reader) (func(schedule.Limits) (schedule.Limits, error), error) {
	given := map[string]any{}
	if err := o.fields.Put(given); err != nil {
		return nil, err
	}
	if err := o.contradictions(given); err != nil {
		return nil, err
	}
	text, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	var file *schedule.Limits
	if o.fromFile != "" {
		read, err := input.ReadLimits(o.fromFile, stdin)
		if err != nil {
			return nil, err
		}
		file = &read
	}
	return func(l schedule.Limits) (schedule.Limits, error) {
		if file != nil {
			l = *file
		}
		l.Groups = slices.Clone(l.Groups)
		of, maxUnavailable, windows := any(&l), &l.MaxUnavailable, &l.Windows
		if o.group != "" {
			i := slices.IndexFunc(l.Groups, func(g schedule.Group) bool { return g.Name == o.group })
			if i < 0 {
				return l, exit.UsageError("--group: the limits have no group %q%s", o.group, groupNames(l.Groups))
			}
			g := &l.Groups[i]
			of, maxUnavailable, windows = g, &g.MaxUnavailable, &g.Windows
		}
		if o.noMaxUnavailable {
			*maxUnavailable = schedule.Amount{}
		}
		if o.noWindows || given["windows"] != nil {
			*windows = nil
		}
		if err := json.Unmarshal(text, of); err != nil {
			return l, err
		}
		l.Quotas.Requestors = o.withHeld(l.Quotas.Requestors)
		return l, nil
	}, nil
}

// contradictions refuses flags of which nothing follows.
func (o *limitsSetOptions) contradictions(given map[string]any) error {
	ofGroup := len(given) > 0 || o.noMaxUnavailable || o.noWindows
	switch {
	case o.noMaxUnavailable && given["maxUnavailable"] != nil:
		return exit.UsageError("--max-unavailable and --no-max-unavailable contradict each other")
	case o.noWindows && given["windows"] != nil:
		return exit.UsageError("--window and --no-windows contradict each other")
	case o.group != "" && given["remediations"] != nil:
		return exit.UsageError("--remediations: is a limit of the whole cluster: leave --group out")
	case o.group != "" && !ofGroup:
		return exit.UsageError("--group: say which of its limits to change: --max-parallel, --max-unavailable, --no-max-unavailable, --window or --no-windows")
	case !ofGroup && o.fromFile == "" && len(o.held) == 0:
		return exit.UsageError(
			"nothing to change: pass --max-parallel, --max-unavailable, --no-max-unavailable, --remediations, --window, --no-windows, --held or --from-file")
	}
	return nil
}

// withHeld are quotas of requestors, with what --held says of some.
func (o *limitsSetOptions) withHeld(quotas map[string]schedule.RequestorQuota) map[string]schedule.RequestorQuota {
	if len(o.held) == 0 {
		return quotas
	}
	all := map[string]schedule.RequestorQuota{}
	maps.Copy(all, quotas)
	for requestor, most := range o.held {
		own := all[requestor]
		own.Held = &most
		all[requestor] = own
	}
	return all
}

// groupNames ends the error about a group that is not there.
func groupNames(groups []schedule.Group) string {
	if len(groups) == 0 {
		return ": they have none"
	}
	return ": they have " + strings.Join(terminal.NamesOf(groups, func(g schedule.Group) string { return g.Name }), ", ")
}

// limitForms are how flags of limits are written where that is not how their fields are.
var limitForms = map[string]input.Form{
	"max-parallel":    {Read: parallel},
	"remediations":    {Read: parallel},
	"max-unavailable": {Read: unavailable},
}

func parallel(texts []string) (any, error) { return parseParallel(texts[0]) }

func parseParallel(text string) (schedule.Amount, error) {
	amount, err := schedule.ParseAmount(text)
	if err != nil {
		return amount, fmt.Errorf("%w, or \"unlimited\"", err)
	}
	return amount, nil
}

func unavailable(texts []string) (any, error) {
	amount, err := schedule.ParseAmount(texts[0])
	if err == nil && amount == schedule.Unlimited() {
		err = errors.New("unlimited is refused: say --no-max-unavailable")
	}
	return amount, err
}
