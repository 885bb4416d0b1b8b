package page

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/moment"
	"drydock.dev/drydock/rules/visible"
)

//go:embed assets
var assets embed.FS

var screens = template.Must(template.New("page.html").Funcs(template.FuncMap{"clock": clock, "still": func() string { return still }}).ParseFS(assets, "assets/page.html"))

// still is the parameter by which a page without scripts does not load again by itself.
const still = "still"

// clock is a moment in the worker's zone, as all that pages show.
func clock(t time.Time) string { return moment.Clock(t, t) }

// screen is what a page shows.
type screen struct {
	Title string
	// Here is the path of the page.
	Here string
	// Digest tells what it shows from what it shows later; empty where nobody knows. Still: it does not load again by itself.
	Digest string
	Still  bool
	// Problem is why nothing else is shown, or not all.
	Problem string
	Zones   []zone
	Chart   *chart
	Spans   []span
	Links   []link
	Parts   []part
	At      time.Time
}

type link struct{ Text, To string }

// part is a part of a document.
type part struct {
	Facts   []fact
	Table   *table
	Line    string
	Command bool
}

// styled is a text whose first word has a style, and which may lead to another page.
type styled struct{ Class, First, Rest, To string }

type fact struct {
	Name  string
	Value styled
}

type table struct {
	Title, None, More string
	Header            []string
	Rows              [][]styled
}

// linked says which page a cell leads to: the first one of the lists of nodes, and of that of plans.
func linked(t document.Table, column int, cell string) string {
	if column != 0 || cell == "" || len(t.Header) == 0 {
		return ""
	}
	switch strings.ToUpper(t.Header[0]) {
	case "NODE":
		return "/nodes/" + url.PathEscape(cell)
	case "PLAN":
		return "/plans/" + url.PathEscape(cell)
	}
	return ""
}

// partsOf makes of a document what the template shows. What nobody would see in its texts, or what turns them round, is made visible.
func partsOf(d document.Document, to func(t document.Table, column int, cell string) string) (parts []part) {
	for _, one := range d.Parts {
		switch one := one.(type) {
		case document.Facts:
			p := part{}
			for _, f := range one {
				p.Facts = append(p.Facts, fact{Name: f.Name, Value: styleOf(f.Value, f.Style, true)})
			}
			parts = append(parts, p)
		case document.Line:
			parts = append(parts, part{Line: visible.Line(one.Text), Command: one.Whole})
		case document.Table:
			t := &table{Title: one.Title, None: one.None, More: one.More, Header: one.Header}
			for _, row := range one.Rows {
				cells := make([]styled, len(row.Cells))
				for i, cell := range row.Cells {
					cells[i] = styleOf(cell, row.Style, i == row.Painted)
					cells[i].To = to(one, i, cell)
				}
				t.Rows = append(t.Rows, cells)
			}
			parts = append(parts, part{Table: t})
		}
	}
	return parts
}

func styleOf(text string, style document.Style, painted bool) styled {
	text = visible.Line(text)
	if !painted || style == document.Plain {
		return styled{Rest: text}
	}
	word, rest, more := strings.Cut(text, " ")
	if more {
		rest = " " + rest
	}
	return styled{Class: string(style), First: word, Rest: rest}
}

// draw makes a page.
func draw(s screen) (sent, error) {
	var page, packed bytes.Buffer
	if err := screens.Execute(&page, s); err != nil {
		return sent{}, err
	}
	z := gzip.NewWriter(&packed)
	_, err := z.Write(page.Bytes())
	err = errors.Join(err, z.Close())
	return sent{plain: page.Bytes(), zipped: packed.Bytes()}, err
}

// show draws a page and sends it.
func (p *Page) show(w http.ResponseWriter, r *http.Request, status int, s screen) {
	if s.At.IsZero() {
		s.At = p.from.now()
	}
	s.Still = r.URL.Query().Has(still)
	page, err := draw(s)
	if err != nil {
		p.Logger.Error("page", "path", r.URL.Path, "error", err)
		http.Error(w, "the page cannot be made: the worker's log has the reason", http.StatusInternalServerError)
		return
	}
	send(w, r, status, page)
}

// fails shows that something cannot be read. Why is for the log: it may name what readers of the page are not to know.
func (p *Page) fails(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // its reader is gone
	}
	p.Logger.Warn("page", "path", r.URL.Path, "error", err)
	p.show(w, r, http.StatusServiceUnavailable, screen{Title: "Not known", Problem: "This cannot be read at the moment: the worker's log has the reason."})
}

func send(w http.ResponseWriter, r *http.Request, status int, page sent) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept-Encoding")
	body := page.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = page.zipped
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the reader has left
}

// asset serves a file that pages load.
func asset(name, kind string) http.HandlerFunc {
	body, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "no-cache") // another version of the worker may have another
		_, _ = w.Write(body)
	}
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error() // which no status of ours has
	}
	return string(text)
}
