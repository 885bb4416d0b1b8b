package starter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"drydock/api"
	"drydock/client"
	"drydock/rules/doctor"
	"drydock/rules/period"
	"drydock/rules/spec"
)

type doctorOptions struct {
	app     *app
	output  output
	fix     bool
	yes     bool
	all     bool
	comment string
	pause   time.Duration
	timeout time.Duration
}

func newDoctor(a *app) *cobra.Command {
	o := &doctorOptions{app: a}
	cmd := &cobra.Command{
		Use:   "doctor [NODE...]",
		Short: "Find what is inconsistent between the cluster, the scheduler and the maintenances, and heal it",
		Long: `List what is inconsistent between the cluster, the scheduler and the maintenances: marks, slots and requests of
maintenances that do not run any more, maintenances whose slot or mark is lost, label, taint or cordon left on a node,
maintenances of nodes that are gone, and a scheduler or maintenance that does not answer. Everything is looked at twice,
and only what both looks find is listed: a busy cluster is always inconsistent somewhere for a moment.

Nothing is changed without --fix. With it, everything is healed that proves to be Drydock's own, each with a record: an
activity in the doctor's workflow, an Event on the node, and an entry in the scheduler's decisions for a slot. What is
left says what a person has to decide; a node is never uncordoned unless its mark says that Drydock cordoned it.

Exit code 0 says that nothing is inconsistent (any more), 1 that something is, or that it could not be found out.`,
		Example: `  drydock doctor
  drydock doctor worker-01 worker-02
  drydock doctor --fix --comment "after the Temporal restore"
  drydock doctor --fix --yes -o json | jq '.findings[] | {kind, node, nextStep}'`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.output.register(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.fix, "fix", false, "heal what can be healed without a person")
	registerYes(f, &o.yes)
	f.StringVar(&o.comment, "comment", "", "why, recorded with everything that is healed")
	f.BoolVar(&o.all, "all", false, "show also what is no inconsistency, such as nodes that a person has cordoned")
	f.DurationVar(&o.pause, "pause", 5*time.Second, "time between the two looks")
	f.DurationVar(&o.timeout, "timeout", 10*time.Minute, "how long to wait for the report")
	return cmd
}

func (o *doctorOptions) run(ctx context.Context, nodes []string) error {
	if err := o.check(nodes); err != nil {
		return err
	}
	c, err := o.app.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.HasWorker(ctx); err != nil {
		return err
	}
	ctx, cancel := withTimeout(ctx, o.timeout)
	defer cancel()
	in := api.DoctorInput{Nodes: nodes, Pause: spec.Duration(o.pause), By: c.By(), Comment: o.comment}
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
	if err := o.output.check(); err != nil {
		return err
	}
	for _, name := range nodes {
		if err := spec.NodeName(name); err != nil {
			return usageError("%w", err)
		}
	}
	switch {
	case o.pause <= 0:
		return usageError("--pause %s: want more than 0", o.pause)
	case o.timeout <= 0:
		return usageError("--timeout %s: want more than 0", o.timeout)
	case !o.fix && (o.yes || o.comment != ""):
		return usageError("--yes and --comment go with --fix")
	case o.fix:
		return o.app.canConfirm(o.yes)
	}
	return nil
}

// ask shows what is found, and asks whether to heal it. Where there is nothing to heal, the report is the answer.
func (o *doctorOptions) ask(ctx context.Context, c *connection, in api.DoctorInput) (wanted bool, err error) {
	report, err := o.consult(ctx, c, in)
	if err != nil {
		return false, err
	}
	if report.Fixable() == 0 {
		return false, o.show(c, report)
	}
	renderDoctor(o.app.Stderr, report, o.all, c.now())
	return true, o.app.confirm(fmt.Sprintf("Heal %d of them?", report.Fixable()), "nothing was changed", false)
}

func (o *doctorOptions) show(c *connection, report doctor.Report) error {
	err := o.output.write(o.app.Stdout, report, func(w io.Writer) { renderDoctor(w, report, o.all, c.now()) })
	if err == nil && report.Count() > 0 {
		err = withCode(exitFailed, nil)
	}
	return err
}

// consult runs a doctor to its end. One that runs already is waited for, and its report is taken if it answers what is
// asked: there is one doctor at a time.
func (o *doctorOptions) consult(ctx context.Context, c *connection, in api.DoctorInput) (doctor.Report, error) {
	for {
		run, err := c.StartDoctor(ctx, in)
		if err != nil {
			return doctor.Report{}, c.explain(err)
		}
		if run.Joined {
			fmt.Fprintf(o.app.Stderr, "A doctor is at work already (workflow %s): waiting for its report.\n", run.WorkflowID())
		}
		report, err := c.doctorReport(ctx, run)
		if run.Joined && (err != nil || in.Fix || !slices.Equal(report.Nodes, in.Nodes)) && ctx.Err() == nil {
			continue
		}
		return report, err
	}
}

func (c *connection) doctorReport(ctx context.Context, run client.Doctor) (doctor.Report, error) {
	report, err := run.Report(ctx)
	switch err = orStopped(ctx, err); {
	case errors.Is(err, errTimedOut):
		return report, withCode(exitTimedOut, fmt.Errorf("timed out waiting for the doctor; workflow %s goes on", run.WorkflowID()))
	case errors.Is(err, errInterrupted):
		return report, withCode(exitInterrupted, fmt.Errorf("no longer waiting for the doctor; workflow %s goes on", run.WorkflowID()))
	default:
		return report, c.explain(err)
	}
}

func renderDoctor(w io.Writer, r doctor.Report, all bool, now time.Time) {
	renderHealed(w, r)
	looked := fmt.Sprintf("%s, %d marked; %s; %s in use, %d waited for", plural(r.Looked.Nodes, "node"), r.Looked.Marked,
		plural(r.Looked.Maintenances, "running maintenance"), plural(r.Looked.Holders, "slot"), r.Looked.Pending)
	fmt.Fprintf(w, "Looked at: %s.\n", looked)
	switch n := r.Count(); {
	case n == 0 && len(r.Healed) > 0:
		fmt.Fprintln(w, "Nothing is inconsistent any more.")
	case n == 0:
		fmt.Fprintln(w, "Nothing is inconsistent.")
	default:
		fmt.Fprintf(w, "%s:\n", plural(n, "finding"))
		for _, f := range r.Findings {
			renderDoctorFinding(w, f, now)
		}
		if r.More > 0 {
			fmt.Fprintf(w, "and %d more\n", r.More)
		}
	}
	if all {
		for _, f := range r.Notes {
			fmt.Fprintf(w, "Note: %s\n", oneLine(about(f)+f.Text))
		}
		if r.MoreNotes > 0 {
			fmt.Fprintf(w, "and %d more notes\n", r.MoreNotes)
		}
	}
}

func renderHealed(w io.Writer, r doctor.Report) {
	if len(r.Healed) == 0 {
		return
	}
	fmt.Fprintln(w, "Healed:")
	for _, h := range r.Healed {
		fmt.Fprintf(w, "  %s  %s\n    done: %s\n", h.Kind, oneLine(about(h.Finding)+h.Text), oneLine(h.Tried))
	}
	if r.MoreHealed > 0 {
		fmt.Fprintf(w, "  and %d more\n", r.MoreHealed)
	}
}

// renderDoctorFinding takes several lines, since what a person has to do does not fit into a column.
func renderDoctorFinding(w io.Writer, f doctor.Finding, now time.Time) {
	since := ""
	if f.Since != nil {
		since = " (since " + period.Age(now.Sub(*f.Since)) + ")"
	}
	fmt.Fprintf(w, "  %s  %s%s\n", f.Kind, oneLine(about(f)+f.Text), since)
	if f.RunID != "" {
		fmt.Fprintf(w, "    workflow: %s, run %s\n", f.WorkflowID, f.RunID)
	}
	switch {
	case f.Tried != "":
		fmt.Fprintf(w, "    tried: %s\n", oneLine(f.Tried))
	case f.Fix != "":
		fmt.Fprintf(w, "    --fix: %s\n", f.Fix.Does())
	}
	if f.NextStep != "" {
		fmt.Fprintf(w, "    next: %s\n", oneLine(f.NextStep))
	}
}

func about(f doctor.Finding) string {
	if f.Node == "" {
		return ""
	}
	return f.Node + ": "
}
