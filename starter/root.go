// Package starter is the command line of Drydock: it starts maintenances, sends them messages and shows them.
package starter

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"drydock.dev/drydock/rules/nearest"
	"drydock.dev/drydock/starter/codecserver"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/health"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/migrate"
	"drydock.dev/drydock/starter/plan"
	"drydock.dev/drydock/starter/profile"
	"drydock.dev/drydock/starter/setup"
	"drydock.dev/drydock/starter/tell"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/starter/uiguard"
)

// Run runs one command line and returns its exit code. All output goes to the process's writers.
func Run(ctx context.Context, p invocation.Process) int {
	a := invocation.New(p)
	root := newRoot(a) //nolint:contextcheck // commands get their context from cobra, when they run
	args, err := todays(root, a.Args[1:], p.Stderr)
	if err != nil {
		return report(a, root, err)
	}
	root.SetArgs(args)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	return report(a, cmd, err)
}

// Command is the command line itself, for what is made of it: manual pages and completions.
func Command() *cobra.Command { return newRoot(invocation.New(invocation.Process{})) }

// report prints the error, if there is one to print, and returns the exit code.
func report(a *invocation.App, cmd *cobra.Command, err error) int {
	if err == nil {
		return exit.OK
	}
	var ran *ranError
	if !errors.As(err, &ran) {
		// The error is cobra's own: the command line was wrong and no command ran.
		fmt.Fprintf(a.Stderr, "Error: %s\nRun \"%s --help\" for usage.\n", exit.Indent(strings.TrimSpace(err.Error())), cmd.CommandPath())
		if cmd.Annotations[ownErrorCode] != "" {
			return exit.OwnError
		}
		return exit.Usage
	}
	code, err := exit.CodeOf(ran.err), ran.err
	var coded *exit.Error
	switch explicit := errors.As(err, &coded); {
	case explicit && coded.Err == nil:
		return code
	case !explicit && cmd.Context().Err() != nil:
		// Whatever failed, it failed because everything was being stopped.
		code, err = exit.Interrupted, exit.ErrInterrupted
	}
	fmt.Fprintf(a.Stderr, "Error: %s\n", exit.Indent(terminal.Words(err.Error(), a.Clock())))
	if code == exit.Usage {
		fmt.Fprintf(a.Stderr, "Run \"%s --help\" for usage.\n", cmd.CommandPath())
	}
	return code
}

// ownErrorCode annotates commands that exit with the status of a command of the user's.
const ownErrorCode = "drydock/own-error-code"

// ranError marks an error of a command that ran. cobra's own errors do not have it.
type ranError struct{ err error }

func (e *ranError) Error() string { return e.err.Error() }

func (e *ranError) Unwrap() error { return e.err }

func newRoot(a *invocation.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "drydock",
		Short: "Take Kubernetes nodes out of service for maintenance, and put them back",
		Long: `Drydock takes Kubernetes nodes out of service for maintenance and puts them back, and never loses track of one.

Every maintenance is a durable Temporal workflow. It waits for a slot, cordons the node, drains it and tells you that
the node is ready; you do the work and say that it is done; then the node is put back. Closing your terminal does not
stop a maintenance, and "drydock status NODE" finds it again from any machine.

"drydock VERB NODE" is about the maintenance of a node, "drydock NOUN VERB NAME" about anything else, such as a plan.
"drydock help all" lists all commands and exit codes.`,
		Example: `  # One node by hand
  drydock start worker-01 --reason "kernel 6.12" --wait
  drydock done worker-01 --wait

  # One node, with a script
  drydock exec worker-01 -- ./patch.sh worker-01

  # A whole pool, two nodes at a time
  drydock rollout --selector pool=gpu --max-parallel 2 -- ./patch.sh {node}`,
		Version:           versionLine(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: a.Name},
		DisableAutoGenTag: true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	a.Global.Register(root.PersistentFlags())
	addGroups(root, a)
	registerCompletions(a, root)
	adapt(root, a)
	setHelp(root)
	addFormer(root)
	return root
}

// flagError says in the user's words what a flag wants, where its library names its own functions.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if meant := nearest.To(unknown.GetSpecifiedName(), known); meant != "" && len(unknown.GetSpecifiedName()) > 1 {
			return fmt.Errorf("%w; did you mean --%s?", err, meant)
		}
		return err
	}
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	why := invalid.Unwrap()
	var number *strconv.NumError
	if errors.As(why, &number) {
		why = errors.New("want a whole number")
		if invalid.GetFlag().Value.Type() == "bool" {
			why = errors.New("want true or false")
		}
	}
	return fmt.Errorf("--%s %q: %w", invalid.GetFlag().Name, invalid.GetValue(), why)
}

func addGroups(root *cobra.Command, a *invocation.App) {
	groups := []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"run", "Run maintenances:", []*cobra.Command{newStart(a), newExec(a), newRollout(a), plan.New(a, newAttach(a))}},
		{"see", "See what happens:", []*cobra.Command{newStatus(a), newList(a), newWatch(a), newPreflight(a), newHistory(a), newReport(a), newAudit(a)}},
		{"tell", "Tell a maintenance:", tell.Commands(a)},
		{"cluster", "The cluster as a whole:", []*cobra.Command{newLimits(a), newFreeze(a), newThaw(a), newWindows(a), health.New(a), profile.New(a), newDoctor(a), setup.New(a), migrate.New(a), codecserver.New(a), uiguard.New(a)}},
		{"other", "Other commands:", []*cobra.Command{newExplain(a), newSchema(a), newVersion(a)}},
	}
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
	root.InitDefaultCompletionCmd() // else made when a command line runs, without what follows
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		invocation.Noun(completion)
	}
}

// marked marks the errors of a function of a command, if it has one.
func marked(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	if run == nil {
		return nil
	}
	return func(cmd *cobra.Command, args []string) error {
		if err := run(cmd, args); err != nil {
			return &ranError{err}
		}
		return nil
	}
}

// adapt marks the errors of every command that runs, takes flags by the names they had, and lets the help speak of the program by
// the name it was called by.
func adapt(c *cobra.Command, a *invocation.App) {
	takeFormerFlags(c, a)
	c.PreRunE, c.RunE = marked(c.PreRunE), marked(c.RunE)
	c.Example = strings.ReplaceAll(c.Example, "  drydock ", "  "+a.Name+" ")
	c.Long = strings.ReplaceAll(c.Long, `"drydock `, `"`+a.Name+" ")
	for _, sub := range c.Commands() {
		adapt(sub, a)
	}
}
