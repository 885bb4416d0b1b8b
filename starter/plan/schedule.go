package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

type scheduleOptions struct {
	app    *invocation.App
	plan   planFlags
	output terminal.Output

	cron, timezone string
	every          time.Duration

	pause, resume, remove, now bool
	by, comment                string
	yes                        bool
}

func newSchedule(a *invocation.App) *cobra.Command {
	o := &scheduleOptions{app: a}
	cmd := &cobra.Command{
		Use:   "schedule NAME [(--cron C | --every D) (-f FILE | NODE... | --selector S | --all)]",
		Short: "Have a plan run again and again, or show when it does",
		Long: `Have a plan run again and again: at the times of a cron expression, or every so often. A Temporal Schedule begins each run,
which starts the plan NAME and lasts as long as it. While one goes on the next is skipped, as it is where a plan of that
name runs that was started otherwise. What was missed because Temporal was away is made up for within 10 minutes.

The plan is described as for "drydock plan create". Where NAME has a schedule, it is replaced; a run that goes on does so.

Without flags it shows the schedule, its next times and its last runs. --now begins a run at once, --pause begins no more
until --resume, --delete forgets the schedule: none of them ends a run that goes on, "drydock plan cancel NAME" does.`,
		Example: `  drydock plan schedule patches --cron "0 22 * * 1" --timezone Europe/Berlin -f plan.yaml
  drydock plan schedule reboots --every 7d --selector pool=gpu --work reboot --yes
  drydock plan schedule list
  drydock plan schedule patches
  drydock plan schedule patches --pause --comment "freeze over Christmas"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("missing NAME: schedule NAME, or schedule list for those that there are")
			}
			return checkName(args[0])
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), cmd, args[0], args[1:]) },
	}
	o.plan.register(cmd)
	o.output.Register(cmd)
	f := cmd.Flags()
	f.StringVar(&o.cron, "cron", "", "when it runs: minute, hour, day of the month, month and weekday, as in \"0 22 * * 1-5\"")
	invocation.DurationVar(f, &o.every, "every", 0, "run it every so often, counted from the beginning of 1970 in UTC")
	f.StringVar(&o.timezone, "timezone", "", "time zone of --cron, such as Europe/Berlin (default UTC)")
	f.BoolVar(&o.pause, "pause", false, "begin no more runs until --resume")
	f.BoolVar(&o.resume, "resume", false, "begin runs again at their times")
	f.BoolVar(&o.remove, "delete", false, "forget the schedule")
	f.BoolVar(&o.now, "now", false, "begin a run at once, paused or not")
	f.StringVar(&o.by, "by", "", "who pauses or resumes it, recorded with the schedule (default user@host)")
	f.StringVar(&o.comment, "comment", "", "why it is paused or resumed, recorded with the schedule")
	invocation.RegisterYes(f, &o.yes)
	cmd.AddCommand(newScheduleList(a))
	return cmd
}

// changeFlags change an existing schedule, and cannot be combined with a plan's description.
var changeFlags = []string{"pause", "resume", "delete", "now"}

// about are the flags that say neither what a plan is nor when it runs.
var about = append([]string{"by", "comment", "yes", "output", "help"}, changeFlags...)

// wants reports whether the command line describes a schedule to be made, and refuses what goes not together.
func (o *scheduleOptions) wants(cmd *cobra.Command, nodes []string) (set bool, err error) {
	var actions, describing []string
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case !f.Changed || cmd.InheritedFlags().Lookup(f.Name) != nil:
		case slices.Contains(changeFlags, f.Name):
			actions = append(actions, "--"+f.Name)
		case !slices.Contains(about, f.Name):
			describing = append(describing, "--"+f.Name)
		}
	})
	set = len(describing) > 0 || len(nodes) > 0
	switch {
	case len(actions) > 1:
		return false, exit.UsageError("pass one of %s", strings.Join(actions, " and "))
	case len(actions) > 0 && set:
		return false, exit.UsageError("%s is about the schedule that there is: leave out %s", actions[0], strings.Join(append(describing, nodes...), ", "))
	case (o.by != "" || o.comment != "") && !o.pause && !o.resume:
		return false, exit.UsageError("--by and --comment go with --pause and --resume")
	}
	return set, nil
}

func (o *scheduleOptions) run(ctx context.Context, cmd *cobra.Command, name string, nodes []string) error {
	set, err := o.wants(cmd, nodes)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	var p plan.Plan
	when := plan.Recurrence{Cron: o.cron, Every: spec.Duration(o.every), Timezone: o.timezone}
	if set {
		if err := when.Check(); err != nil {
			return exit.UsageError("--%w", err)
		}
		if raw, p, err = o.plan.build(o.app.Stdin, name, nodes); err != nil {
			return err
		}
		if o.plan.file == "-" && !o.yes {
			return exit.UsageError("standard input is the plan, and cannot answer: pass --yes")
		}
	}
	if set || o.remove {
		if err := o.app.CanConfirm(o.yes); err != nil {
			return err
		}
	}
	c, err := o.app.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	r := client.RecurringOf(c.Client, name).As(o.by)
	if set {
		err = o.set(ctx, r, when, raw, p)
	} else {
		err = o.change(ctx, r)
	}
	if err != nil {
		return explainSchedule(c, name, err)
	}
	if o.remove || o.output.Table() && (set || o.pause || o.resume || o.now) {
		return nil
	}
	shown, err := r.Look(ctx)
	if err != nil {
		return explainSchedule(c, name, err)
	}
	return o.output.Write(o.app.Stdout, shown, views.PlanSchedule(shown, views.At(c.Clock())))
}

// set makes the schedule or replaces it, after asking.
func (o *scheduleOptions) set(ctx context.Context, r *client.Recurring, when plan.Recurrence, raw json.RawMessage, p plan.Plan) error {
	chosen, err := choose(ctx, o.app, p)
	if err != nil {
		return err
	}
	announce(o.app.Stderr, r.Name, p, chosen)
	fmt.Fprintf(o.app.Stderr, "It runs %s.\n", views.RecurrenceText(when))
	if err := o.app.Confirm("Make this schedule?", "nothing was changed", o.yes); err != nil {
		return err
	}
	created, err := r.Set(ctx, when, raw)
	if err != nil {
		return err
	}
	said := "schedule changed"
	if created {
		said = "schedule made"
	}
	fmt.Fprintf(o.app.Messages(&o.output), "%s: %s\n", r.Name, said)
	return nil
}

// change does to the schedule what the flags say, if they say anything.
func (o *scheduleOptions) change(ctx context.Context, r *client.Recurring) error {
	var said string
	var err error
	switch {
	case o.pause:
		said, err = "begins no more runs", r.Pause(ctx, o.comment)
	case o.resume:
		said, err = "begins runs again", r.Resume(ctx, o.comment)
	case o.now:
		said, err = "a run is begun", r.Trigger(ctx)
	case o.remove:
		if err := o.app.Confirm("Delete the schedule of plan "+r.Name+"?", "nothing was changed", o.yes); err != nil {
			return err
		}
		said, err = "schedule deleted", r.Delete(ctx)
	}
	if err == nil && said != "" {
		fmt.Fprintf(o.app.Messages(&o.output), "%s: %s\n", r.Name, said)
	}
	return err
}

// explainSchedule turns an error about a schedule into one that says what to do next.
func explainSchedule(c *invocation.Connection, name string, err error) error {
	switch {
	case exit.Has[*client.NoScheduleError](err):
		return exit.Hint(err, `"%s plan schedule list" shows those that there are; make one with "%s plan schedule %s --cron ... -f FILE".`, c.Program, c.Program, name)
	case exit.Has[*client.RunGoesOnError](err):
		return exit.Hint(err, `See it with "%s plan status %s".`, c.Program, name)
	default:
		return c.Explain(err)
	}
}
