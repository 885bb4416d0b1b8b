// Package starter is the command line of Drydock: it starts maintenances, sends them messages and shows them.
package starter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// Process is what a command line sees of the process it runs in.
type Process struct {
	// Args begin with the name of the program.
	Args    []string
	Environ []string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Notify asks for the process's interrupts, as signal.Notify does. It is for commands that treat a second
	// interrupt differently from the first; without it the context's end is the only interrupt there is.
	Notify func(chan<- os.Signal)
}

// app is one invocation: the process, and what the persistent flags say.
type app struct {
	Process
	// name is what the user typed to get here, and what hints tell to type.
	name   string
	env    environment
	global globalFlags
	now    func() time.Time
}

// Run runs one command line and returns its exit code. All output goes to the process's writers.
func Run(ctx context.Context, p Process) int {
	a := newApp(p)
	root := newRoot(a) //nolint:contextcheck // commands get their context from cobra, when they run
	root.SetArgs(p.Args[1:])
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	return a.report(cmd, err)
}

func newApp(p Process) *app {
	if len(p.Args) == 0 {
		p.Args = []string{"drydock"}
	}
	return &app{Process: p, name: displayName(p.Args[0]), env: p.Environ, now: time.Now}
}

// displayName tells a kubectl plugin, which kubectl finds by the file's name, from the plain command.
func displayName(arg0 string) string {
	base := strings.TrimSuffix(filepath.Base(arg0), ".exe")
	if strings.HasPrefix(base, "kubectl-drydock") {
		return "kubectl drydock"
	}
	return "drydock"
}

// report prints the error, if there is one to print, and returns the exit code.
func (a *app) report(cmd *cobra.Command, err error) int {
	if err == nil {
		return exitOK
	}
	var ran *ranError
	if !errors.As(err, &ran) {
		// The error is cobra's own: the command line was wrong and no command ran.
		fmt.Fprintf(a.Stderr, "Error: %s\nRun \"%s --help\" for usage.\n", indent(strings.TrimSpace(err.Error())), cmd.CommandPath())
		if cmd.Annotations[ownErrorCode] != "" {
			return exitOwnError
		}
		return exitUsage
	}
	code, err := codeOf(ran.err), ran.err
	var coded *exitError
	switch explicit := errors.As(err, &coded); {
	case explicit && coded.err == nil:
		return code
	case !explicit && cmd.Context().Err() != nil:
		// Whatever failed, it failed because everything was told to stop.
		code, err = exitInterrupted, errInterrupted
	}
	fmt.Fprintf(a.Stderr, "Error: %s\n", indent(err.Error()))
	if code == exitUsage {
		fmt.Fprintf(a.Stderr, "Run \"%s --help\" for usage.\n", cmd.CommandPath())
	}
	return code
}

// ownErrorCode annotates commands that exit with the status of a command of the user's.
const ownErrorCode = "drydock/own-error-code"

// ranError marks an error of a command that ran, which cobra's own errors are told from by its absence.
type ranError struct{ err error }

func (e *ranError) Error() string { return e.err.Error() }
func (e *ranError) Unwrap() error { return e.err }

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "drydock",
		Short: "Take Kubernetes nodes out of service for maintenance, and put them back",
		Long: `Drydock takes Kubernetes nodes out of service for maintenance and puts them back, and never loses track of one.

Every maintenance is a durable Temporal workflow. It waits for a slot, cordons the node, drains it and tells you that
the node is ready; you do the work and say that it is done; then the node is put back. Closing your terminal does not
stop a maintenance, and "drydock status NODE" finds it again from any machine.

` + exitCodesHelp,
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
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: a.name},
		DisableAutoGenTag: true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	a.global.register(root.PersistentFlags())
	addGroups(root, a)
	a.registerCompletions(root)
	adapt(root, a.name)
	return root
}

func addGroups(root *cobra.Command, a *app) {
	groups := []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"run", "Run maintenances:", []*cobra.Command{newStart(a), newExec(a), newRollout(a)}},
		{"see", "See what happens:", []*cobra.Command{newStatus(a), newList(a), newWatch(a), newPreflight(a), newHistory(a), newReport(a)}},
		{"tell", "Tell a maintenance:", []*cobra.Command{
			newDone(a), newFailed(a), newRetry(a), newCancel(a), newExtend(a), newStarted(a), newDrained(a), newJoin(a), newLeave(a),
			newEscalate(a), newSkipPod(a), newRetryNow(a),
			newApprove(a), newDeny(a), newValidated(a), newValidationFailed(a), newHookDone(a), newSkipHook(a),
		}},
		{"cluster", "The cluster as a whole:", []*cobra.Command{newLimits(a), newFreeze(a), newThaw(a), newDoctor(a)}},
		{"other", "Other commands:", []*cobra.Command{newVersion(a)}},
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
}

// adapt marks the errors of every command that runs, and lets its help speak of the program by the name it was
// called by.
func adapt(c *cobra.Command, name string) {
	if run := c.RunE; run != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			if err := run(cmd, args); err != nil {
				return &ranError{err}
			}
			return nil
		}
	}
	c.Example = strings.ReplaceAll(c.Example, "  drydock ", "  "+name+" ")
	c.Long = strings.ReplaceAll(c.Long, `"drydock `, `"`+name+" ")
	for _, sub := range c.Commands() {
		adapt(sub, name)
	}
}
