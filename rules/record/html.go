package record

import (
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/visible"
	"drydock.dev/drydock/rules/web"
)

//go:embed report.html
var reportHTML string

var reportTemplate = template.Must(template.New("report.html").Parse(reportHTML))

// shownNodes are those whose maintenances a report draws.
const shownNodes = 300

// buckets are the durations by which a report counts.
var buckets = []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}

// named is a bar with its name.
type named struct {
	Name string
	Bar  template.HTML
}

// bucketed is a phase, and how many maintenances were in it for how long.
type bucketed struct {
	Name  string
	Cells []cell
}

type cell struct {
	Count int
	Bar   template.HTML
}

// page is what the template shows.
type page struct {
	Title           string
	Style           template.CSS
	Said            template.HTML
	Buckets         []string
	Phases          []bucketed
	Blockers, Nodes []named
	From, To, More  string
}

// HTML is the report as one file, which loads nothing from anywhere: what it says, and named how long maintenances were in their phases, what
// blocked drains, and when nodes were in maintenance. The records are those of which the report is, with times in the zone of now.
func (r Report) HTML(records []Record, now time.Time) (string, error) {
	d := r.View(now)
	p := page{Title: d.Title, Style: template.CSS(web.Style())} //nolint:gosec // it is embedded
	d.Title = ""
	var err error
	if p.Said, err = web.HTML(d, web.Nowhere{}); err != nil {
		return "", err
	}
	ended, _ := endedIn(records, r.Since, r.Until)
	for _, draw := range []func([]Record) error{p.drawPhases, func([]Record) error { return p.drawBlockers(r.Blockers) },
		func(all []Record) error { return p.drawNodes(all, dated(now)) }} {
		if err := draw(ended); err != nil {
			return "", err
		}
	}
	var text strings.Builder
	err = reportTemplate.Execute(&text, p)
	return text.String(), err
}

// drawPhases counts the maintenances by how long they were in each phase, all stays together.
func (p *page) drawPhases(records []Record) error {
	for _, longest := range buckets {
		p.Buckets = append(p.Buckets, "up to "+period.Age(longest))
	}
	p.Buckets = append(p.Buckets, "longer")
	counts, most := map[string][]int{}, 1
	for _, r := range records {
		for phase, d := range lastedIn(r) {
			if counts[phase] == nil {
				counts[phase] = make([]int, len(buckets)+1)
			}
			at, _ := slices.BinarySearch(buckets, d)
			counts[phase][at]++
			most = max(most, counts[phase][at])
		}
	}
	for _, phase := range known(inOrder, counts) {
		b := bucketed{Name: visible.Line(phase)}
		for _, n := range counts[phase] {
			var segments []web.Segment
			if n > 0 {
				segments = []web.Segment{{Class: classOf(phase), Width: max(n*1000/most, 1)}}
			}
			bar, err := web.Bar(segments)
			if err != nil {
				return err
			}
			b.Cells = append(b.Cells, cell{Count: n, Bar: bar})
		}
		p.Phases = append(p.Phases, b)
	}
	return nil
}

func (p *page) drawBlockers(all []BlockerTotal) error {
	for _, b := range all[:min(len(all), shownBlockers)] {
		bar, err := web.Bar([]web.Segment{{Class: "bad", Width: web.Thousandths(b.Blocked.Std(), all[0].Blocked.Std())}})
		if err != nil {
			return err
		}
		p.Blockers = append(p.Blockers, named{Bar: bar, Name: fmt.Sprintf("%s: %s in %s (%s)",
			visible.Line(b.What), period.Age(b.Blocked.Std()), number.Of(b.Maintenances, "maintenance"), visible.Line(b.Reason))})
	}
	return nil
}

// drawNodes draws the phases of all maintenances of a node in one bar, the nodes in the order in which their first one began.
func (p *page) drawNodes(records []Record, when func(time.Time) string) error {
	if len(records) == 0 {
		return nil
	}
	slices.SortStableFunc(records, func(a, b Record) int { return a.CreatedAt.Compare(b.CreatedAt) })
	first, last := records[0].CreatedAt, records[0].CreatedAt
	for i := range records {
		last = latest(last, lastMoment(records[i]))
	}
	var names []string
	bars := map[string][]web.Segment{}
	for _, r := range records {
		name := joined("/", r.Cluster, r.Node)
		if _, there := bars[name]; !there {
			names = append(names, name)
		}
		for _, stay := range Durations(r) {
			if stay.Lasts <= 0 {
				continue
			}
			from := web.Thousandths(stay.At.Sub(first), last.Sub(first))
			bars[name] = append(bars[name], web.Segment{
				Class: classOf(stay.Phase), From: from, Width: max(web.Thousandths(stay.At.Add(stay.Lasts).Sub(first), last.Sub(first))-from, 1),
				Tip: fmt.Sprintf("%s %s, from %s", stay.Phase, period.Age(stay.Lasts), when(stay.At)),
			})
		}
	}
	for _, name := range names[:min(len(names), shownNodes)] {
		bar, err := web.Bar(bars[name])
		if err != nil {
			return err
		}
		p.Nodes = append(p.Nodes, named{Name: visible.Line(name), Bar: bar})
	}
	p.From, p.To, p.More = when(first), when(last), document.AndMore(len(names)-len(p.Nodes))
	return nil
}

// classOf is the colour of a phase: waiting, on the way, Ready, or failed.
func classOf(phase string) string {
	switch phase {
	case "AwaitingApproval", "Pending", "Scheduled":
		return string(document.Faint)
	case "Ready":
		return string(document.Good)
	case "RequestorFailed":
		return string(document.Bad)
	default:
		return string(document.Active)
	}
}
