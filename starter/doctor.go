package starter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/doctor"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

type doctorOptions struct {
	app     *invocation.App
	output  terminal.Output
	fix     bool
	yes     bool
	all     bool
	comment string
	lost    []string
	pause   time.Duration
	timeout time.Duration
}

func newDoctor(a *invocation.App) *cobra.Command {
	o := &doctorOptions{app: a}
	cmd := &cobra.Command{
		Use:   "doctor [NODE...]",
		Short: "Find inconsistencies between cluster, scheduler and maintenances, and heal them",
		Long: `List what is inconsistent between the cluster, the scheduler and the maintenances: marks, slots and requests of
maintenances that do not run any more, maintenances whose slot or mark is lost, label, taint or cordon left on a node,
maintenances of nodes that are gone, and a scheduler or maintenance that does not answer. Everything is looked at twice,
and only what both looks find is listed: a busy cluster is always inconsistent somewhere for a moment.

Nothing is changed without --fix. With it, everything is healed that proves to be Drydock's own, each with a record: an
activity in the doctor's workflow, an Event on the node, and an entry in the scheduler's decisions for a slot. What is
left says what a person has to decide; a node is never uncordoned unless its mark says that Drydock cordoned it.

Where Temporal's histories are lost, or Temporal was restored to an earlier state, no workflow answers for marks from
before. --lost takes the namespace that they name (a finding says which) for lost: what its marks say, and Temporal does
not know, counts as ended then. Make sure first that nobody works on these nodes.

Exit code 0 says that nothing is inconsistent (any more), 1 that something is, or that it could not be found out.`,
		Example: `  drydock doctor
  drydock doctor worker-01 worker-02
  drydock doctor --fix --comment "after the Temporal restore"
  drydock doctor --fix --lost 5b1b3f5a-6c1c-4d7e-9f38-0d4f7f1f2a10 --comment "the database is gone" worker-01
  drydock doctor --fix --yes -o json | jq '.findings[] | {kind, node, nextStep}'`,
		RunE: a.Connected(o.run, o.check),
	}
	o.output.Register(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.fix, "fix", false, "heal what can be healed without a person")
	invocation.RegisterYes(f, &o.yes)
	f.StringVar(&o.comment, "comment", "", "why, recorded with everything that is healed")
	f.StringSliceVar(&o.lost, "lost", nil, "ID of a Temporal namespace whose histories are lost; repeatable")
	f.BoolVar(&o.all, "all", false, "show also what is no inconsistency, such as nodes that a person has cordoned")
	invocation.DurationVar(f, &o.pause, "pause", 5*time.Second, "time between the two looks")
	invocation.DurationVar(f, &o.timeout, "timeout", 10*time.Minute, "how long to wait for the report")
	return cmd
}

func (o *doctorOptions) run(ctx context.Context, c *invocation.Connection, nodes []string) error {
	if err := c.HasWorker(ctx); err != nil {
		return err
	}
	ctx, cancel := exit.WithTimeout(ctx, o.timeout)
	defer cancel()
	in := api.DoctorInput{Nodes: nodes, Pause: spec.Duration(o.pause), By: c.By(), Comment: o.comment, Lost: o.lost}
	if o.fix && !o.yes {
		wanted, err := o.ask(ctx, c, in)
		if err != nil || !wanted {
			return err
		}
	}
	in.Fix = o.fix
	report, err := o.consult(ctx, c, in)
	if err != nil {
		return err
	}
	return o.show(c, report)
}

func (o *doctorOptions) check(nodes []string) error {
	for _, name := range nodes {
		if err := spec.NodeName(name); err != nil {
			return exit.UsageError("%w", err)
		}
	}
	for _, id := range o.lost {
		if err := doctor.NamespaceID(id); err != nil {
			return exit.UsageError("--lost: %w", err)
		}
	}
	switch {
	case len(o.lost) > doctor.MaxLost:
		return exit.UsageError("--lost: %d namespaces: %d at most", len(o.lost), doctor.MaxLost)
	case o.pause <= 0:
		return exit.UsageError("--pause %s: want more than 0", o.pause)
	case o.timeout <= 0:
		return exit.UsageError("--timeout %s: want more than 0", o.timeout)
	case !o.fix && (o.yes || o.comment != ""):
		return exit.UsageError("--yes and --comment need --fix")
	case o.fix:
		return o.app.CanConfirm(o.yes)
	}
	return nil
}

// ask shows what is found, and asks whether to heal it. If there is nothing to heal, the report is the answer.
func (o *doctorOptions) ask(ctx context.Context, c *invocation.Connection, in api.DoctorInput) (wanted bool, err error) {
	report, err := o.consult(ctx, c, in)
	if err != nil {
		return false, err
	}
	if report.Fixable() == 0 || len(report.Missing) > 0 {
		return false, o.show(c, report)
	}
	terminal.Show(o.app.Stderr, views.Doctor(report, o.all, views.At(c.Clock())))
	return true, o.app.Confirm(fmt.Sprintf("Heal %d of them?", report.Fixable()), "nothing was changed", false)
}

func (o *doctorOptions) show(c *invocation.Connection, report doctor.Report) error {
	var shown document.Document
	if len(report.Missing) == 0 || len(report.Missing) < len(report.Nodes) {
		shown = views.Doctor(report, o.all, views.At(c.Clock()))
	}
	err := o.output.Write(o.app.Stdout, report, shown)
	return cmp.Or(err, errMissing(report.Missing), exit.Unless(report.Count() == 0, exit.Failed))
}

// errMissing names the nodes that do not exist, of which nothing can be said.
func errMissing(missing []doctor.Missing) error {
	errs := make([]error, len(missing))
	for i, m := range missing {
		errs[i] = fmt.Errorf("node %q does not exist, and no maintenance and no slot is of it", m.Node)
		if m.Suggestion != "" {
			errs[i] = exit.Hint(errs[i], "Did you mean %s?", m.Suggestion)
		}
	}
	return exit.Joined(errs)
}

// consult runs a doctor to its end. One that runs already is waited for, and its report is taken if it answers what is
// asked: there is one doctor at a time.
func (o *doctorOptions) consult(ctx context.Context, c *invocation.Connection, in api.DoctorInput) (doctor.Report, error) {
	for {
		run, err := c.StartDoctor(ctx, in)
		if err != nil {
			return doctor.Report{}, c.Explain(err)
		}
		if run.Joined {
			fmt.Fprintf(o.app.Stderr, "A doctor is at work already (workflow %s): waiting for its report.\n", run.WorkflowID())
		}
		report, err := run.Report(ctx)
		err = c.Explain(exit.Waited(ctx, err, "the doctor; workflow "+run.WorkflowID()+" goes on"))
		if run.Joined && !exit.Has[*client.NoWorkerError](err) && (err != nil || in.Fix || !slices.Equal(report.Nodes, in.Nodes) || !slices.Equal(report.Lost, in.Lost)) && ctx.Err() == nil {
			continue
		}
		return report, err
	}
}
