package record

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"drydock.dev/drydock/rules/spec"
)

// reported are maintenances of some days, with one from before them, one that goes on, and one written twice.
func reported() []Record {
	failed := short("worker-02", "run-2", "Failed", 2*time.Hour)
	failed.Failure = "pod a/b | lacks consent"
	failed.Blockers = []Blocker{
		{Pod: "shop/db-0", Owner: "StatefulSet db", Reason: "DisruptionBudget", Since: before(150 * time.Minute)},
		{Pod: "shop/db-1", Owner: "StatefulSet db", Reason: "Webhook", Since: before(150 * time.Minute), Until: before(149 * time.Minute)},
	}
	gone := short("worker-03", "run-3", "NodeGone", 5*time.Hour)
	blocked := short("worker-01", "run-4", "Completed", 26*time.Hour)
	for _, pod := range []string{"shop/web-1", "shop/web-2"} {
		blocked.Blockers = append(blocked.Blockers, Blocker{Pod: pod, Owner: "ReplicaSet web", Reason: "DisruptionBudget", Since: before(26*time.Hour + 10*time.Minute), Until: before(26*time.Hour + 8*time.Minute)})
	}
	again := short("worker-04", "run-5", "Cancelled", 27*time.Hour)
	again.Blockers = []Blocker{{Pod: "shop/web-9", Owner: "ReplicaSet web", Reason: "DisruptionBudget", Since: before(27*time.Hour + 2*time.Minute)}}
	return []Record{full(), failed, failed, gone, blocked, again, running(), short("worker-09", "old", "Failed", 31*24*time.Hour)}
}

func TestSummarize(t *testing.T) {
	r := Summarize(reported(), before(30*24*time.Hour), noon)
	if r.Maintenances != 5 || r.Nodes != 5 {
		t.Errorf("%d maintenances of %d nodes, want 5 of 5", r.Maintenances, r.Nodes)
	}
	if every := r.Every.Std(); every != 24*time.Hour || len(r.Ended) != 30 || !slices.Equal(r.Ended[27:], []int{0, 2, 3}) {
		t.Errorf("in each %s: %v", every, r.Ended)
	}
	want := []EndCount{{"Completed", 2}, {"Failed", 1}, {"Cancelled", 1}, {"NodeGone", 1}}
	if diff := cmp.Diff(want, r.Ends); diff != "" {
		t.Errorf("ends: want - got +\n%s", diff)
	}
	if diff := cmp.Diff([]string{"pod a/b | lacks consent", "no reason is on record"}, []string{r.Failures[0].Reason, r.Failures[1].Reason}); diff != "" || len(r.Failures) != 2 {
		t.Errorf("%d failures: want - got +\n%s", len(r.Failures), diff)
	}
	blockers := []BlockerTotal{
		{What: "default/bare", Reason: "NoController", Maintenances: 1, Blocked: spec.Duration(20 * time.Hour)},
		{What: "default/StatefulSet db", Reason: "DisruptionBudget", Maintenances: 1, Blocked: spec.Duration(3 * time.Hour)},
		{What: "shop/StatefulSet db", Reason: "DisruptionBudget", Maintenances: 1, Blocked: spec.Duration(31 * time.Minute)},
		{What: "shop/ReplicaSet web", Reason: "DisruptionBudget", Maintenances: 2, Blocked: spec.Duration(6 * time.Minute)},
	}
	if diff := cmp.Diff(blockers, r.Blockers); diff != "" {
		t.Errorf("blockers: want - got +\n%s", diff)
	}
}

func TestFailuresOnTheWayAndRefusedInputs(t *testing.T) {
	repaired := short("worker-01", "run-1", "Completed", time.Hour)
	repaired.Phases = []Phase{
		{Phase: "Ready", At: before(3 * time.Hour)}, {Phase: "RequestorFailed", At: before(150 * time.Minute), Message: "no power"},
		{Phase: "RequestorFailed", At: before(140 * time.Minute), Message: "a note"}, {Phase: "Ready", At: before(2 * time.Hour)},
		{Phase: "Validating", At: before(90 * time.Minute)}, {Phase: "Releasing", At: before(61 * time.Minute)},
	}
	repaired.States = []State{
		{State: "MaintenanceIncomplete", At: before(150 * time.Minute), Message: "no power"},
		{State: "MaintenanceIncomplete", At: before(80 * time.Minute), Message: "smoke test failed"},
	}
	typo := short("wroker-01", "run-2", "Failed", time.Hour)
	typo.Phases, typo.Failure = []Phase{{Phase: "Pending", At: before(time.Hour)}, {Phase: "Failed", At: before(time.Hour)}}, "there is no node wroker-01"
	stuck := short("worker-02", "run-3", "Failed", time.Hour)
	stuck.Phases = []Phase{{Phase: "Pending"}, {Phase: "Scheduled"}, {Phase: "Draining"}, {Phase: "Failed"}}
	r := Summarize([]Record{repaired, typo, stuck}, before(24*time.Hour), noon)
	if r.Maintenances != 2 || r.WithFailures != 1 || len(r.Refused) != 1 || r.Refused[0].Node != "wroker-01" || len(r.Failures) != 1 {
		t.Errorf("%+v", r)
	}
	var way []string
	for _, f := range r.FailuresOnTheWay {
		way = append(way, f.Phase+" "+f.Reason+" "+f.End)
	}
	if diff := cmp.Diff([]string{"Validating smoke test failed Completed", "RequestorFailed no power Completed"}, way); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	for _, want := range []string{"Failed on the way:  1 (50%)", "Refused:            1, not counted", "Failures on the way:", "no power", "there is no node wroker-01"} {
		if text := drawn(r.View(noon)); !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestTheWindowIsHalfOpen(t *testing.T) {
	records := []Record{short("a", "1", "Completed", time.Hour), short("a", "2", "Completed", 0)}
	if n := Summarize(records, before(time.Hour), noon).Maintenances; n != 1 {
		t.Errorf("%d maintenances, want that at the beginning and not that at the end", n)
	}
}

func TestNearestRank(t *testing.T) {
	for _, c := range []struct{ n, p50, p95 int }{{1, 1, 1}, {2, 1, 2}, {3, 2, 3}, {4, 2, 4}, {19, 10, 19}, {20, 10, 19}, {21, 11, 20}, {100, 50, 95}, {101, 51, 96}} {
		var values []time.Duration
		for i := range c.n {
			values = append(values, time.Duration(i+1))
		}
		if p50, p95 := percentile(values, 50), percentile(values, 95); p50 != time.Duration(c.p50) || p95 != time.Duration(c.p95) {
			t.Errorf("of %d values: %d and %d, want %d and %d", c.n, p50, p95, c.p50, c.p95)
		}
	}
}

func TestPercentilesAreMeasuredAndBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Map(rapid.Int64Range(0, 1e12), func(n int64) time.Duration { return time.Duration(n) }), 1, 60).Draw(t, "values")
		slices.Sort(values)
		previous := time.Duration(0)
		for percent := 0; percent <= 100; percent += 5 {
			got := percentile(values, percent)
			within := 0
			for _, v := range values {
				if v <= got {
					within++
				}
			}
			if !slices.Contains(values, got) || 100*within < percent*len(values) || got < previous {
				t.Fatalf("percentile %d of %v is %s", percent, values, got)
			}
			previous = got
		}
	})
}

func TestReportsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := rapid.SliceOf(recordGen).Draw(t, "records")
		r := Summarize(records, before(10*time.Minute), noon.Add(10*time.Minute))
		sum := 0
		for _, e := range r.Ends {
			sum += e.Maintenances
		}
		if sum != r.Maintenances || r.Maintenances > len(records) || r.Nodes > r.Maintenances {
			t.Fatalf("%d ends of %d maintenances of %d nodes", sum, r.Maintenances, r.Nodes)
		}
		for _, s := range r.Phases {
			if s.Maintenances < 1 || s.Maintenances > r.Maintenances || s.P50 > s.P95 || s.P95 > s.Longest || s.Longest > r.Total.Longest {
				t.Fatalf("%+v in %+v", s, r.Total)
			}
		}
		for _, b := range r.Blockers {
			if b.Maintenances < 1 || b.Maintenances > r.Maintenances || b.Blocked < 0 {
				t.Fatalf("%+v", b)
			}
		}
		slices.Reverse(records)
		if diff := cmp.Diff(r, Summarize(records, r.Since, r.Until)); diff != "" {
			t.Fatalf("the order of the records matters: %s", diff)
		}
	})
}

func TestShares(t *testing.T) {
	for _, c := range []struct {
		part, whole int
		want        string
	}{{0, 0, "0%"}, {1, 1000, "under 1%"}, {999, 1000, "over 99%"}, {1, 3, "33%"}, {2, 3, "67%"}, {3, 3, "100%"}} {
		if got := share(c.part, c.whole); got != c.want {
			t.Errorf("%d of %d is %s, want %s", c.part, c.whole, got, c.want)
		}
	}
}
