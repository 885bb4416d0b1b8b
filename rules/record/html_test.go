package record

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

func TestReportsAsHTML(t *testing.T) {
	records := reported()
	hostile := short("worker-05", "run-9", "Failed", time.Hour)
	hostile.Failure = "<script>alert(1)</script>\u202e"
	hostile.Blockers = []Blocker{{Pod: "a/<b>x", Owner: "Job <i>", Reason: "DisruptionBudget", Since: before(70 * time.Minute), Until: before(65 * time.Minute)}}
	records = append(records, hostile)
	text, err := Summarize(records, before(30*24*time.Hour), noon).HTML(records, noon)
	if err != nil {
		t.Fatal(err)
	}
	if file := os.Getenv("DRYDOCK_REPORT"); file != "" {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		"<h1>Maintenances from ", "<bdi>6 maintenances of 6 nodes", "How many maintenances were so long in a phase", "up to 10m", "<bdi>Draining</bdi>",
		"When nodes were in maintenance", "<bdi>worker-04</bdi>", `<rect class="good"`, "StatefulSet db: ", "<title>Ready ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("not %q in\n%s", want, text)
		}
	}
	for _, wrong := range []string{"<script", "\u202e", "<i>", " src=", "url(", "http"} {
		if strings.Contains(text, wrong) {
			t.Errorf("it has %q", wrong)
		}
	}
	if _, err := html.Parse(strings.NewReader(text)); err != nil {
		t.Error(err)
	}
	empty, err := Summarize(nil, before(time.Hour), noon).HTML(nil, noon)
	if err != nil || !strings.Contains(empty, "0 maintenances") || strings.Contains(empty, "When nodes were in maintenance") {
		t.Errorf("of nothing: %v\n%s", err, empty)
	}
}
