package page

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"errors"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/moment"
	"drydock.dev/drydock/rules/web"
)

//go:embed assets
var assets embed.FS

var screens = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"clock": clock, "still": func() string { return still }, "bar": web.Bar,
	"document": func(d document.Document) (template.HTML, error) { return web.HTML(d, links{}) },
}).ParseFS(assets, "assets/page.html"))

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
	// Documents are shown under the titles that they have.
	Documents []document.Document
	At        time.Time
}

type link struct{ Text, To string }

// links lead from the first cells of lists of nodes, and of plans, to their pages.
type links struct{}

// To implements web.Links.
func (links) To(t document.Table, column int, cell string) string {
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

// script is what pages load.
func script() string {
	text, err := assets.ReadFile("assets/page.js")
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

// asset serves what pages load.
func asset(body, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "no-cache") // another version of the worker may have another
		_, _ = io.WriteString(w, body)
	}
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error() // which no status of ours has
	}
	return string(text)
}
