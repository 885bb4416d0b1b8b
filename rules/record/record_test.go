package record

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestRecordsSurviveEncoding(t *testing.T) {
	line, err := full().Encode()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(line), "\n") {
		t.Error("a record is more than one line")
	}
	again, err := Decode(line)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(full(), again); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

func TestNewerFieldsAreSkipped(t *testing.T) {
	line, err := short("worker-01", "run-1", "Completed", 0).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode([]byte(`{"added":{"later":1},` + string(line[1:]))); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNoRecordIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"torn":           {`{"schema":"drydock.dev/au`, "not an audit record"},
		"another schema": {`{"schema":"drydock.dev/audit/v2","workflowId":"w","runId":"r","node":"n","requestor":"ops","createdAt":"2026-07-01T12:00:00Z"}`, `schema: "drydock.dev/audit/v2" is not known`},
		"something else": {`{"level":"info"}`, "workflowId: is missing"},
		"no time":        {`{"schema":"drydock.dev/audit/v1","workflowId":"w","runId":"r","node":"n","requestor":"ops"}`, "createdAt: is missing"},
	} {
		if _, err := Decode([]byte(c.line)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	nameless := full()
	nameless.RunID = ""
	if _, err := nameless.Encode(); err == nil || !strings.Contains(err.Error(), "runId: is missing") {
		t.Errorf("without an identity: %v", err)
	}
}

func TestLongListsAreCutAndCounted(t *testing.T) {
	r := full()
	for i := range MaxPods + 10 {
		r.Drain.Pods = append(r.Drain.Pods, Pod{Pod: fmt.Sprint(i)})
	}
	for i := range MaxBlockers {
		r.Blockers = append(r.Blockers, Blocker{Pod: fmt.Sprint(i)})
	}
	for i := range MaxNotifications {
		r.Notifications = append(r.Notifications, Notification{Event: fmt.Sprint(i)})
	}
	pods, blockers := len(r.Drain.Pods)+r.Drain.MorePods, len(r.Blockers)+r.MoreBlockers
	b := r.Bounded()
	if len(b.Drain.Pods) != MaxPods || len(b.Drain.Pods)+b.Drain.MorePods != pods {
		t.Errorf("%d pods and %d more of %d", len(b.Drain.Pods), b.Drain.MorePods, pods)
	}
	if len(b.Blockers) != MaxBlockers || len(b.Blockers)+b.MoreBlockers != blockers {
		t.Errorf("%d blockers and %d more of %d", len(b.Blockers), b.MoreBlockers, blockers)
	}
	if last := b.Notifications[len(b.Notifications)-1].Event; len(b.Notifications) != MaxNotifications || last != fmt.Sprint(MaxNotifications-1) {
		t.Errorf("%d notifications, the last is %s", len(b.Notifications), last)
	}
	if r.Drain.MorePods != full().Drain.MorePods || len(r.Drain.Pods) == MaxPods {
		t.Error("the record itself was changed")
	}
	if diff := cmp.Diff(full(), full().Bounded()); diff != "" {
		t.Errorf("a short record was changed: %s", diff)
	}
}

func TestDistinctKeepsTheFirst(t *testing.T) {
	first, again, other := short("a", "1", "Completed", 0), short("a", "1", "Failed", 0), short("a", "2", "Completed", 0)
	if diff := cmp.Diff([]Record{first, other}, Distinct([]Record{first, again, other, first})); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

func TestDistinctKeepsTheLastEnd(t *testing.T) {
	end := func(last string, minutes int) Record {
		r := short("a", "1", "Failed", 0)
		r.LastRunID, r.EndedAt = last, noon.Add(time.Duration(minutes)*time.Minute)
		return r
	}
	first, second, third := end("", 10), end("2", 20), end("3", 30)
	if diff := cmp.Diff([]Record{third}, Distinct([]Record{second, first, third, second})); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

func TestDurations(t *testing.T) {
	entry := func(phase string, minutes int) Phase {
		return Phase{Phase: phase, At: noon.Add(time.Duration(minutes) * time.Minute)}
	}
	for name, c := range map[string]struct {
		phases []Phase
		ended  int
		want   string
	}{
		"in order":               {[]Phase{entry("Pending", 0), entry("Draining", 10), entry("Ready", 30), entry("Completed", 60)}, 60, "Pending 10m0s, Draining 20m0s, Ready 30m0s, Completed 0s"},
		"notes do not split":     {[]Phase{entry("Pending", 0), entry("Draining", 10), entry("Draining", 20), entry("Failed", 30)}, 30, "Pending 10m0s, Draining 20m0s, Failed 0s"},
		"the same phase twice":   {[]Phase{entry("Pending", 0), entry("Draining", 10), entry("Pending", 20), entry("Cancelled", 25)}, 25, "Pending 10m0s, Draining 10m0s, Pending 5m0s, Cancelled 0s"},
		"a late first phase":     {[]Phase{entry("Pending", 5), entry("Ready", 10)}, 15, "Pending 10m0s, Ready 5m0s"},
		"a clock that went back": {[]Phase{entry("Pending", 0), entry("Draining", 10), entry("Ready", 8), entry("Completed", 12)}, 12, "Pending 10m0s, Draining 0s, Ready 2m0s, Completed 0s"},
		"an end before its time": {[]Phase{entry("Pending", 0), entry("Ready", 10)}, 5, "Pending 10m0s, Ready 0s"},
		"no phases":              {nil, 10, ""},
	} {
		r := Record{CreatedAt: noon, EndedAt: noon.Add(time.Duration(c.ended) * time.Minute), Phases: c.phases}
		var got []string
		for _, d := range Durations(r) {
			got = append(got, d.Phase+" "+d.Lasts.String())
		}
		if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s: want - got +\n%s", name, diff)
		}
	}
	if got := Durations(running()); len(got) != 1 || got[0].Lasts != 90*time.Minute {
		t.Errorf("one that has not ended: %+v, want 90m up to when it was looked at", got)
	}
}

// momentGen are moments around noon, in no order.
var momentGen = rapid.Map(rapid.Int64Range(-1e6, 1e6), func(ms int64) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) })

var recordGen = rapid.Custom(func(t *rapid.T) Record {
	r := Record{
		Schema: Schema, WorkflowID: "w", RunID: rapid.StringMatching(`[a-z]{8}`).Draw(t, "run"), Node: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "node"),
		Requestor: "ops", CreatedAt: momentGen.Draw(t, "created"), Phase: rapid.SampledFrom(ends).Draw(t, "end"),
	}
	if rapid.Bool().Draw(t, "ended") {
		r.EndedAt = momentGen.Draw(t, "ended at")
	} else {
		r.AsOf = momentGen.Draw(t, "as of")
	}
	for range rapid.IntRange(1, 12).Draw(t, "phases") {
		r.Phases = append(r.Phases, Phase{Phase: rapid.SampledFrom(inOrder).Draw(t, "phase"), At: momentGen.Draw(t, "at")})
	}
	for range rapid.IntRange(0, 4).Draw(t, "blockers") {
		b := Blocker{Pod: rapid.SampledFrom([]string{"ns/a", "ns/b", "x/a"}).Draw(t, "pod"), Reason: rapid.SampledFrom([]string{"A", "B"}).Draw(t, "reason"), Since: momentGen.Draw(t, "since")}
		if rapid.Bool().Draw(t, "over") {
			b.Until = momentGen.Draw(t, "until")
		}
		r.Blockers = append(r.Blockers, b)
	}
	return r
})

func TestDurationsSumUpToTheTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := recordGen.Draw(t, "record")
		var sum time.Duration
		for _, d := range Durations(r) {
			if d.Lasts < 0 {
				t.Fatalf("%s lasted %s", d.Phase, d.Lasts)
			}
			sum += d.Lasts
		}
		if sum != Total(r) {
			t.Fatalf("the phases lasted %s and the whole %s", sum, Total(r))
		}
		for _, b := range r.Blockers {
			if blocked := Blocked(r, b); blocked < 0 || blocked > Total(r) {
				t.Fatalf("%s was in the way for %s of %s", b.Pod, blocked, Total(r))
			}
		}
	})
}

func TestBlockedUntil(t *testing.T) {
	r := full()
	for name, c := range map[string]struct {
		blocker Blocker
		want    time.Duration
	}{
		"it went":                {Blocker{Since: before(23 * time.Hour), Until: before(20 * time.Hour)}, 3 * time.Hour},
		"until the drain ended":  {Blocker{Since: before(22 * time.Hour)}, 20 * time.Hour},
		"before the maintenance": {Blocker{Since: before(48 * time.Hour), Until: before(25 * time.Hour)}, time.Hour},
		"over before it began":   {Blocker{Since: before(48 * time.Hour), Until: before(47 * time.Hour)}, 0},
	} {
		if got := Blocked(r, c.blocker); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestObserveKeepsAccountOfWhatIsInTheWay(t *testing.T) {
	db, web := Blocker{Pod: "a/db", Reason: "Budget", Since: noon}, Blocker{Pod: "a/web", Reason: "Budget", Since: noon}
	all, _ := Observe(nil, []Blocker{db, web}, noon)
	// A drain that begins anew counts anew.
	later := db
	later.Since, later.Message = noon.Add(time.Minute), "still"
	all, _ = Observe(all, []Blocker{later}, noon.Add(2*time.Minute))
	all, _ = Observe(all, nil, noon.Add(3*time.Minute))
	back := Blocker{Pod: "a/web", Reason: "Webhook", Since: noon.Add(4 * time.Minute)}
	all, dropped := Observe(all, []Blocker{back}, noon.Add(4*time.Minute))
	want := []Blocker{
		{Pod: "a/db", Reason: "Budget", Message: "still", Since: noon, Until: noon.Add(3 * time.Minute)},
		{Pod: "a/web", Reason: "Budget", Since: noon, Until: noon.Add(2 * time.Minute)},
		back,
	}
	if diff := cmp.Diff(want, all); diff != "" || dropped != 0 {
		t.Errorf("%d dropped, want - got +\n%s", dropped, diff)
	}
}

func TestObserveStaysBoundedAndKeepsTheWorst(t *testing.T) {
	var all []Blocker
	dropped := 0
	for i := range 3 * MaxBlockers {
		at := noon.Add(time.Duration(i) * time.Minute)
		var n int
		all, n = Observe(all, []Blocker{{Pod: "a/stubborn", Since: noon}, {Pod: fmt.Sprintf("a/web-%d", i), Since: at}}, at)
		dropped += n
	}
	if len(all) != MaxBlockers || dropped != 2*MaxBlockers+1 {
		t.Errorf("%d kept, %d dropped", len(all), dropped)
	}
	if all[0].Pod != "a/stubborn" || !all[0].Until.IsZero() {
		t.Errorf("the worst of all is not kept: %+v", all[0])
	}
}
