package starter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"golang.org/x/sync/errgroup"

	"drydock/api"
	auditfile "drydock/audit/file"
	"drydock/rules/record"
	"drydock/rules/spec"
)

const formatMarkdown = "markdown"

var recordFormats = []string{formatTable, formatJSON, formatMarkdown}

// recordFlags are those of the commands that read audit records.
type recordFlags struct {
	format string
	from   []string
	since  span
}

func (f *recordFlags) register(cmd *cobra.Command, since string) {
	flags := cmd.Flags()
	flags.StringVarP(&f.format, "output", "o", formatTable, "output format: "+strings.Join(recordFormats, ", "))
	flags.StringArrayVar(&f.from, "from", nil, "read this file of a worker's audit sink, with its rotated ones, instead of Temporal (repeatable)")
	flags.Var(&f.since, "since", since)
	completeFlags(cmd, map[string][]string{"output": recordFormats})
}

func (f *recordFlags) check() error {
	if !slices.Contains(recordFormats, f.format) {
		return usageError("--output %q: want one of %s", f.format, strings.Join(recordFormats, ", "))
	}
	return nil
}

// choice says which maintenances' records are wanted; what is zero does not choose.
type choice struct {
	cluster, node, requestor string
	// since leaves out those that ended before.
	since time.Time
	// ended leaves out those that have not ended.
	ended bool
	// limit bounds how many of the newest there are.
	limit int
}

func (w choice) wants(r record.Record) bool {
	switch {
	case w.cluster != "" && r.Cluster != w.cluster, w.node != "" && r.Node != w.node:
		return false
	case w.requestor != "" && r.Requestor != w.requestor && !slices.Contains(r.AdditionalRequestors, w.requestor):
		return false
	case !r.Ended():
		return !w.ended
	default:
		return !r.EndedAt.Before(w.since)
	}
}

// of are the chosen records, the newest first.
func (w choice) of(records []record.Record) []record.Record {
	chosen := slices.DeleteFunc(record.Distinct(records), func(r record.Record) bool { return !w.wants(r) })
	slices.SortStableFunc(chosen, func(a, b record.Record) int { return b.CreatedAt.Compare(a.CreatedAt) })
	if w.limit > 0 && len(chosen) > w.limit {
		chosen = chosen[:w.limit]
	}
	return chosen
}

// records are those of the files, or where none are named those that Temporal still has.
func (a *app) records(ctx context.Context, files []string, w choice) ([]record.Record, error) {
	var err error
	if w.cluster, err = a.clusterName(); err != nil {
		return nil, err
	}
	if len(files) > 0 {
		return a.recordsOfFiles(files, w)
	}
	c, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.records(ctx, w, a.Stderr)
}

// shownGaps is how many of many gaps are told one by one.
const shownGaps = 5

// recordsOfFiles reads the sinks of several workers, which can have the same record.
func (a *app) recordsOfFiles(files []string, w choice) ([]record.Record, error) {
	var all []record.Record
	for _, file := range files {
		records, err := auditfile.Read(file)
		var gaps auditfile.DamageReport
		if err != nil && !errors.As(err, &gaps) {
			return nil, fmt.Errorf("--from: %w", err)
		}
		for _, gap := range gaps[:min(len(gaps), shownGaps)] {
			fmt.Fprintf(a.Stderr, "Warning: not read: %s\n", oneLine(gap.Error()))
		}
		if more := len(gaps) - shownGaps; more > 0 {
			fmt.Fprintf(a.Stderr, "Warning: not read: %s more of %s\n", plural(more, "line"), file)
		}
		all = append(all, records...)
	}
	return w.of(all), nil
}

// gap is a maintenance of which not everything could be found out, and why.
type gap struct {
	target
	why string
	// lost: nothing at all is known any more.
	lost bool
}

// atATime bounds how many histories are read at once: a worker replays each of them.
const atATime = 8

// records are made of what Temporal knows of the end of each maintenance, and of the maintenance's own answer to a query,
// which a worker replays its history for.
func (c *connection) records(ctx context.Context, w choice, messages io.Writer) ([]record.Record, error) {
	limit := w.limit
	if w.requestor != "" {
		// Who shared a maintenance is not a part of the query, so the limit cannot be either.
		limit = 0
	}
	targets, err := c.listBy(ctx, c.recordQuery(w), limit)
	if err != nil {
		return nil, err
	}
	found, gaps := make([]record.Record, len(targets)), make([]*gap, len(targets))
	progress := c.progressOf(len(targets), messages)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atATime)
	for i, t := range targets {
		group.Go(func() error {
			defer progress()
			var err error
			found[i], gaps[i], err = c.record(ctx, t)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, c.explain("reading the histories of maintenances", err)
	}
	gaps = slices.DeleteFunc(gaps, func(g *gap) bool { return g == nil })
	tellGaps(messages, gaps)
	found = slices.DeleteFunc(found, func(r record.Record) bool { return r.RunID == "" })
	return w.of(found), nil
}

// recordQuery leaves out runs that another one went on with, which has all that they knew.
func (c *connection) recordQuery(w choice) string {
	terms := []string{c.listQuery(w.node, false), `ExecutionStatus != "ContinuedAsNew"`}
	closed := fmt.Sprintf(`CloseTime >= "%s"`, w.since.UTC().Format(time.RFC3339Nano))
	switch {
	case w.ended:
		terms = append(terms, closed)
	case !w.since.IsZero():
		terms = append(terms, fmt.Sprintf(`(ExecutionStatus="Running" OR %s)`, closed))
	}
	return strings.Join(terms, " AND ")
}

// record is what can be found out about one maintenance.
func (c *connection) record(ctx context.Context, t target) (record.Record, *gap, error) {
	v, err := c.observer(t).observe(ctx)
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
		return record.Record{}, &gap{target: t, why: "Temporal has forgotten it meanwhile", lost: true}, nil
	case err != nil:
		return record.Record{}, nil, err
	}
	why := ""
	switch {
	case !v.running():
		v.Status, why = c.lastStatus(ctx, v.target)
	case v.Unanswered != nil:
		why = v.Unanswered.Error()
	}
	r := recordOf(v, c.cluster, c.now())
	if why != "" {
		return r, &gap{target: v.target, why: why}, nil
	}
	return r, nil, nil
}

// lastStatus asks a maintenance that has ended, or says why it could not be asked.
func (c *connection) lastStatus(ctx context.Context, t target) (status *api.Status, why string) {
	if !c.polled(ctx) {
		return nil, c.noWorker()
	}
	status, err := c.status(ctx, t)
	if err != nil {
		return nil, err.Error()
	}
	return status, ""
}

// recordOf is the audit record of what is known of a maintenance.
func recordOf(v view, cluster string, now time.Time) record.Record {
	status := api.Status{
		WorkflowID: v.ID, RunID: v.Run, Spec: spec.Maintenance{Node: v.Node, Requestor: v.Requestor}, Phase: v.phase(), Since: v.Started,
	}
	if v.Status != nil {
		status = *v.Status
	}
	status.Transitions = transitionsOf(v)
	r := api.RecordOf(status, cluster)
	r.CreatedAt = v.Started
	if !prepared(v.Status) {
		r.Specification = nil
	}
	if v.running() {
		r.AsOf = now
		return r
	}
	r.Phase, r.Failure, r.EndedAt = string(v.phase()), v.message(), v.Closed
	if n := len(status.Transitions); n > 0 && status.Transitions[n-1].Phase.Ended() {
		// The workflow has things to do after the maintenance has ended.
		r.EndedAt = status.Transitions[n-1].At
	}
	return r
}

// manyRecords is from how many on reading them takes long enough to be told of.
const manyRecords = 50

// progressOf returns what is called for each that was read, and says now and then how far that is.
func (c *connection) progressOf(n int, messages io.Writer) func() {
	if n < manyRecords {
		return func() {}
	}
	var (
		mu   sync.Mutex
		read int
	)
	shown := newDisplay(messages, c.now)
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if read++; read%(n/20) == 0 || read == n {
			shown.update("read", line{Label: "histories", Text: fmt.Sprintf("%d of %d read", read, n)})
		}
		if read == n {
			shown.settle("read")
		}
	}
}

// tellGaps says what the records lack and why, once for each reason.
func tellGaps(w io.Writer, gaps []*gap) {
	byReason := map[string][]string{}
	var reasons []string
	for _, g := range gaps {
		reason := oneLine(g.why) + "; only what Temporal knows of the start and the end is shown of"
		if g.lost {
			reason = oneLine(g.why) + "; left out:"
		}
		if byReason[reason] == nil {
			reasons = append(reasons, reason)
		}
		byReason[reason] = append(byReason[reason], fmt.Sprintf("%s (run %s)", g.ID, g.Run))
	}
	slices.SortStableFunc(reasons, func(a, b string) int { return cmp.Compare(len(byReason[b]), len(byReason[a])) })
	for _, reason := range reasons[:min(len(reasons), shownGaps)] {
		fmt.Fprintf(w, "Warning: %s %s\n", reason, someOf(byReason[reason], shownGaps))
	}
	if len(reasons) > shownGaps {
		fmt.Fprintf(w, "Warning: %s more, for other reasons\n", plural(len(gaps)-told(byReason, reasons[:shownGaps]), "record"))
	}
}

func told(byReason map[string][]string, reasons []string) int {
	n := 0
	for _, reason := range reasons {
		n += len(byReason[reason])
	}
	return n
}
