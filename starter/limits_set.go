package starter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/show"
	"drydock.dev/drydock/starter/terminal"
)

type limitsSetOptions struct {
	app              *invocation.App
	output           terminal.Output
	maxParallel      string
	maxUnavailable   string
	noMaxUnavailable bool
	remediations     string
	windows          []string
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
replaces all of them, groups included, and flags go over it. With --group they are about the limits of that group, which has
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
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.Flags()) },
	}
	o.register(cmd)
	return cmd
}

func (o *limitsSetOptions) register(cmd *cobra.Command) {
	o.output.Register(cmd)
	f := cmd.Flags()
	f.StringVar(&o.maxParallel, "max-parallel", "", "how many maintenances may run at a time")
	f.StringVar(&o.maxUnavailable, "max-unavailable", "", "how many nodes may be unavailable at a time; 0 stops all that would make one so")
	f.BoolVar(&o.noMaxUnavailable, "no-max-unavailable", false, "remove the limit on unavailable nodes")
	f.StringVar(&o.remediations, "remediations", "", "how many maintenances of health checks may run at a time, in slots of their own; 0 starts none")
	f.StringSliceVar(&o.windows, "window", nil, "have slots granted only while this window of the worker's configuration is open, with several while all are (repeatable)")
	f.BoolVar(&o.noWindows, "no-windows", false, "remove the limit to windows: slots are granted at any time, unless a group or the maintenance itself keeps to windows")
	f.StringVar(&o.group, "group", "", "change the limits of this group, not those of the whole cluster")
	f.StringToIntVar(&o.held, "held", nil, "how many nodes a requestor may hold, as REQUESTOR=NODES (repeatable)")
	f.StringVarP(&o.fromFile, "from-file", "f", "", "the worker's configuration, or a file of limits alone; - for standard input")
	f.StringVar(&o.comment, "comment", "", "why, shown with the limits")
}

func (o *limitsSetOptions) run(ctx context.Context, flags *pflag.FlagSet) error {
	if err := o.output.Check(); err != nil {
		return err
	}
	change, err := o.change(flags, o.app.Stdin)
	if err != nil {
		return err
	}
	c, err := o.app.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	state, err := c.Scheduler().ChangeLimits(ctx, change, o.comment, show.FirstPending)
	if err != nil {
		return c.ExplainSent(err, "limits")
	}
	o.warnOfWindows(ctx, c, state.Limits.Limits)
	return o.output.Write(o.app.Stdout, state.Limits, func(w io.Writer) { show.Limits(w, state.Limits, c.Clock()) })
}

// warnOfWindows says which windows the limits name and the worker's configuration lacks: nothing goes for which they count.
func (o *limitsSetOptions) warnOfWindows(ctx context.Context, c *invocation.Connection, limits schedule.Limits) {
	named := windowsNamed(limits)
	if len(named) == 0 {
		return
	}
	horizon, err := client.Windows(ctx, c.Client, api.WindowsInput{Next: 1}, windowsWithin)
	if err != nil {
		fmt.Fprintf(o.app.Stderr, "Warning: whether there are the windows that the limits name is not known: %s\n", err)
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

// scope are the limits that the flags are about: the cluster's, or those of a group.
type scope struct {
	maxParallel, maxUnavailable *schedule.Amount
	windows                     *[]string
}

// scopeOf is nil where there is no such group.
func (o *limitsSetOptions) scopeOf(l *schedule.Limits) *scope {
	if o.group == "" {
		return &scope{&l.MaxParallel, &l.MaxUnavailable, &l.Windows}
	}
	for i := range l.Groups {
		if g := &l.Groups[i]; g.Name == o.group {
			return &scope{&g.MaxParallel, &g.MaxUnavailable, &g.Windows}
		}
	}
	return nil
}

// change is what the flags do to the limits in force; it refuses a group that they do not have.
func (o *limitsSetOptions) change(flags *pflag.FlagSet, stdin io.Reader) (func(schedule.Limits) (schedule.Limits, error), error) {
	changes, err := o.scopeChanges(flags)
	if err != nil {
		return nil, err
	}
	if o.group != "" && len(changes) == 0 {
		return nil, exit.UsageError("--group: say which of its limits to change: --max-parallel, --max-unavailable, --no-max-unavailable, --window or --no-windows")
	}
	remediations, err := o.remediationsAmount(flags)
	if err != nil {
		return nil, err
	}
	if o.fromFile == "" && len(o.held) == 0 && len(changes) == 0 && remediations.IsZero() {
		return nil, exit.UsageError(
			"nothing to change: pass --max-parallel, --max-unavailable, --no-max-unavailable, --remediations, --window, --no-windows, --held or --from-file")
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
		of := o.scopeOf(&l)
		if of == nil {
			return l, exit.UsageError("--group: the limits have no group %q%s", o.group, groupNames(l.Groups))
		}
		for _, change := range changes {
			change(of)
		}
		if !remediations.IsZero() {
			l.Remediations = remediations
		}
		if len(o.held) > 0 {
			l.Quotas.Requestors = maps.Clone(l.Quotas.Requestors)
			if l.Quotas.Requestors == nil {
				l.Quotas.Requestors = map[string]schedule.RequestorQuota{}
			}
			for requestor, most := range o.held {
				own := l.Quotas.Requestors[requestor]
				own.Held = &most
				l.Quotas.Requestors[requestor] = own
			}
		}
		return l, nil
	}, nil
}

// groupNames ends the error about a group that is not there.
func groupNames(groups []schedule.Group) string {
	if len(groups) == 0 {
		return ": they have none"
	}
	var names []string
	for _, g := range groups {
		names = append(names, g.Name)
	}
	return ": they have " + strings.Join(names, ", ")
}

// scopeChanges are what the flags change in the cluster's limits or a group's.
func (o *limitsSetOptions) scopeChanges(flags *pflag.FlagSet) (changes []func(*scope), err error) {
	if o.noMaxUnavailable && flags.Changed("max-unavailable") {
		return nil, exit.UsageError("--max-unavailable and --no-max-unavailable contradict each other")
	}
	if flags.Changed("max-parallel") {
		amount, err := parseParallel(o.maxParallel)
		if err != nil {
			return nil, exit.UsageError("--max-parallel: %w", err)
		}
		changes = append(changes, func(s *scope) { *s.maxParallel = amount })
	}
	if flags.Changed("max-unavailable") {
		amount, err := schedule.ParseAmount(o.maxUnavailable)
		if err == nil && amount == schedule.Unlimited() {
			err = errors.New("unlimited is refused: say --no-max-unavailable")
		}
		if err != nil {
			return nil, exit.UsageError("--max-unavailable: %w", err)
		}
		changes = append(changes, func(s *scope) { *s.maxUnavailable = amount })
	}
	if o.noMaxUnavailable {
		changes = append(changes, func(s *scope) { *s.maxUnavailable = schedule.Amount{} })
	}
	if o.noWindows && flags.Changed("window") {
		return nil, exit.UsageError("--window and --no-windows contradict each other")
	}
	if o.noWindows || flags.Changed("window") {
		changes = append(changes, func(s *scope) { *s.windows = o.windows })
	}
	return changes, nil
}

// remediationsAmount is what --remediations says, which is of the whole cluster; unset where it is not given.
func (o *limitsSetOptions) remediationsAmount(flags *pflag.FlagSet) (schedule.Amount, error) {
	if !flags.Changed("remediations") {
		return schedule.Amount{}, nil
	}
	if o.group != "" {
		return schedule.Amount{}, exit.UsageError("--remediations: is a limit of the whole cluster: leave --group out")
	}
	amount, err := parseParallel(o.remediations)
	if err != nil {
		return amount, exit.UsageError("--remediations: %w", err)
	}
	return amount, nil
}

// parseParallel reads how many may go at a time.
func parseParallel(text string) (schedule.Amount, error) {
	amount, err := schedule.ParseAmount(text)
	if err != nil {
		return amount, fmt.Errorf("%w, or \"unlimited\"", err)
	}
	return amount, nil
}
