package drainplan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestWhatIsReachedIsFoundInTheTargets: a node whose story is lost goes on where it was.
func TestWhatIsReachedIsFoundInTheTargets(t *testing.T) {
	a := tiersOf(t, upToPriority(10), upToPriority(30), daemonSets(10))
	b := tiersOf(t, upToPriority(20), daemonSets(20))
	for name, c := range map[string]struct {
		plans   []Plan
		targets []Entry
		want    *Entry
	}{
		"nothing":                {[]Plan{a}, nil, nil},
		"less than the first":    {[]Plan{a}, []Entry{upToPriority(5)}, nil},
		"the first":              {[]Plan{a}, a.Targets(0), ptr(upToPriority(10))},
		"the last":               {[]Plan{a}, a.Targets(2), ptr(daemonSets(10))},
		"between those of two":   {[]Plan{a, b}, []Entry{upToPriority(20)}, ptr(upToPriority(20))},
		"further than its plans": {[]Plan{b}, a.Targets(1), ptr(upToPriority(20))},
		"no plan":                {nil, a.Targets(1), nil},
	} {
		if diff := cmp.Diff(c.want, Reached(c.plans, c.targets)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func ptr(e Entry) *Entry { return &e }

func TestEveryTierOfAPlanIsReachedByItsTargets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var entries []Entry
		for _, priority := range rapid.SliceOfNDistinct(rapid.Int32Range(1, 50), 1, 5, rapid.ID[int32]).Draw(t, "priorities") {
			entries = append(entries, Entry{PodType: rapid.SampledFrom(Types()).Draw(t, "type"), PodPriority: priority,
				PodSelector: rapid.SampledFrom([]string{"", "app=a", "app=b"}).Draw(t, "selector")})
		}
		p, err := New(entries, nil)
		if err != nil {
			t.Fatal(err)
		}
		tier := rapid.IntRange(0, p.Len()-1).Draw(t, "tier")
		reached := Reached([]Plan{p}, p.Targets(tier))
		if reached == nil || compareEntries(*reached, p.Entry(tier)) < 0 {
			t.Errorf("tier %d of %v is reached, and %v is found", tier, p.Entries(), reached)
		}
	})
}
