package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/serviceerror"
	"golang.org/x/sync/errgroup"

	"drydock.dev/drydock/rules/record"
)

// RecordFilter chooses audit records; what is zero does not choose.
type RecordFilter struct {
	Cluster, Node, Requestor string
	// Since leaves out those that ended before.
	Since time.Time
	// Ended leaves out those that have not ended.
	Ended bool
	// Limit bounds how many of the newest there are.
	Limit int
}

func (f RecordFilter) wants(r record.Record) bool {
	switch {
	case f.Cluster != "" && r.Cluster != f.Cluster, f.Node != "" && r.Node != f.Node:
		return false
	case f.Requestor != "" && r.Requestor != f.Requestor && !slices.Contains(r.AdditionalRequestors, f.Requestor):
		return false
	case !r.Ended():
		return !f.Ended
	default:
		return !r.EndedAt.Before(f.Since)
	}
}

// Of are the chosen ones of some records, each once and the newest first.
func (f RecordFilter) Of(records []record.Record) []record.Record {
	chosen := slices.DeleteFunc(record.Distinct(records), func(r record.Record) bool { return !f.wants(r) })
	slices.SortStableFunc(chosen, func(a, b record.Record) int { return b.CreatedAt.Compare(a.CreatedAt) })
	if f.Limit > 0 && len(chosen) > f.Limit {
		chosen = chosen[:f.Limit]
	}
	return chosen
}

// Gap is a maintenance of which not everything could be found out, and why.
type Gap struct {
	Maintenance
	Why string
	// Lost: nothing at all is known any more, so that there is no record.
	Lost bool
}

// HistoriesAtOnce bounds how many histories Records has read at once: a worker replays each of them.
const HistoriesAtOnce = 8

// Records makes audit records of what Temporal knows of the end of each maintenance, and of the maintenance's own answer
// to a query, which a worker replays its history for. What that leaves out is reported as gaps. The filter's cluster is the
// Client's. The function progress, where it is not nil, is called before the first history is read and after each.
func (c *Client) Records(ctx context.Context, f RecordFilter, progress func(read, total int)) ([]record.Record, []Gap, error) {
	f.Cluster = c.options.Cluster
	limit := f.Limit
	if f.Requestor != "" {
		// Who shared a maintenance is not a part of the query, so the limit cannot be either.
		limit = 0
	}
	all, err := c.server.listBy(ctx, f.query(), limit)
	if err != nil {
		return nil, nil, err
	}
	found, gaps := make([]record.Record, len(all)), make([]*Gap, len(all))
	count := counted(len(all), progress)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(HistoriesAtOnce)
	var w workerless
	for i, m := range all {
		group.Go(func() error {
			defer count()
			var err error
			found[i], gaps[i], err = c.record(ctx, m, &w)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, failedCall("reading the histories of maintenances", err)
	}
	var known []Gap
	for _, g := range gaps {
		if g != nil {
			known = append(known, *g)
		}
	}
	found = slices.DeleteFunc(found, func(r record.Record) bool { return r.RunID == "" })
	return f.Of(found), known, nil
}

func counted(total int, progress func(read, total int)) func() {
	if progress == nil {
		return func() {}
	}
	progress(0, total)
	var (
		mu   sync.Mutex
		read int
	)
	return func() {
		mu.Lock()
		defer mu.Unlock()
		read++
		progress(read, total)
	}
}

// query leaves out runs that another one went on with, which has all that they knew.
func (f RecordFilter) query() string {
	terms := []string{listQuery(f.Cluster, f.Node, false), `ExecutionStatus != "ContinuedAsNew"`}
	closed := fmt.Sprintf(`CloseTime >= "%s"`, f.Since.UTC().Format(time.RFC3339Nano))
	switch {
	case f.Ended:
		terms = append(terms, closed)
	case !f.Since.IsZero():
		terms = append(terms, fmt.Sprintf(`(ExecutionStatus="Running" OR %s)`, closed))
	}
	return strings.Join(terms, " AND ")
}

// workerless keeps many from waiting for a worker that has not answered one of them.
type workerless struct{ atomic.Pointer[NoWorkerError] }

// known is the error after which workers are not asked any more; nil before it.
func (w *workerless) known() error {
	if why := w.Load(); why != nil {
		return why
	}
	return nil
}

// learn looks whether it was a worker that did not answer.
func (w *workerless) learn(unanswered error) {
	if noWorker, is := errors.AsType[*NoWorkerError](unanswered); is {
		w.Store(noWorker)
	}
}

func (c *Client) record(ctx context.Context, m Maintenance, w *workerless) (record.Record, *Gap, error) {
	v, err := View{Maintenance: m}, error(nil)
	if v.Unanswered = w.known(); v.Unanswered == nil || !m.Running() {
		v, err = c.observer(m).observe(ctx)
	}
	switch {
	case isA[*serviceerror.NotFound](err):
		return record.Record{}, &Gap{Maintenance: m, Why: "Temporal has forgotten it meanwhile", Lost: true}, nil
	case err != nil:
		return record.Record{}, nil, err
	}
	if !v.Running() {
		if v.Unanswered = w.known(); v.Unanswered == nil {
			v.Status, v.Unanswered = c.LastStatus(ctx, v.Maintenance)
		}
	}
	w.learn(v.Unanswered)
	var gap *Gap
	if v.Unanswered != nil {
		gap = &Gap{Maintenance: v.Maintenance, Why: v.Unanswered.Error()}
	}
	return v.Record(c.options.Cluster, c.options.Now()), gap, nil
}
