package starter

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

type historyOptions struct {
	app *invocation.App
	recordFlags
	limit   int
	details bool
}

func newHistory(a *invocation.App) *cobra.Command {
	o := &historyOptions{app: a}
	cmd := &cobra.Command{
		Use:   "history NODE",
		Short: "Show the maintenances that a node had",
		Long: `Show the maintenances that a node had and has, the newest first: when each began, how long it took and how it ended.
--details shows everything that is on record of each, and -o markdown the same in a form for a ticket.

Temporal keeps a maintenance that ended for as long as its namespace's retention says, often a few days. --from
reads the audit records instead, if the workers are configured to write them to files. It reads the rotated files beside a
file too, and takes the files of several workers. It needs no Temporal.

A node that a profile holds in maintenance is named below the table: profiles leave no records.

How a drain went and who sent which message is known to the maintenance itself only: a worker has to run to tell it.`,
		Example: `  drydock history worker-01
  drydock history worker-01 --limit 1 -o markdown
  drydock history worker-01 --since 90d --from /var/log/drydock/audit.jsonl --details`,
		Args: invocation.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.register(cmd, "leave out those that ended longer ago, such as 30d or 12h (default none)")
	cmd.Flags().IntVar(&o.limit, "limit", 20, "show at most this many; 0 is no limit")
	cmd.Flags().BoolVar(&o.details, "details", false, "show everything that is on record of each")
	return cmd
}

func (o *historyOptions) run(ctx context.Context, node string) error {
	if o.limit < 0 {
		return exit.UsageError("--limit %d: want 0 or more", o.limit)
	}
	now := o.app.Clock()
	records, err := recordsFor(ctx, o.app, o.from, client.RecordFilter{Node: node, Since: o.since.Before(now), Limit: o.limit})
	if err != nil {
		return err
	}
	if people := o.output.Table() || o.output.Format == terminal.FormatMarkdown; len(records) == 0 && people {
		fmt.Fprintf(o.app.Stderr, "No maintenance of %s is on record.\n", node)
		if len(o.from) == 0 {
			fmt.Fprintln(o.app.Stderr, "Temporal forgets those that ended after a while; --from reads what a worker's audit sink has kept.")
		}
		return o.showHeld(ctx, o.app, node)
	}
	if err := o.show(o.app.Stdout, records, now); err != nil {
		return err
	}
	return o.showHeld(ctx, o.app, node)
}

func (o *historyOptions) show(w io.Writer, records []record.Record, now time.Time) error {
	shown := []document.Document{record.List(records, now)}
	if o.details {
		shown = nil
		for _, r := range records {
			shown = append(shown, record.View(r, now))
		}
	}
	return o.write(w, records, func() string {
		texts := make([]string, len(records))
		for i, r := range records {
			texts[i] = record.Markdown(r, now)
		}
		return strings.Join(texts, "\n")
	}, shown...)
}
