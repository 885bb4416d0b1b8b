package starter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drydock/api"
	"drydock/client"
)

type execOptions struct {
	app         *app
	spec        specFlags
	readyWithin time.Duration
	killAfter   time.Duration
	skipCheck   bool
}

func newExec(a *app) *cobra.Command {
	o := &execOptions{app: a}
	cmd := &cobra.Command{
		Use:   "exec NODE [flags] -- COMMAND [ARG...]",
		Short: "Take a node out of service, run a command, and put the node back",
		Long: `Start the maintenance of a node, wait until it is Ready, run a command, and say done or failed by its exit status:
after 0 the node is put back, after anything else it stays out of service, RequestorFailed, until somebody decides.

While the command runs the node is held: its ready timeout is extended again and again. The command has DRYDOCK_NODE,
DRYDOCK_WORKFLOW_ID, DRYDOCK_RUN_ID and DRYDOCK_REQUESTOR in its environment, and the terminal.

Interrupted before the node is Ready, the maintenance is cancelled and everything undone (exit code 3). From Ready on
an interrupt stops the command, which is then failed. If Temporal is away when the command has ended, exec goes on
trying to say so until it is interrupted twice.

exec exits with the command's status; 125 is an error of Drydock's own, 126 and 127 are a command that cannot be
executed or is not found. Where the command does not exist, nothing is started at all.`,
		Example: `  drydock exec worker-01 -- ./patch.sh
  drydock exec worker-01 --reason "kernel 6.12" --ready-timeout 10m -- ssh -t root@worker-01 'dnf -y update && reboot'`,
		Annotations:           map[string]string{ownErrorCode: "yes"},
		DisableFlagsInUseLine: true,
		RunE:                  func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), cmd, args) },
	}
	o.spec.register(cmd)
	cmd.Flags().DurationVar(&o.readyWithin, "timeout", 0, "cancel the maintenance if the node is not Ready by then; 0 waits for ever")
	registerKillAfter(cmd, &o.killAfter)
	registerSkipCheck(cmd, &o.skipCheck)
	return cmd
}

func registerKillAfter(cmd *cobra.Command, killAfter *time.Duration) {
	cmd.Flags().DurationVar(killAfter, "kill-after", 30*time.Second, "kill the command if it has not ended this long after it was told to")
}

// run turns every error that is not the command's into one of ours, whose code no command is likely to use.
func (o *execOptions) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	out, err := o.exec(ctx, cmd, args)
	if err != nil {
		if code := codeOf(err); code == exitNotFound || code == exitCannotExecute || code == exitInterrupted {
			return err
		}
		return withCode(exitOwnError, err)
	}
	if out.Note == "" {
		return withCodeUnlessOK(out.code)
	}
	err = errors.New(out.Note)
	if !strings.Contains(out.Note, out.Node) {
		err = fmt.Errorf("%s: %w", out.Node, err)
	}
	if out.Result == resultFailed && out.ExitStatus != nil && *out.ExitStatus != 0 {
		err = hint(err, `After its repair: "%s done %s", or "%s retry %s" and another try.`, o.app.name, out.Node, o.app.name, out.Node)
	}
	return withCode(out.code, err)
}

func withCodeUnlessOK(code int) error {
	if code == exitOK {
		return nil
	}
	return withCode(code, nil)
}

func (o *execOptions) exec(ctx context.Context, cmd *cobra.Command, args []string) (outcome, error) {
	a := o.app
	names, argv, err := splitAtDash(args, cmd.ArgsLenAtDash())
	if err != nil {
		return outcome{}, usageError("%w", err)
	}
	if err := checkTimeout(o.readyWithin, true); err != nil {
		return outcome{}, err
	}
	orders, err := a.orders(cmd, &o.spec, names)
	if err != nil {
		return outcome{}, err
	}
	if len(orders) != 1 {
		return outcome{}, usageError("one node at a time; rollout takes many")
	}
	if err := findCommand(argv); err != nil {
		return outcome{}, err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return outcome{}, err
	}
	defer c.Close()
	if !o.skipCheck {
		if err := a.checkNodes(ctx, orderNodes(orders)); err != nil {
			return outcome{}, err
		}
	}
	stop := a.interrupts(ctx)
	defer stop.stop()
	s := &session{
		desk: &temporalDesk{conn: c, show: newDisplay(a.Stderr, a.now)}, program: a.name, order: orders[0],
		readyWithin: o.readyWithin, now: a.now,
		command: func(t client.Maintenance) command {
			return command{
				argv: argv, environ: nodeEnvironment(a.env, t), stdin: a.Stdin, stdout: a.Stdout, stderr: a.Stderr,
				foreground: true, killAfter: o.killAfter,
			}
		},
	}
	return s.work(stops{ //nolint:contextcheck // each of the stops is a context
		abandon: stop.reached(1), abort: stop.reached(1), giveUp: stop.reached(2), leave: stop.next, signal: stop.last,
	}), nil
}

// nodeEnvironment tells a command which node it is for. The requestor lets the drydock that a script calls find the
// same maintenance.
func nodeEnvironment(env environment, t client.Maintenance) []string {
	cluster, _, _, _ := api.ParseMaintenanceID(t.WorkflowID)
	return append(append([]string{}, env...),
		"DRYDOCK_NODE="+t.Node,
		"DRYDOCK_WORKFLOW_ID="+t.WorkflowID,
		"DRYDOCK_RUN_ID="+t.RunID,
		envRequestor+"="+t.Requestor,
		envCluster+"="+cluster,
	)
}
