package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/window"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// opening is one, in hours from noon.
func opening(from, until float64) window.Opening {
	at := func(hours float64) time.Time { return noon.Add(time.Duration(hours * float64(time.Hour))) }
	return window.Opening{From: at(from), Until: at(until)}
}

// horizon has windows that are known for 200 hours from noon.
func horizon(windows map[string][]window.Opening) *window.Horizon {
	h := &window.Horizon{At: noon, Windows: map[string]window.Openings{}}
	for name, openings := range windows {
		h.Windows[name] = window.Openings{Timezone: "UTC", Until: noon.Add(200 * time.Hour), Openings: openings}
	}
	return h
}

// oneNode is a cluster of node-1, in the group gpu, for which requests wait.
func oneNode(limits Limits, h *window.Horizon, pending ...Request) Input {
	return Input{
		Limits: limits, Now: noon, Horizon: h, Pending: pending,
		Observed: &Observation{Nodes: 1, Facts: map[string]NodeFacts{"node-1": {Groups: []string{"gpu"}}}},
	}
}

func wish(id string, change func(*Request)) Request {
	r := Request{ID: id, Node: "node-1", Requestor: id, Created: noon}
	if change != nil {
		change(&r)
	}
	return r
}

func TestWindows(t *testing.T) {
	known := horizon(map[string][]window.Opening{
		"now": {opening(-1, 3)}, "nights": {opening(10, 16), opening(34, 40)}, "late": {opening(12, 14), opening(38, 60)},
		"short": {opening(-1, 1), opening(24, 25), opening(48, 52)}, "never": nil,
	})
	gpu := func(names ...string) Limits {
		return Limits{Groups: []Group{{Name: "gpu", NodeSelector: "pool=gpu", Windows: names}}}
	}
	of := func(names ...string) func(*Request) { return func(r *Request) { r.Windows = names } }
	within := func(d time.Duration, names ...string) func(*Request) {
		return func(r *Request) { r.Windows, r.ExpectedDuration = names, period.Duration(d) }
	}
	for name, c := range map[string]struct {
		limits  Limits
		request func(*Request)
		horizon *window.Horizon
		// want is the reason, empty if it is granted; next is in hours from noon, 0 for never.
		want string
		next float64
	}{
		"open":                       {Limits{Windows: []string{"now"}}, nil, known, "", 0},
		"closed for the cluster":     {Limits{Windows: []string{"nights"}}, nil, known, "window nights opens 2026-11-23T22:00:00Z", 10},
		"closed for the group":       {gpu("nights"), nil, known, "window nights opens 2026-11-23T22:00:00Z", 10},
		"closed for the request":     {Limits{}, of("nights"), known, "window nights opens 2026-11-23T22:00:00Z", 10},
		"all have to be open":        {Limits{Windows: []string{"now"}}, of("nights"), known, "window nights opens 2026-11-23T22:00:00Z", 10},
		"two that are closed":        {Limits{Windows: []string{"late"}}, of("nights"), known, "window late opens 2026-11-24T00:00:00Z, window nights opens 2026-11-23T22:00:00Z", 10},
		"never together":             {gpu("now"), of("nights", "late"), known, "window late opens 2026-11-24T00:00:00Z, window nights opens 2026-11-23T22:00:00Z", 10},
		"another group's":            {Limits{Groups: []Group{{Name: "cpu", NodeSelector: "pool=cpu", Windows: []string{"nights"}}}}, nil, known, "", 0},
		"long enough":                {Limits{Windows: []string{"now"}}, within(3 * time.Hour), known, "", 0},
		"too long":                   {Limits{Windows: []string{"now"}}, within(4 * time.Hour), known, "window now closes at 2026-11-23T15:00:00Z, before the expected 4h0m0s are over", 3},
		"long enough another time":   {Limits{}, within(2*time.Hour, "short"), known, "window short closes at 2026-11-23T13:00:00Z, before the expected 2h0m0s are over; at the earliest 2026-11-25T12:00:00Z", 1},
		"long enough together":       {Limits{Windows: []string{"late"}}, within(2*time.Hour+1, "nights"), known, "window late opens 2026-11-24T00:00:00Z, window nights opens 2026-11-23T22:00:00Z", 10},
		"does not open":              {Limits{}, of("never"), known, "window never does not open before 2026-12-01T20:00:00Z", 200},
		"not configured":             {Limits{}, of("gone"), known, "the worker's configuration has no window gone (windows)", 0},
		"not known yet":              {Limits{}, of("now"), nil, "when window now opens is not known yet", 0},
		"ignored":                    {Limits{Windows: []string{"nights"}}, func(r *Request) { r.Windows, r.IgnoreWindows = []string{"never"}, "fire" }, known, "", 0},
		"ignored, and nothing known": {Limits{Windows: []string{"nights"}}, func(r *Request) { r.IgnoreWindows = "fire" }, nil, "", 0},
		"no window applies":          {Limits{}, within(time.Hour), nil, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(oneNode(c.limits, c.horizon, wish("ops", c.request)))
			if c.want == "" {
				if len(d.Grants) != 1 {
					t.Errorf("%+v, want a grant", d)
				}
				return
			}
			if len(d.Refused) != 1 || !d.Refused[0].Code.IsWindow() || (d.Refused[0].Code == WindowUnknown) != d.Unknown || d.Refused[0].Reason != c.want {
				t.Fatalf("%+v, want %s", d, c.want)
			}
			if hours := d.Next.Sub(noon).Hours(); c.next == 0 && !d.Next.IsZero() || c.next != 0 && hours != c.next {
				t.Errorf("decides again at %s, in %v hours, want %v", d.Next, hours, c.next)
			}
			if !d.Windows || d.Unknown != (c.horizon == nil) {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestWhatIsKnownOfWindowsEndsSomewhere(t *testing.T) {
	in := oneNode(Limits{Windows: []string{"now"}}, horizon(map[string][]window.Opening{"now": {opening(-1, 300)}}), wish("ops", nil))
	in.Now = noon.Add(200 * time.Hour)
	if d := Decide(in); !d.Unknown || len(d.Grants) > 0 || d.Refused[0].Reason != "when window now opens is not known yet" {
		t.Errorf("%+v", d)
	}
	in.Horizon, in.HorizonTrouble = nil, "the worker is gone"
	if d := Decide(in); !d.Unknown || d.Refused[0].Reason != "when window now opens could not be found out: the worker is gone" {
		t.Errorf("%+v", d)
	}
}

func TestWhoWaitsForAWindowNeedsNoObservation(t *testing.T) {
	closed := horizon(map[string][]window.Opening{"nights": {opening(10, 16)}})
	in := oneNode(Limits{Windows: []string{"nights"}}, closed, wish("seen", nil), wish("new", nil))
	in.Observed.Revision, in.Seen = -1, map[string]bool{"seen": true}
	codes := func() (codes []Code) {
		for _, r := range Decide(in).Refused {
			codes = append(codes, r.Code)
		}
		slices.Sort(codes)
		return codes
	}
	if got := codes(); !slices.Equal(got, []Code{Unobserved, Window}) {
		t.Errorf("with an observation that is out of date: %v", got)
	}
	in.Observed = &Observation{Nodes: 1}
	if got := codes(); !slices.Equal(got, []Code{Unobserved, Window}) {
		t.Errorf("with one that lacks the node: %v", got)
	}
	in.Now = noon.Add(11 * time.Hour)
	if got := codes(); !slices.Equal(got, []Code{Unobserved, Unobserved}) {
		t.Errorf("when it is open: %v", got)
	}
}

func TestAClosedWindowOfOneKeepsNobodyElseOut(t *testing.T) {
	closed := horizon(map[string][]window.Opening{"nights": {opening(10, 16)}})
	first := wish("first", func(r *Request) { r.Windows, r.Priority = []string{"nights"}, 10 })
	if d := Decide(oneNode(Limits{}, closed, first, wish("second", nil))); len(d.Grants) != 1 || d.Grants[0].ID != "second" {
		t.Errorf("%+v", d)
	}
}

func TestWhoWaitsForASlotHearsOfTheClose(t *testing.T) {
	in := oneNode(Limits{Windows: []string{"now"}}, horizon(map[string][]window.Opening{"now": {opening(-1, 3)}}), wish("ops", nil))
	in.Granted = []Grant{{RequestID: "other", Node: "node-2", Requestor: "bob"}}
	if d := Decide(in); len(d.Refused) != 1 || d.Refused[0].Code != MaxParallel || d.Next.Sub(noon).Round(time.Second) != 3*time.Hour+time.Second {
		t.Errorf("%+v", d)
	}
}

// allows is the model: all windows that apply are open from now on for as long as it takes.
func allows(in Input, r Request) bool {
	if r.IgnoreWindows != "" {
		return true
	}
	names := slices.Concat(in.Limits.Windows, r.Windows)
	for _, key := range in.Observed.Facts[r.Node].Groups {
		for _, g := range in.Limits.Groups {
			if key == g.Name {
				names = append(names, g.Windows...)
			}
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(in.Horizon.Windows[name].Openings, func(o window.Opening) bool {
			return !in.Now.Before(o.From) && in.Now.Before(o.Until) && !in.Now.Add(r.ExpectedDuration.Std()).After(o.Until.Add(time.Minute))
		}) {
			return false
		}
	}
	return true
}

func drawWindowed(t *rapid.T) Input {
	names := []string{"a", "b", "c"}
	some := rapid.SliceOfNDistinct(rapid.SampledFrom(append(names, "gone")), 0, 2, rapid.ID)
	openings := map[string][]window.Opening{}
	for _, name := range names {
		at := -rapid.IntRange(0, 5).Draw(t, "begin")
		for range rapid.IntRange(0, 4).Draw(t, "openings") {
			until := at + rapid.IntRange(1, 10).Draw(t, "length")
			openings[name] = append(openings[name], opening(float64(at), float64(until)))
			at = until + rapid.IntRange(1, 10).Draw(t, "pause")
		}
	}
	in := Input{Now: noon, Horizon: horizon(openings), Observed: &Observation{Facts: map[string]NodeFacts{}}}
	for _, name := range names {
		if _, there := in.Horizon.Windows[name]; !there {
			in.Horizon.Windows[name] = window.Openings{Until: noon.Add(200 * time.Hour)}
		}
	}
	in.Limits.MaxParallel = rapid.SampledFrom([]Amount{Count(1), Count(3), Unlimited()}).Draw(t, "maxParallel")
	in.Limits.Windows = some.Draw(t, "windows")
	for _, name := range []string{"g", "h"} {
		in.Limits.Groups = append(in.Limits.Groups, Group{Name: name, MaxParallel: Count(2), Windows: some.Draw(t, "windows of "+name)})
	}
	for i := range rapid.IntRange(1, 8).Draw(t, "requests") {
		// Each has a requestor of its own, so that the rank of one does not depend on the others.
		r := Request{ID: fmt.Sprint(i), Node: worker(rapid.IntRange(1, 6).Draw(t, "node")), Requestor: fmt.Sprint("r", i), Created: noon}
		r.Windows = some.Draw(t, "windows of "+r.ID)
		r.ExpectedDuration = period.Duration(rapid.IntRange(0, 6).Draw(t, "expected")) * period.Duration(time.Hour)
		if rapid.IntRange(0, 5).Draw(t, "ignores") == 0 {
			r.IgnoreWindows = "fire"
		}
		in.Pending = append(in.Pending, r)
	}
	for i := range 6 {
		in.Observed.Nodes++
		in.Observed.Facts[worker(i+1)] = NodeFacts{Groups: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"g", "h"}), 0, 2, rapid.ID).Draw(t, "groups")}
	}
	in.Observed.Groups = map[string]GroupCount{"g": {Nodes: 6}, "h": {Nodes: 6}}
	return in
}

func TestOnlyWhatItsWindowsAllowIsGranted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawWindowed(t)
		d := Decide(in)
		// It is as if those did not ask whose windows are closed, and there were no windows.
		without := in
		without.Limits.Windows, without.Limits.Groups, without.Pending = nil, slices.Clone(in.Limits.Groups), nil
		for i := range without.Limits.Groups {
			without.Limits.Groups[i].Windows = nil
		}
		for _, r := range in.Pending {
			if allows(in, r) {
				r.Windows = nil
				without.Pending = append(without.Pending, r)
			}
		}
		ids := func(grants []Request) (ids []string) {
			for _, g := range grants {
				ids = append(ids, g.ID)
			}
			return ids
		}
		if got, want := ids(d.Grants), ids(Decide(without).Grants); !slices.Equal(got, want) {
			t.Fatalf("granted %v, want %v", got, want)
		}
		// Nothing that was refused is another's turn before the decision is made again.
		later := in
		until := d.Next
		if until.IsZero() {
			until = noon.Add(100 * time.Hour)
		}
		later.Now = noon.Add(time.Duration(rapid.Int64Range(0, int64(until.Sub(noon))-1).Draw(t, "later")))
		for _, refused := range d.Refused {
			closed := refused.Code == Window
			if closed && (allows(in, refused.Request) || strings.TrimSpace(refused.Reason) == "") {
				t.Fatalf("refused because of a window: %+v", refused)
			}
			if closed && allows(later, refused.Request) {
				t.Fatalf("%+v may go at %s, and is looked at again at %s only", refused, later.Now, d.Next)
			}
		}
	})
}
