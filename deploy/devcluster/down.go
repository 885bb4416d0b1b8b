package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

type downOptions struct {
	dir     string
	timeout time.Duration
}

func newDownCommand() *cobra.Command {
	var o downOptions
	cmd := &cobra.Command{
		Use:   "down --dir DIR",
		Short: "Stop the cluster of a directory and keep its state",
		Long: `Stops the ` + "`devcluster up`" + ` that runs in the directory and waits until it and all
its components are gone. It is a success when nothing runs there. The state
stays: the next ` + "`up`" + ` continues with it; remove the directory to start afresh.`,
		Example: `  devcluster down --dir /tmp/dc && rm -r /tmp/dc`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDown(o, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&o.dir, "dir", "", "`DIR` that was given to up (required)")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 30*time.Second, "how long to wait before the cluster is killed")
	_ = cmd.MarkFlagRequired("dir")
	return cmd
}

func runDown(o downOptions, out io.Writer) error {
	id, err := readPIDFile(layout{o.dir}.pidFile())
	if errors.Is(err, os.ErrNotExist) || (err == nil && !id.alive()) {
		fmt.Fprintln(out, "nothing runs in", o.dir)
		return nil
	}
	if err != nil {
		return err
	}
	how, err := stopProcess(id, o.timeout)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s process %d in %s\n", how, id.pid, o.dir)
	return nil
}

// stopProcess ends a process, by force after the timeout. Killing is safe: the
// kernel takes the components along.
func stopProcess(id processID, timeout time.Duration) (string, error) {
	for _, step := range []struct {
		how    string
		signal syscall.Signal
		wait   time.Duration
	}{
		{"stopped", syscall.SIGTERM, timeout},
		{"killed", syscall.SIGKILL, 10 * time.Second},
	} {
		if err := syscall.Kill(id.pid, step.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return "", fmt.Errorf("send %v to process %d: %w", step.signal, id.pid, err)
		}
		for deadline := time.Now().Add(step.wait); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if !id.alive() {
				return step.how, nil
			}
		}
	}
	return "", fmt.Errorf("process %d is still there after it was killed", id.pid)
}
