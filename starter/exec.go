package starter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/nodework"
)

type execOptions struct {
	app         *invocation.App
	spec        input.Flags
	readyWithin time.Duration
	killAfter   time.Duration
	skipCheck   bool
}

func newExec(a *invocation.App) *cobra.Command {
	o := &execOptions{app: a}
	cmd := &cobra.Command{
		Use:   "exec NODE [flags] -- COMMAND [ARG...]",
		Short: "Take a node out of service, run a command, and put the node back",
		Long: `Start the maintenance of a node, wait until it is Ready, run a command, and say done or failed by its exit status:
after 0 the node is put back, after anything else it stays out of service, RequestorFailed, until somebody decides.

While the command runs the node is held: its ready timeout is extended again and again. The command has DRYDOCK_NODE,
DRYDOCK_WORKFLOW_ID, DRYDOCK_RUN_ID and DRYDOCK_REQUESTOR in its environment, and the terminal. It does not get what
proves who you are to Temporal, or decrypts: the variables TEMPORAL_API_KEY, TEMPORAL_TLS_CLIENT_*, TEMPORAL_GRPC_META_*,
DRYDOCK_TEMPORAL_API_KEY_FILE and DRYDOCK_CODEC_KEYS_FILE. A script that calls drydock itself takes the first from Temporal's
configuration file (TEMPORAL_CONFIG_FILE, TEMPORAL_PROFILE), and names the files itself.

Interrupted before the node is Ready, the maintenance is cancelled and everything undone (exit code 3). From Ready on
an interrupt stops the command, which is then failed. If Temporal is away when the command has ended, exec goes on
trying to say so until it is interrupted twice.

exec exits with the command's status; 125 is an error of Drydock's own, 126 and 127 are a command that cannot be
executed or is not found. If the command does not exist, nothing is started at all.`,
		Example: `  drydock exec worker-01 -- ./patch.sh
  drydock exec worker-01 --reason "kernel 6.12" --ready-timeout 10m -- ssh -t root@worker-01 'dnf -y update && reboot'`,
		Annotations:           map[string]string{ownErrorCode: "yes"},
		DisableFlagsInUseLine: true,
		RunE:                  func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), cmd, args) },
	}
	o.spec.Register(cmd)
	cmd.Flags().Lookup("work").Hidden = true // the command is the work
	invocation.DurationVar(cmd.Flags(), &o.readyWithin, "timeout", 0, "cancel the maintenance if the node is not Ready by then; 0 waits for ever")
	registerKillAfter(cmd, &o.killAfter)
	registerSkipCheck(cmd, &o.skipCheck)
	return cmd
}

func registerKillAfter(cmd *cobra.Command, killAfter *time.Duration) {
	invocation.DurationVar(cmd.Flags(), killAfter, "kill-after", 30*time.Second, "kill the command if it has not ended this long after it was asked to")
}

// run turns every error that is not the command's into one of ours, whose code no command is likely to use.
func (o *execOptions) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	out, err := o.exec(ctx, cmd, args)
	if err != nil {
		if code := exit.CodeOf(err); code == exit.NotFound || code == exit.CannotExecute || code == exit.Interrupted {
			return err
		}
		return exit.WithCode(exit.OwnError, err)
	}
	if out.Note == "" {
		return exit.Unless(out.Code == exit.OK, out.Code)
	}
	err = errors.New(out.Note)
	if !strings.Contains(out.Note, out.Node) {
		err = fmt.Errorf("%s: %w", out.Node, err)
	}
	if out.Result == api.OutcomeFailed && out.ExitStatus != nil && *out.ExitStatus != 0 {
		err = exit.Hint(err, `After its repair: "%s done %s", or "%s retry %s" and another try.`, o.app.Name, out.Node, o.app.Name, out.Node)
	}
	return exit.WithCode(out.Code, err)
}

func (o *execOptions) exec(ctx context.Context, cmd *cobra.Command, args []string) (api.NodeOutcome, error) {
	a := o.app
	names, argv, err := nodework.SplitAtDash(args, cmd.ArgsLenAtDash())
	if err != nil {
		return api.NodeOutcome{}, exit.UsageError("%w", err)
	}
	if err := invocation.CheckTimeout(o.readyWithin, true); err != nil {
		return api.NodeOutcome{}, err
	}
	orders, err := input.OrdersOf(a, &o.spec, names)
	if err != nil {
		return api.NodeOutcome{}, err
	}
	if len(orders) != 1 {
		return api.NodeOutcome{}, exit.UsageError("one node at a time; rollout takes many")
	}
	if err := input.RefuseWork(orders[0].Input); err != nil {
		return api.NodeOutcome{}, err
	}
	if err := nodework.FindProgram(argv); err != nil {
		return api.NodeOutcome{}, err
	}
	c, err := a.Connect(ctx)
	if err != nil {
		return api.NodeOutcome{}, err
	}
	defer c.Close()
	if !o.skipCheck {
		if err := a.CheckNodes(ctx, input.OrderNodes(orders)); err != nil {
			return api.NodeOutcome{}, err
		}
	}
	stop := nodework.NewInterrupts(ctx, a.Notify)
	defer stop.Stop()
	s := &nodework.Session{
		Maintenances: &nodework.TemporalClient{Conn: c, Show: a.Waiting(a.Stderr)}, Program: a.Name, Order: orders[0],
		ReadyWithin: o.readyWithin, Now: a.Clock,
		Command: nodework.Command{
			Argv: argv, Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Foreground: true, KillAfter: o.killAfter,
		},
		Env: a.Env,
	}
	return s.Work(nodework.Stops{ //nolint:contextcheck // each of the stops is a context
		Abandon: stop.Reached(1), Abort: stop.Reached(1), GiveUp: stop.Reached(2), Leave: stop.Next, Interrupts: stop,
	}), nil
}
