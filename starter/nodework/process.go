package nodework

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/config/payloadcodec"
	"drydock.dev/drydock/config/temporalenv"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
)

// Command is the user's command for one node. It is never given to a shell.
type Command struct {
	Argv           []string
	Environ        []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Foreground lets it have the terminal, where there is one, so that it can ask for a password. Otherwise it has
	// no terminal at all: of many at a time none could use it, and to try would stop it for ever.
	Foreground bool
	// KillAfter is how long it may take to end after it was asked to.
	KillAfter time.Duration
}

// nodePlaceholder stands for the node's name in the arguments of a rollout's command.
const nodePlaceholder = "{node}"

// ReplaceNode puts a node's name in the place of its placeholder.
func ReplaceNode(argv []string, node string) []string {
	replaced := make([]string, len(argv))
	for i, arg := range argv {
		replaced[i] = strings.ReplaceAll(arg, nodePlaceholder, node)
	}
	return replaced
}

// SplitAtDash splits arguments into nodes and the command after --, whose own flags are not ours.
func SplitAtDash(args []string, dash int) (nodes, argv []string, err error) {
	switch {
	case dash < 0:
		return nil, nil, errors.New("which command? Put it after --")
	case dash == len(args):
		return nil, nil, errors.New("which command? Nothing follows --")
	}
	return args[:dash], args[dash:], nil
}

// FindProgram looks for the program before a node is taken out of service for it.
func FindProgram(argv []string) error {
	_, err := exec.LookPath(argv[0])
	if err == nil {
		return nil
	}
	return exit.WithCode(startFailure(err), fmt.Errorf("cannot run %s: %w; nothing was started", argv[0], bareCause(err)))
}

// startFailure is the exit status, as of env(1), of a command that did not start.
func startFailure(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return exit.NotFound
	}
	return exit.CannotExecute
}

// bareCause leaves out the file's name, which the message around it has already.
func bareCause(err error) error {
	var byLook *exec.Error
	var byStart *fs.PathError
	switch {
	case errors.As(err, &byLook):
		return bareCause(byLook.Err)
	case errors.As(err, &byStart):
		return byStart.Err
	default:
		return err
	}
}

// run runs the command until it ends by itself, or stop ends and with it the command. It returns the exit status,
// and an error if the command did not even start.
func (c Command) run(stop context.Context, signal func() syscall.Signal, note func(string, ...any)) (status int, err error) {
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...) //nolint:noctx // a context would kill it at once; end first asks it to stop
	cmd.Env = c.Environ
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	// What the command leaves running in the background must not keep us by holding its output open.
	cmd.WaitDelay = 5 * time.Second
	giveBackTerminal := ownGroup(cmd, c.Foreground)
	defer giveBackTerminal()
	if err := cmd.Start(); err != nil {
		return startFailure(err), fmt.Errorf("cannot run %s: %w", c.Argv[0], bareCause(err))
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-stop.Done():
		err = c.end(cmd, signal(), ended, note)
	}
	return exitStatus(cmd, err)
}

// end asks the command to end, and kills it if it does not.
func (c Command) end(cmd *exec.Cmd, s syscall.Signal, ended <-chan error, note func(string, ...any)) error {
	note("stopping the command with %s; it has %s", s, c.KillAfter)
	signalGroup(cmd, s)
	// What it leaves behind, such as jobs that ignore an interrupt, must not go on with the node.
	defer signalGroup(cmd, syscall.SIGKILL)
	select {
	case err := <-ended:
		return err
	case <-time.After(c.KillAfter):
		note("the command has not ended after %s: killing it", c.KillAfter)
		signalGroup(cmd, syscall.SIGKILL)
		return <-ended
	}
}

// exitStatus is the status as shells have it.
func exitStatus(cmd *exec.Cmd, err error) (int, error) {
	state := cmd.ProcessState
	if state == nil {
		return exit.CannotExecute, err
	}
	if wait, ok := state.Sys().(syscall.WaitStatus); ok && wait.Signaled() {
		return 128 + int(wait.Signal()), nil
	}
	return state.ExitCode(), nil
}

// NodeEnvironment has the variables that name a command's node. With the requestor among them, a drydock that the command calls finds the
// same maintenance.
func NodeEnvironment(env invocation.Environment, t client.Maintenance) []string {
	cluster, _, _, _ := api.ParseMaintenanceID(t.WorkflowID)
	return append(withoutCredentials(env),
		"DRYDOCK_NODE="+t.Node,
		"DRYDOCK_WORKFLOW_ID="+t.WorkflowID,
		"DRYDOCK_RUN_ID="+t.FirstRunID,
		invocation.EnvRequestor+"="+t.Requestor,
		invocation.EnvCluster+"="+cluster,
	)
}

// credentials are the variables by which Temporal's tools know who they are and read what is encrypted: the command is somebody
// else's program.
var credentials = []string{
	"TEMPORAL_API_KEY", "TEMPORAL_TLS_CLIENT_", "TEMPORAL_GRPC_META_", "TEMPORAL_CODEC_AUTH",
	temporalenv.VariableAPIKeyFile, payloadcodec.VariableKeysFile,
}

func withoutCredentials(env invocation.Environment) []string {
	return slices.DeleteFunc(slices.Clone(env), func(variable string) bool {
		return slices.ContainsFunc(credentials, func(name string) bool { return strings.HasPrefix(variable, name) })
	})
}
