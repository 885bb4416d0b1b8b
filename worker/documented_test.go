package worker

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"

	"drydock.dev/drydock/worker/metrics"
	"drydock.dev/drydock/workflows/meter"
)

// ofState begins the names of metrics that every worker tells the same, beside those of metrics.State.
var ofState = regexp.MustCompile(`^drydock_(window_|limits_)`)

// rows are the rows of the tables of docs/reference/metrics.md, by the table.
func rows(t *testing.T) map[string]string {
	t.Helper()
	rows := map[string]string{}
	add := func(table string, d desc) {
		labels := ""
		if len(d.labels) > 0 {
			labels = "`" + strings.Join(d.labels, "`, `") + "`"
		}
		rows[table] += strings.ReplaceAll(fmt.Sprintf("| `%s` | %s | %s |\n", d.name, labels, meaning(d)), "|  |", "| |")
	}
	state := descs{prometheus.NewRegistry(), new([]desc)}
	metrics.NewState(state, metrics.Options{})
	for _, d := range *state.all {
		add("the state", d)
	}
	for _, d := range *registered(t).all {
		switch {
		case !strings.HasPrefix(d.name, "drydock_"):
		case slices.ContainsFunc(meter.All, func(m meter.Metric) bool { return m.Name == d.name }):
			add("workflows", d)
		case ofState.MatchString(d.name):
			add("the state", d)
		default:
			add("activities", d)
		}
	}
	return rows
}

// meaning is the help of a metric as a row says it, with the values that its label has.
func meaning(d desc) string {
	text := []rune(strings.TrimSuffix(d.help, "."))
	text[0] = unicode.ToLower(text[0])
	for _, m := range meter.All {
		if m.Name != d.name {
			continue
		}
		before, values := "", ""
		if m.Durations {
			before = "histogram: "
		}
		if len(m.Values) > 0 {
			values = ": `" + strings.Join(m.Values, "`, `") + "`"
		}
		return before + string(text) + values
	}
	return string(text)
}

// TestTheDocumentListsTheMetrics keeps the tables of docs/reference/metrics.md what is registered; UPDATE_GOLDEN=1 writes them.
func TestTheDocumentListsTheMetrics(t *testing.T) {
	const file = "../docs/reference/metrics.md"
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	for table, rows := range rows(t) {
		begin, end := fmt.Sprintf("<!-- metrics of %s: made of what is registered -->\n", table), "<!-- end of metrics -->\n"
		before, rest, found := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s has no %q up to %q", file, begin, end)
		}
		text = before + begin + "| metric | labels | meaning |\n| --- | --- | --- |\n" + rows + end + after
	}
	if text != string(content) {
		if os.Getenv("UPDATE_GOLDEN") == "" {
			t.Fatalf("%s is not what is registered: make it anew with UPDATE_GOLDEN=1 go test ./worker/", file)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// What other systems' metrics are mapped to exists, too.
	for _, name := range regexp.MustCompile(`drydock_\w+`).FindAllString(text, -1) {
		if !strings.Contains(text, "| `"+strings.TrimSuffix(name, "_bucket")+"` |") {
			t.Errorf("%s names %s, which there is not", file, name)
		}
	}
}
