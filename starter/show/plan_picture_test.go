package show

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

// slowPlan is a plan with what two of its nodes wait for.
func slowPlan(v client.PlanView) api.Plan {
	p := v.Known()
	p.Slowest = []api.SlowNode{
		views.SlowNode(startertest.Draining().Known()),
		views.SlowNode(startertest.View(api.Ready, startertest.WaitingFor(`"done" or "failed" from plan-kernel-6.12`)).Known()),
	}
	p.Slowest[1].Node = "worker-02"
	return p
}

func TestPlansInALine(t *testing.T) {
	startertest.Golden(t, "plan_lines", func(w io.Writer) {
		for _, v := range []client.PlanView{startertest.Plan(), startertest.EndedPlan()} {
			l := PlanLine(v.Summary(), startertest.Noon)
			fmt.Fprintln(w, l.Label, l.Age, l.Text)
		}
	})
}

func TestPicturesOfPlans(t *testing.T) {
	const height = 20
	letters := strings.Repeat("d", 123) + "rrhf" + strings.Repeat("w", 370) + "ssg"
	v := startertest.Plan()
	v.Status.WaitingFor, v.Status.Counts = "", plan.Counts{Total: 500, Done: 123, Running: 2, Held: 1, Failed: 1, Waiting: 370, Skipped: 2, Gone: 1}
	draw := func(w io.Writer) {
		PlanPicture(w, slowPlan(v), letters, height, startertest.Noon)
	}
	startertest.GoldenInWidths(t, "plan_fleet", draw)
	startertest.Golden(t, "plan_fleet_colours", func(w io.Writer) { draw(&terminal.Page{Writer: w, Width: 80, Colour: true}) })
}

func TestThePictureOfAPlanInLockstepHasItsStage(t *testing.T) {
	v := startertest.Plan()
	v.Status.Stages = &api.PlanStages{
		Stage: api.StageDrain, Tier: 1, Nodes: api.DrainCounts{Held: 12, Cordoned: 12, Drained: 3, Pending: 5, Evacuating: 2},
		Tiers: []drainplan.Entry{{PodType: drainplan.Default, PodPriority: 1000}, {PodType: drainplan.Default, PodPriority: 2000, PodSelector: "app=db"}},
	}
	draw := func(w io.Writer, height int) {
		PlanPicture(w, slowPlan(v), strings.Repeat("r", 12), height, startertest.Noon)
	}
	startertest.GoldenInWidths(t, "plan_fleet_stages", func(w io.Writer) { draw(w, 12) })
	var page strings.Builder
	draw(&terminal.Page{Writer: &page, Width: 80}, 8)
	if n := strings.Count(page.String(), "\n"); n > 8 {
		t.Errorf("it takes %d lines of 8:\n%s", n, page.String())
	}
}

func TestACellStandsForTheWorstOfItsNodes(t *testing.T) {
	page := &terminal.Page{Width: 10}
	for letters, want := range map[string]string{
		"":                        "",
		"wrdhfsg":                 ".>#!x-_",
		strings.Repeat("d", 25):   "##########|###|(a cell is up to 2 nodes and shows the worst)",
		"ddddddddddddddddddddwfd": "##########|x#|(a cell is up to 2 nodes and shows the worst)",
	} {
		rows := drawCells(page, letters, 2)
		if got := strings.Join(rows, "|"); got != want && !(len(letters) < 21 && strings.ReplaceAll(got, "|", "") == want) {
			t.Errorf("%s is drawn as %s, want %s", letters, got, want)
		}
	}
	var many strings.Builder
	PlanPicture(&terminal.Page{Writer: &many, Width: 80}, slowPlan(startertest.Plan()), strings.Repeat("wd", 7500), 24, startertest.Noon)
	if n := strings.Count(many.String(), "\n"); n > 24 {
		t.Errorf("15000 nodes take %d lines of 24", n)
	}
	for line := range strings.Lines(many.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("a line has %d columns of 80: %s", n, line)
		}
	}
}
