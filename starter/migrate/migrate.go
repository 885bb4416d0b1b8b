// Package migrate is the command that shows what becomes of another system's settings and objects with Drydock, and compares the two.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/rules/migration"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/profile"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

type options struct {
	app                         *invocation.App
	output                      terminal.Output
	from, file, write           string
	maxParallel, maxUnavailable string
	shadow, back, yes           bool
	until                       time.Duration
}

// New is drydock migrate.
func New(a *invocation.App) *cobra.Command {
	o := &options{app: a}
	cmd := &cobra.Command{
		Use:   "migrate --from SYSTEM",
		Short: "Show what becomes of another system that maintains nodes, and compare Drydock with it",
		Long: `Look at a cluster that another system maintains: ` + strings.Join(migration.Names(), ", ") + `. It shows what of
the system is there, what becomes of its settings and what has no equal, which nodes it has out of service and what Drydock makes of
them, and the steps to take over and to go back. It reads the cluster and changes nothing; no Temporal is needed. --write writes the
files that Drydock needs: plans, Jobs, checks and parts of the worker's configuration.

With --shadow it goes on to follow the system, and says of each node that this takes out of service whether Drydock would have, by
the translated settings: earlier, at the same time, or not yet, and why. Each decision is compared by itself, in the cluster as the
system has it. Interrupt it, or name --for, to have the sum. With -o json each line is a comparison.

With --back it takes drydock-bridge's marks, the finalizer ` + spec.ObjectFinalizer + ` and the annotation ` + spec.RunAnnotation + `, off
the system's objects, so that the system can serve them again. It does so once the bridge has stopped.

maintenance-controller's settings (sap) are in its file: --file. --max-parallel and --max-unavailable compare with other limits.`,
		Example: `  drydock migrate --from kured
  drydock migrate --from system-upgrade-controller --write drydock/
  drydock migrate --from sap --file maintenance.yaml
  drydock migrate --from maintenance-operator --shadow --for 24h -o json > shadow.jsonl
  drydock migrate --from maintenance-operator --back`,
		Args: invocation.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.output.Register(cmd)
	f := cmd.Flags()
	f.StringVar(&o.from, "from", "", "the system: "+strings.Join(migration.Names(), ", "))
	f.StringVarP(&o.file, "file", "f", "", "the configuration file of sap's maintenance-controller, - for standard input")
	f.StringVar(&o.write, "write", "", "write the files for Drydock into this directory, where none of their names is taken")
	f.BoolVar(&o.shadow, "shadow", false, "follow the system, and compare what it does with what Drydock would do")
	invocation.DurationVar(f, &o.until, "for", 0, "with --shadow: for how long; 0 is until it is interrupted")
	f.BoolVar(&o.back, "back", false, "take the bridge's marks off the system's objects")
	invocation.RegisterYes(f, &o.yes)
	f.StringVar(&o.maxParallel, "max-parallel", "", "with --shadow: the limit to compare with, in place of the system's")
	f.StringVar(&o.maxUnavailable, "max-unavailable", "", "with --shadow: the limit to compare with, in place of the system's")
	terminal.CompleteFlag(cmd, "from", migration.Names())
	return cmd
}

func (o *options) run(ctx context.Context) error {
	system, err := o.system()
	if err != nil {
		return err
	}
	config, name, err := o.app.Kubernetes(invocation.Cluster{})
	if err != nil {
		return exit.UsageError("%w", err)
	}
	r, err := newReader(config, system, o.app)
	if err != nil {
		return exit.UsageError("kubeconfig: %w", err)
	}
	if o.shadow {
		return o.follow(ctx, system, r)
	}
	if o.back {
		return o.goBack(ctx, system, r)
	}
	cluster, err := r.read(ctx)
	if err != nil {
		return exit.Hint(err, "It reads nodes and what %s goes by, with the account of the kubeconfig (context %q).", o.from, name)
	}
	report := system.Report(cluster)
	if o.write != "" {
		if err := write(o.write, report.Inputs); err != nil {
			return err
		}
	}
	return o.output.Write(o.app.Stdout, report, views.Migration(report, o.write))
}

// system is the one that is named, with what the flags say.
func (o *options) system() (migration.System, error) {
	given := migration.Given{Environment: profile.Environment(o.app)}
	given.Environment.AllowUnset = true
	var err error
	if o.file != "" {
		given.File, err = profile.ReadFile(o.app, o.file)
	}
	err = errors.Join(err, o.together(), amount(&given.Limits.MaxParallel, "max-parallel", o.maxParallel),
		amount(&given.Limits.MaxUnavailable, "max-unavailable", o.maxUnavailable))
	if err != nil {
		return nil, exit.UsageError("%w", err)
	}
	system, err := migration.Of(o.from, given)
	if err != nil {
		return nil, exit.UsageError("--from %w", err)
	}
	return system, nil
}

func amount(a *schedule.Amount, flag, text string) (err error) {
	if text == "" {
		return nil
	}
	if *a, err = schedule.ParseAmount(text); err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return nil
}

func (o *options) together() error {
	limits := o.maxParallel != "" || o.maxUnavailable != ""
	switch {
	case o.from == "":
		return fmt.Errorf("missing --from SYSTEM: one of %s", strings.Join(migration.Names(), ", "))
	case o.file != "" && o.from != migration.SAP:
		return fmt.Errorf("--file: only for --from %s", migration.SAP)
	case limits && (o.from == migration.SAP || o.from == migration.Medik8s):
		return fmt.Errorf("--max-parallel and --max-unavailable: not for --from %s, which has rules of its own", o.from)
	case !o.shadow && (o.until != 0 || limits):
		return errors.New("--for, --max-parallel and --max-unavailable: only with --shadow")
	case o.shadow && o.back:
		return errors.New("--shadow and --back: one of them")
	case (o.shadow || o.back) && o.write != "":
		return errors.New("--write: neither with --shadow nor with --back")
	}
	return nil
}

// write writes the files. It overwrites nothing: where a name is taken, none is written.
func write(directory string, files []migration.Input) error {
	for _, f := range files {
		at := filepath.Join(directory, f.File)
		if _, err := os.Lstat(at); err == nil {
			return exit.UsageError("--write %s: %s is there already, and nothing was written", directory, at)
		}
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return exit.UsageError("--write: %w", err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(directory, f.File), []byte(f.Text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// follow compares until it is interrupted, or its time is over.
func (o *options) follow(ctx context.Context, system migration.System, r *reader) error {
	if !o.output.Table() && o.output.Format != terminal.FormatJSON {
		return exit.UsageError("--output %s: with --shadow want %s or %s", o.output.Format, terminal.FormatTable, terminal.FormatJSON)
	}
	began := o.app.Clock()
	var over <-chan time.Time
	if o.until > 0 {
		timer := time.NewTimer(o.until)
		defer timer.Stop()
		over = timer.C
	}
	changes, err := r.follow(ctx)
	if err != nil {
		return err
	}
	shadow := migration.NewShadow(system)
	notes := o.app.Messages(&o.output)
	fmt.Fprintf(notes, "Following %s: what it does is compared with what Drydock would do. Nothing is changed.\n", o.from)
	trouble := ""
	for {
		var compared []migration.Compared
		cluster, err := r.look()
		if err == nil {
			compared, err = shadow.Look(cluster)
		}
		if err != nil && err.Error() != trouble { // a setting may be mended while this goes on
			fmt.Fprintf(notes, "%s cannot be compared now: %v\n", o.from, err)
		}
		trouble = ""
		if err != nil {
			trouble = err.Error()
		}
		if err := o.tell(compared); err != nil {
			return err
		}
		select {
		case <-changes:
			continue
		case <-time.After(lookAgain):
			continue
		case <-over:
		case <-ctx.Done():
		}
		terminal.Show(notes, views.Shadow(shadow, o.app.Clock().Sub(began)))
		return nil
	}
}

// lookAgain is how soon the cluster is looked at where nothing has changed: windows open, and conditions come of age.
const lookAgain = 15 * time.Second

func (o *options) tell(all []migration.Compared) error {
	for _, c := range all {
		var err error
		if o.output.Table() {
			_, err = fmt.Fprintf(o.app.Stdout, "%s  %s\n", o.app.Clock().Format("15:04:05"), terminal.OneLine(views.Compared(c)))
		} else {
			err = terminal.WriteLine(o.app.Stdout, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
