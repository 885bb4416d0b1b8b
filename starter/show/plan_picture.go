package show

import (
	"fmt"
	"io"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

// cell is how a state is drawn: a sign that differs from the others even without colours.
type cell struct {
	state plan.State
	sign  byte
}

// cells are the states in the order in which the worst comes first, which stands for several nodes where there is no room
// for each.
var cells = []cell{
	{plan.Failed, 'x'}, {plan.Held, '!'}, {plan.Running, '>'}, {plan.Waiting, '.'},
	{plan.Skipped, '-'}, {plan.Done, '#'}, {plan.Gone, '_'},
}

// rankOf is the place of a letter of PlanStatus.Cells among the cells.
var rankOf = func() map[byte]int {
	ranks := map[byte]int{}
	for i, c := range cells {
		ranks[api.CellOf(c.state)] = i
	}
	return ranks
}()

// PlanPicture draws a plan as a picture of so many lines: its stage where it has stages, a cell a node, the counts, and the slowest nodes
// with what is in their way. Letters are those of PlanStatus.Cells.
func PlanPicture(w io.Writer, p api.Plan, letters string, height int, now time.Time) {
	page := terminal.PageOf(w)
	title := string(p.Phase)
	if p.Since != nil {
		title += " for " + period.Age(now.Sub(*p.Since))
	}
	head := terminal.OneLineEach(page)
	head.AddPainted(1, views.PlanStyle(p.Phase), p.Name, title+terminal.Colon(views.PlanNews(p.PlanSummary, views.At(now))))
	around := 2
	const forEach = 3
	if p.Stages != nil {
		head.Add("", views.Stage(*p.Stages))
		around++
	}
	if pace := views.Pace(p.Pace, views.At(now)); pace != "" {
		head.Add("", pace)
		around++
	}
	head.Done()
	slowest := views.Slowest(p.Slowest, views.At(now))
	if len(slowest.Rows) > 0 {
		around++
	}
	rows := max(1, height-around-min(len(p.Slowest)*forEach, height/2))
	for _, row := range drawCells(page, letters, rows) {
		fmt.Fprintln(page, row)
	}
	fmt.Fprintln(page, legend(page, p.Counts))
	var d document.Document
	slowest.OneLine = true
	d.Table(slowest)
	terminal.Show(page, d)
}

// drawCells draws a sign a node, or one for several where they do not fit into so many rows.
func drawCells(page *terminal.Page, letters string, rows int) []string {
	width := page.Width
	if width <= 0 {
		width = 80
	}
	each := max(1, (len(letters)+width*rows-1)/(width*rows))
	var ranks []int
	for at := 0; at < len(letters); at += each {
		worst := len(cells) - 1
		for _, letter := range []byte(letters[at:min(at+each, len(letters))]) {
			worst = min(worst, rankOf[letter])
		}
		ranks = append(ranks, worst)
	}
	var lines []string
	for at := 0; at < len(ranks); at += width {
		lines = append(lines, drawRow(page, ranks[at:min(at+width, len(ranks))]))
	}
	if each > 1 && len(lines) > 0 {
		lines = append(lines, terminal.OneLine(fmt.Sprintf("(a cell is up to %s and shows the worst)", number.Of(each, "node"))))
	}
	return lines
}

// drawRow draws neighbours of one state in one stroke.
func drawRow(page *terminal.Page, ranks []int) string {
	var line strings.Builder
	for from := 0; from < len(ranks); {
		to := from
		for to < len(ranks) && ranks[to] == ranks[from] {
			to++
		}
		c := cells[ranks[from]]
		line.WriteString(page.Paint(views.StateStyle(c.state.Word()), strings.Repeat(string(c.sign), to-from)))
		from = to
	}
	return line.String()
}

// legend counts the nodes by their states, with the signs of these.
func legend(page *terminal.Page, c *plan.Counts) string {
	if c == nil {
		return ""
	}
	n := map[plan.State]int{
		plan.Done: c.Done, plan.Running: c.Running, plan.Held: c.Held, plan.Failed: c.Failed,
		plan.Waiting: c.Waiting, plan.Skipped: c.Skipped, plan.Gone: c.Gone,
	}
	var plain int
	var parts []string
	for _, state := range []plan.State{plan.Done, plan.Running, plan.Held, plan.Failed, plan.Waiting, plan.Skipped, plan.Gone} {
		text := fmt.Sprintf("%c %d %s", cells[rankOf[api.CellOf(state)]].sign, n[state], state.Word())
		if n[state] == 0 || page.Width > 0 && plain+len(text) > page.Width {
			continue
		}
		plain += len(text) + len("  ")
		parts = append(parts, page.Paint(views.StateStyle(state.Word()), text))
	}
	return strings.Join(parts, "  ")
}
