package page

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/web"
	"drydock.dev/drydock/views"
)

// chart is how far a plan is.
type chart struct {
	Name string
	Bar  []web.Segment
}

func (p *Page) servePlan(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("plan")
	if plan.CheckName(name) != nil {
		p.show(w, r, http.StatusNotFound, screen{Title: "No such plan", Problem: "That is not the name of a plan."})
		return
	}
	p.reading(w, r, func(ctx context.Context) {
		now := p.from.now()
		v, pace, err := p.from.plan(ctx, name)
		switch {
		case isNone(err):
			p.show(w, r, http.StatusNotFound, screen{Title: "No such plan", Problem: "There is no plan " + name + "."})
			return
		case err != nil:
			p.fails(w, r, err)
			return
		}
		known := v.Known()
		known.Pace = pace
		s := screen{Title: "Plan " + name, Here: "/plans/" + url.PathEscape(name), At: now, Documents: []document.Document{untitled(views.Plan(known, views.At(now)))}}
		if v.Unanswered != nil && v.Running() {
			s.Problem = "No worker says how far it is at the moment."
		}
		if c := known.Counts; c != nil && c.Total > 0 {
			s.Chart = chartOf(*c)
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
