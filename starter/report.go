package starter

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

type reportOptions struct {
	app *invocation.App
	recordFlags
	requestor string
}

func newReport(a *invocation.App) *cobra.Command {
	o := &reportOptions{app: a, recordFlags: recordFlags{since: input.Span(30 * 24 * time.Hour)}}
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Sum up the maintenances of the last days",
		Long: `Sum up the maintenances that ended in the last days: how many ended how, how long half of them and 95% of them took in
each phase, which failed and why, and which workloads kept nodes from being drained.

Temporal keeps a maintenance that ended for as long as its namespace's retention says, often a few days: what it
has forgotten is missing in the sum. --from reads the audit records instead, if the workers are configured
to write them to files. Name the files of all workers.

-o html writes one file to open in a browser and to send around, which also draws how long maintenances were in their phases, what kept
nodes from being drained, and when each node was in maintenance.

The nodes that profiles hold in maintenance now are named below: profiles leave no records.`,
		Example: `  drydock report
  drydock report --since 7d --requestor ops -o markdown
  drydock report --since 7d -o html > report.html
  drydock report --since 365d --from worker-a.jsonl --from worker-b.jsonl -o json | jq .ends`,
		Args: invocation.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.register(cmd, "sum up those that ended in this time, such as 30d or 12h", terminal.FormatHTML)
	cmd.Flags().StringVarP(&o.requestor, "requestor", "r", "", "sum up those of one requestor, and those that it shared")
	return cmd
}

func (o *reportOptions) run(ctx context.Context) error {
	if err := spec.RequestorName(o.requestor); o.requestor != "" && err != nil {
		return exit.UsageError("--requestor: %w", err)
	}
	until := o.app.Clock()
	since := o.since.Before(until)
	records, err := recordsFor(ctx, o.app, o.from, client.RecordFilter{Requestor: o.requestor, Since: since, Ended: true})
	if err != nil {
		return err
	}
	report := record.Summarize(records, since, until)
	if o.output.Format == terminal.FormatHTML {
		text, err := report.HTML(records, until)
		if err == nil {
			_, err = io.WriteString(o.app.Stdout, text)
		}
		return err
	}
	if err := o.show(o.app.Stdout, report); err != nil || o.requestor != "" {
		return err
	}
	return o.showHeld(ctx, o.app, "")
}

func (o *reportOptions) show(w io.Writer, report record.Report) error {
	return o.write(w, report, func() string { return report.Markdown(report.Until) }, report.View(report.Until))
}
