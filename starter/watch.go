package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

type watchOptions struct {
	app       *app
	requestor string
	timeout   time.Duration
}

func newWatch(a *app) *cobra.Command {
	o := &watchOptions{app: a}
	cmd := &cobra.Command{
		Use:   "watch [NODE...]",
		Short: "Watch maintenances until they end",
		Long: `Watch the maintenances of some nodes, or without nodes all that run, until they have ended.

In a terminal there is one line per maintenance, which changes in place; in a pipe a line is printed when something
has changed. The exit code tells how they ended: 0 if all completed. Interrupting it changes nothing for them.`,
		Example: `  drydock watch
  drydock watch worker-01 worker-02 --timeout 1h`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), unique(args)) },
	}
	cmd.Flags().StringVarP(&o.requestor, "requestor", "r", "", ofMaintenance)
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "how long to watch; 0 is until all have ended")
	return cmd
}

func (o *watchOptions) run(ctx context.Context, nodes []string) error {
	if err := checkTimeout(o.timeout, true); err != nil {
		return err
	}
	c, err := o.app.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := withTimeout(ctx, o.timeout)
	defer cancel()
	w := &watch{waiter: waiter{conn: c, show: newDisplay(o.app.Stdout, o.app.now)}, known: map[string]bool{}, ended: make(chan error)}
	if len(nodes) == 0 {
		err = w.everything(ctx)
	} else {
		err = w.these(ctx, o, nodes)
	}
	switch {
	case errors.Is(err, errInterrupted):
		return withCode(exitInterrupted, fmt.Errorf("no longer watching; the maintenances go on"))
	case errors.Is(err, errTimedOut):
		return withCode(exitTimedOut, fmt.Errorf("timed out watching; the maintenances go on"))
	}
	return err
}

// watch follows any number of maintenances.
type watch struct {
	waiter
	known  map[string]bool
	active int
	ended  chan error
	errs   []error
}

func (w *watch) add(ctx context.Context, t target) {
	if w.known[t.ID+t.Run] {
		return
	}
	w.known[t.ID+t.Run] = true
	w.active++
	go func() {
		_, err := w.await(ctx, t, completes)
		w.show.settle(t.ID)
		w.ended <- err
	}()
}

// collect takes note of one that is no longer watched.
func (w *watch) collect(err error) {
	w.active--
	if err != nil {
		w.errs = append(w.errs, err)
	}
}

func (w *watch) these(ctx context.Context, o *watchOptions, nodes []string) error {
	var targets []target
	for _, node := range nodes {
		f, err := o.app.find(ctx, w.conn, node, o.requestor)
		if err != nil {
			return err
		}
		if f.note != "" {
			w.show.note("%s", f.note)
		}
		targets = append(targets, f.target)
	}
	for _, t := range targets {
		w.add(ctx, t)
	}
	for w.active > 0 {
		w.collect(<-w.ended)
	}
	return w.outcome()
}

// everything follows what runs and what is started meanwhile, until nothing runs any more.
func (w *watch) everything(ctx context.Context) error {
	running, err := w.conn.list(ctx, "", true, 0)
	if err != nil {
		return err
	}
	if len(running) == 0 {
		w.show.note("no maintenances are running")
		return nil
	}
	lookAgain := time.NewTicker(3 * time.Second)
	defer lookAgain.Stop()
	for {
		for _, t := range running {
			w.add(ctx, t)
		}
		select {
		case err := <-w.ended:
			w.collect(err)
		case <-lookAgain.C:
			// While the server does not answer, those known are waited for.
			if again, err := w.conn.list(ctx, "", true, 0); err == nil {
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
		if errors.Is(err, errInterrupted) || errors.Is(err, errTimedOut) {
			return err
		}
	}
	return joined(w.errs)
}
