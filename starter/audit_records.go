package starter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	auditfile "drydock.dev/drydock/audit/file"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/config/namespace"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/starter/heldby"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

// recordFlags are those of the commands that read audit records.
type recordFlags struct {
	output terminal.Output
	from   []string
	since  input.Span
}

func (f *recordFlags) register(cmd *cobra.Command, since string, formats ...string) {
	flags := cmd.Flags()
	f.output.Register(cmd, append([]string{terminal.FormatMarkdown}, formats...)...)
	f.output.RegisterNoHeaders(cmd)
	flags.StringArrayVar(&f.from, "from", nil, "read this file of a worker's audit sink, with its rotated ones, instead of Temporal (repeatable)")
	flags.Var(&f.since, "since", since)
}

// write renders value for programs; views and markdown are for people.
func (f *recordFlags) write(w io.Writer, value any, markdown func() string, views ...document.Document) error {
	if f.output.Format == terminal.FormatMarkdown {
		_, err := io.WriteString(w, markdown())
		return err
	}
	return f.output.Write(w, value, views...)
}

// recordsFor are those of the files, or where none are named those that Temporal still has.
func recordsFor(ctx context.Context, a *invocation.App, files []string, f client.RecordFilter) ([]record.Record, error) {
	var err error
	if f.Cluster, err = a.ClusterName(); err != nil {
		return nil, err
	}
	if len(files) > 0 {
		return recordsOfFiles(a, files, f)
	}
	c, err := a.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if !f.Since.IsZero() {
		noteRetention(ctx, a, c, f.Since)
	}
	return recordsOfTemporal(ctx, c, f, a.Stderr, recordProgress(a.Progress(a.Stderr)))
}

// noteRetention notes that Temporal keeps nothing of a part of the time since a moment. It says nothing to those who may not know how long
// that is.
func noteRetention(ctx context.Context, a *invocation.App, c *invocation.Connection, since time.Time) {
	kept, err := namespace.Describe(ctx, c.Temporal, c.Namespace)
	if err == nil && kept.Retention > 0 && a.Clock().Add(-kept.Retention).After(since) {
		fmt.Fprintf(a.Stderr, "Namespace %s keeps what has ended for %s: what ended before is not here. --from reads what a worker's audit sink has kept.\n",
			c.Namespace, period.InDays(kept.Retention))
	}
}

// showHeld shows people below records of Temporal's which nodes, or whether a node, profiles hold in maintenance: no record says so.
func (f *recordFlags) showHeld(ctx context.Context, a *invocation.App, node string) error {
	if !f.output.Table() || len(f.from) > 0 {
		return nil
	}
	c, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	held := heldby.Profiles(ctx, c, node, nil, a.Stderr)
	if len(held.Nodes) == 0 {
		return nil
	}
	fmt.Fprintln(a.Stdout)
	return f.output.Write(a.Stdout, held, views.HeldByProfiles(held, views.At(c.Clock())))
}

// shownGaps bounds the gaps that are listed one by one.
const shownGaps = 5

// recordsOfFiles reads the sinks of several workers, which can have the same record.
func recordsOfFiles(a *invocation.App, files []string, f client.RecordFilter) ([]record.Record, error) {
	var all []record.Record
	for _, file := range files {
		records, err := auditfile.Read(file)
		var gaps auditfile.DamageReport
		if err != nil && !errors.As(err, &gaps) {
			return nil, fmt.Errorf("--from: %w", err)
		}
		for _, gap := range gaps[:min(len(gaps), shownGaps)] {
			fmt.Fprintf(a.Stderr, "Warning: not read: %s\n", terminal.OneLine(gap.Error()))
		}
		if more := len(gaps) - shownGaps; more > 0 {
			fmt.Fprintf(a.Stderr, "Warning: not read: %s more of %s\n", number.Of(more, "line"), file)
		}
		all = append(all, records...)
	}
	return f.Of(all), nil
}

// recordsOfTemporal are those that Temporal still has; it warns of what they lack.
func recordsOfTemporal(ctx context.Context, c *invocation.Connection, f client.RecordFilter, messages io.Writer, progress func(read, total int)) ([]record.Record, error) {
	records, gaps, err := c.Records(ctx, f, progress)
	if err != nil {
		return nil, c.Explain(err)
	}
	warnOfGaps(messages, gaps)
	return records, nil
}

// manyRecords is from how many records on reading them takes long enough to show progress.
const manyRecords = 50

// recordProgress says now and then how many histories of many are read.
func recordProgress(shown *terminal.Display) func(read, total int) {
	return func(read, total int) {
		if total < manyRecords || read == 0 {
			return
		}
		if read%(total/20) == 0 || read == total {
			shown.Update("read", terminal.Line{Label: "histories", Text: fmt.Sprintf("%d of %d read", read, total)})
		}
		if read == total {
			shown.Settle("read")
		}
	}
}

// namedGaps is up to how many maintenances with the same gap are named: of more, the reason says enough.
const namedGaps = 3

// warnOfGaps says what the records lack and why, once for each reason.
func warnOfGaps(w io.Writer, gaps []client.Gap) {
	type gap struct {
		why  string
		lost bool
	}
	byReason := map[gap][]string{}
	var reasons []gap
	for _, g := range gaps {
		reason := gap{terminal.OneLine(g.Why), g.Lost}
		if byReason[reason] == nil {
			reasons = append(reasons, reason)
		}
		byReason[reason] = append(byReason[reason], fmt.Sprintf("%s (run %s)", g.WorkflowID, g.RunID))
	}
	slices.SortStableFunc(reasons, func(a, b gap) int { return cmp.Compare(len(byReason[b]), len(byReason[a])) })
	left := len(gaps)
	for _, reason := range reasons[:min(len(reasons), shownGaps)] {
		of := byReason[reason]
		left -= len(of)
		text := fmt.Sprintf("of %s only the phases and the end are known", number.Of(len(of), "maintenance"))
		if reason.lost {
			text = number.Of(len(of), "maintenance") + " left out"
		}
		if len(of) <= namedGaps {
			text += ": " + strings.Join(of, ", ")
		}
		fmt.Fprintf(w, "Warning: %s; %s\n", reason.why, text)
	}
	if left > 0 {
		fmt.Fprintf(w, "Warning: %s more, for other reasons\n", number.Of(left, "record"))
	}
}
