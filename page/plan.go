package page

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/moment"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/web"
	"drydock.dev/drydock/views"
)

// chart is how far a plan is.
type chart struct {
	Name string
	Bar  []web.Segment
	// Expected is when it will probably have ended; empty if that is not known.
	Expected string
}

func (p *Page) servePlan(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("plan")
	if plan.CheckName(name) != nil {
		p.show(w, r, http.StatusNotFound, screen{Title: "No such plan", Problem: "That is not the name of a plan."})
		return
	}
	p.reading(w, r, func(ctx context.Context) {
		now := p.from.now()
		v, done, err := p.from.plan(ctx, name)
		switch {
		case isNone(err):
			p.show(w, r, http.StatusNotFound, screen{Title: "No such plan", Problem: "There is no plan " + name + "."})
			return
		case err != nil:
			p.fails(w, r, err)
			return
		}
		known := v.Known()
		s := screen{Title: "Plan " + name, Here: "/plans/" + url.PathEscape(name), At: now, Documents: []document.Document{untitled(views.Plan(known, views.At(now)))}}
		if v.Unanswered != nil && v.Running() {
			s.Problem = "No worker says how far it is at the moment."
		}
		if c := known.Counts; c != nil && c.Total > 0 {
			s.Chart = chartOf(*c)
			if known.Phase == api.PlanRunning && known.WaitingFor == "" {
				s.Chart.Expected = expected(done, c.Running, c.Waiting+c.Running, now)
			}
		}
		if to := p.history(known.WorkflowID, v.RunID); to != "" {
			s.Links = append(s.Links, link{Text: s.Title, To: to})
		}
		p.show(w, r, http.StatusOK, s)
	})
}

func chartOf(c plan.Counts) *chart {
	all := &chart{Name: fmt.Sprintf("%d of %s done", c.Done, number.Of(c.Total, "node"))}
	before := 0
	for _, one := range []struct {
		class string
		n     int
	}{{"good", c.Done}, {"bad", c.Failures()}, {"faint", c.Skipped}, {"active", c.Running}} {
		from := before * 1000 / c.Total
		before += one.n
		if one.n > 0 {
			all.Bar = append(all.Bar, web.Segment{Class: one.class, From: from, Width: before*1000/c.Total - from})
		}
	}
	return all
}

const (
	// leastDone is of how many ends a rate is computed at least, lastDone of how many at most: of the latest.
	leastDone = 3
	lastDone  = 300
)

// expected says when a plan will have ended whose nodes were done at some times, if it goes on as it does: the mean of the times between two
// ends, and twice their standard deviation over all that are left. It is empty where too few are done, also beside those that run together,
// and where the latest is longer ago than the rate would have it: then something is in its way.
func expected(done []time.Time, running, left int, now time.Time) string {
	if left == 0 || len(done) < max(leastDone, 2*running) {
		return ""
	}
	done = slices.SortedFunc(slices.Values(done), time.Time.Compare)
	first, last := done[0], done[len(done)-1]
	n := float64(len(done) - 1)
	mean := last.Sub(first).Seconds() / n
	var squares float64
	for i := 1; i < len(done); i++ {
		off := done[i].Sub(done[i-1]).Seconds() - mean
		squares += off * off
	}
	deviation := math.Sqrt(squares / n)
	if mean <= 0 || now.Sub(last).Seconds() > 3*(mean+deviation)+mean*float64(running) {
		return ""
	}
	middle, spread := mean*float64(left), 2*deviation*math.Sqrt(float64(left))
	at := func(seconds float64) string {
		t := last.Add(time.Duration(seconds * float64(time.Second)))
		if t.Before(now) {
			t = now
		}
		return moment.Clock(t.Truncate(time.Minute), now)
	}
	return fmt.Sprintf("at %s, if it goes on as the last %s did: between %s and %s", at(middle), number.Of(len(done), "node"), at(middle-spread), at(middle+spread))
}
