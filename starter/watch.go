package starter

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

type watchOptions struct {
	app       *invocation.App
	format    string
	requestor string
	timeout   time.Duration
}

func newWatch(a *invocation.App) *cobra.Command {
	o := &watchOptions{app: a}
	cmd := &cobra.Command{
		Use:   "watch [NODE...]",
		Short: "Watch maintenances until they end",
		Long: `Watch the maintenances of some nodes, or without nodes all that run, until they have ended.

In a terminal there is one line per maintenance, which changes in place; in a pipe a line is printed when something
has changed. With -o json each line is a JSON document, and messages go to standard error. The exit code tells how they ended: 0 if all completed. Interrupting it changes nothing for them.`,
		Example: `  drydock watch
  drydock watch worker-01 worker-02 --timeout 1h
  drydock watch -o json | jq -r 'select(.phase == "Ready") | .node'`,
		RunE: a.Connected(o.run, o.check),
	}
	cmd.Flags().StringVarP(&o.format, "output", "o", terminal.FormatTable, "output format: "+strings.Join(watchFormats, ", "))
	terminal.CompleteFlag(cmd, "output", watchFormats)
	cmd.Flags().StringVarP(&o.requestor, "requestor", "r", "", invocation.OfMaintenance)
	invocation.DurationVar(cmd.Flags(), &o.timeout, "timeout", 0, "how long to watch; 0 is until all have ended")
	return cmd
}

var watchFormats = []string{terminal.FormatTable, terminal.FormatJSON}

func (o *watchOptions) check([]string) error {
	if !slices.Contains(watchFormats, o.format) {
		return exit.UsageError("--output %q: want one of %s", o.format, strings.Join(watchFormats, ", "))
	}
	return invocation.CheckTimeout(o.timeout, true)
}

func (o *watchOptions) run(ctx context.Context, c *invocation.Connection, nodes []string) (err error) {
	ctx, cancel := exit.WithTimeout(ctx, o.timeout)
	defer cancel()
	w := &watch{Waiter: o.waiter(c), known: map[string]bool{}, ended: make(chan error)}
	if len(nodes) == 0 {
		err = w.everything(ctx)
	} else {
		err = w.these(ctx, o, input.Unique(nodes))
	}
	return exit.GivenUp(err, "timed out watching; the maintenances go on", "no longer watching; the maintenances go on")
}

// waiter shows a line to people, or a document to programs, when something has changed.
func (o *watchOptions) waiter(c *invocation.Connection) invocation.Waiter {
	if o.format == terminal.FormatTable {
		return invocation.Waiter{Conn: c, Show: terminal.NewDisplay(o.app.Stdout, o.app.Clock)}
	}
	documents := &documents{to: o.app.Stdout, last: map[string]api.MaintenanceSummary{}}
	return invocation.Waiter{Conn: c, Show: terminal.NewNotes(o.app.Stderr, o.app.Clock), Observer: documents}
}

// documents are the changes of maintenances, each a line of JSON.
type documents struct {
	mu   sync.Mutex
	to   io.Writer
	last map[string]api.MaintenanceSummary
}

// Seen prints a maintenance that has changed.
func (d *documents) Seen(v client.View) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := v.Summary()
	if before, known := d.last[v.WorkflowID]; known && reflect.DeepEqual(before, now) {
		return
	}
	d.last[v.WorkflowID] = now
	// Whoever reads has gone, if it fails; the wait goes on for the exit code.
	_ = terminal.WriteLine(d.to, now)
}

// watch follows any number of maintenances.
type watch struct {
	invocation.Waiter
	known  map[string]bool
	active int
	ended  chan error
	errs   []error
}

func (w *watch) add(ctx context.Context, t client.Maintenance) {
	if w.known[t.WorkflowID+t.FirstRunID] {
		return
	}
	w.known[t.WorkflowID+t.FirstRunID] = true
	w.active++
	go func() {
		_, err := w.Await(ctx, t, client.Completed)
		w.Show.Settle(t.WorkflowID)
		w.ended <- err
	}()
}

func (w *watch) these(ctx context.Context, o *watchOptions, nodes []string) error {
	var chosen []client.Maintenance
	for _, node := range nodes {
		f, note, err := w.Conn.FindByFlag(ctx, node, o.requestor, "--requestor")
		if err != nil {
			return err
		}
		if note != "" {
			w.Show.Note("%s", note)
		}
		chosen = append(chosen, f.Maintenance)
	}
	return w.follow(ctx, chosen, nil)
}

// everything follows what runs and what is started meanwhile, until nothing runs any more.
func (w *watch) everything(ctx context.Context) error {
	running, err := w.Conn.List(ctx, client.ListOptions{Running: true})
	if err != nil {
		return w.Conn.Explain(err)
	}
	if len(running) == 0 {
		w.Show.Note("no maintenances are running")
		return nil
	}
	lookAgain := time.NewTicker(3 * time.Second)
	defer lookAgain.Stop()
	return w.follow(ctx, running, lookAgain.C)
}

// follow watches maintenances, and those that a look again finds, until all have ended.
func (w *watch) follow(ctx context.Context, running []client.Maintenance, lookAgain <-chan time.Time) error {
	for {
		for _, t := range running {
			w.add(ctx, t)
		}
		select {
		case err := <-w.ended:
			w.active--
			if err != nil {
				w.errs = append(w.errs, err)
			}
		case <-lookAgain:
			// While the server does not answer, those known are waited for.
			if again, err := w.Conn.List(ctx, client.ListOptions{Running: true}); err == nil {
				running = again
			}
		}
		if w.active == 0 {
			return w.outcome()
		}
	}
}

// outcome is the one error that says most.
func (w *watch) outcome() error {
	for _, err := range w.errs {
		if errors.Is(err, exit.ErrInterrupted) || errors.Is(err, exit.ErrTimedOut) {
			return err
		}
	}
	return exit.Joined(w.errs)
}
