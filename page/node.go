package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/moment"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/visible"
	"drydock.dev/drydock/rules/web"
	"drydock.dev/drydock/views"
)

// span is one maintenance in the timeline of a node.
type span struct {
	// Name says when it began, how long it took, and how it ended.
	Name string
	Bar  []web.Segment
	// Phases are its parts in words.
	Phases []string
}

func (p *Page) serveNode(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("node")
	if spec.NodeName(name) != nil {
		p.show(w, r, http.StatusNotFound, screen{Title: "No such node", Problem: "That is not the name of a node."})
		return
	}
	p.reading(w, r, func(ctx context.Context) {
		now := p.from.now()
		nodes, err := p.from.nodes(ctx)
		if err != nil {
			p.fails(w, r, fmt.Errorf("reading the nodes: %w", err))
			return
		}
		s := screen{Title: name, Here: "/nodes/" + url.PathEscape(name), At: now}
		at := slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == name })
		if at < 0 {
			s.Problem = "There is no node of this name."
		} else {
			s.say("It is " + stateWords[p.stateOf(nodes[at])] + ".")
		}
		running, err := p.from.maintenances(ctx, name)
		for _, v := range running {
			s.add(p, views.Maintenance(v.Known(), views.At(now)), v)
		}
		had, missing, err2 := p.from.records(ctx, name)
		if err = errors.Join(err, err2); err != nil {
			p.Logger.Warn("page: the maintenances of a node cannot be read", "node", name, "error", err)
			s.Problem = "Not all of its maintenances can be read at the moment: the worker's log has the reason."
		}
		if missing > 0 {
			s.Problem = "Of " + number.Of(missing, "earlier maintenance") + " no worker says at the moment how it went."
		}
		if len(had) > 0 {
			list := record.List(had, now)
			list.Title = "Earlier maintenances"
			s.Documents = append(s.Documents, list)
		}
		s.Spans = spansOf(had, now)
		if len(running)+len(had)+missing == 0 && err == nil {
			s.say("No maintenance of it is on record.")
		}
		status := http.StatusOK
		if at < 0 && len(running)+len(had) == 0 {
			status = http.StatusNotFound
		}
		p.show(w, r, status, s)
	})
}

// say adds a sentence.
func (s *screen) say(text string) {
	var d document.Document
	d.Line("%s", text)
	s.Documents = append(s.Documents, d)
}

// add adds a maintenance that runs, and the link to its history.
func (s *screen) add(p *Page, d document.Document, v client.View) {
	s.Documents = append(s.Documents, d)
	if to := p.history(v.WorkflowID, v.RunID); to != "" {
		s.Links = append(s.Links, link{Text: d.Title, To: to})
	}
}

// history is the URL of a workflow's history in Temporal's web interface; empty if there is none.
func (p *Page) history(workflow, run string) string {
	if p.TemporalUI == "" {
		return ""
	}
	return fmt.Sprintf("%s/namespaces/%s/workflows/%s/%s/history", strings.TrimRight(p.TemporalUI, "/"),
		url.PathEscape(p.Namespace), url.PathEscape(workflow), url.PathEscape(run))
}

// spansOf shows how long the phases of maintenances took.
func spansOf(all []record.Record, now time.Time) (spans []span) {
	for i := range all {
		r := &all[i]
		took := record.Total(*r)
		if took <= 0 {
			continue
		}
		s := span{Name: fmt.Sprintf("%s: %s in %s, by %s", moment.Clock(r.CreatedAt, now), r.Phase, period.Age(took), visible.Line(r.Requestor))}
		for _, stay := range record.Durations(*r) {
			if stay.Lasts <= 0 {
				continue
			}
			from := web.Thousandths(stay.At.Sub(r.CreatedAt), took)
			class := cmp.Or(string(views.PhaseStyle(api.Phase(stay.Phase))), "plain")
			s.Bar = append(s.Bar, web.Segment{Class: class, From: from, Width: max(web.Thousandths(stay.At.Add(stay.Lasts).Sub(r.CreatedAt), took)-from, 1)})
			s.Phases = append(s.Phases, fmt.Sprintf("%s %s", visible.Line(stay.Phase), period.Age(stay.Lasts)))
		}
		spans = append(spans, s)
	}
	return spans
}
