package drainplan

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"
)

// The values are few, so that entries and pods meet.
var (
	typeGen     = rapid.SampledFrom(Types())
	priorityGen = rapid.OneOf(rapid.Int32Range(-2, 4), rapid.SampledFrom([]int32{1_000_000_000, 2_000_001_000, math.MaxInt32}))
	selectorGen = rapid.SampledFrom([]string{
		"", "", "", " ", "app=db", "app = db", "app!=db", "app in (web,db)", "app in (db, web)", "zone=a,app=web", "!zone", "zone", "size>1",
	})
	podGen = rapid.Custom(func(t *rapid.T) Pod {
		return Pod{
			Type:     typeGen.Draw(t, "type"),
			Priority: priorityGen.Draw(t, "priority"),
			Labels: rapid.MapOf(
				rapid.SampledFrom([]string{"app", "zone", "size"}), rapid.SampledFrom([]string{"db", "web", "a", "2"}),
			).Draw(t, "labels"),
		}
	})
	entryGen = rapid.Custom(func(t *rapid.T) Entry {
		return Entry{
			PodType:     typeGen.Draw(t, "type"),
			PodPriority: priorityGen.Draw(t, "priority"),
			PodSelector: selectorGen.Draw(t, "selector"),
		}
	})
	// entriesGen has no duplicates.
	entriesGen  = rapid.SliceOfNDistinct(entryGen, 0, 12, canonical)
	includedGen = rapid.SliceOfN(typeGen, 0, 3)
)

func canonical(e Entry) Entry {
	selector, err := labels.Parse(e.PodSelector)
	if err != nil {
		panic(err)
	}
	e.PodSelector = selector.String()
	return e
}

// selects is the definition of an entry.
func selects(e Entry, pod Pod) bool {
	selector, err := labels.Parse(e.PodSelector)
	return err == nil && e.PodType == pod.Type && pod.Priority <= e.PodPriority && selector.Matches(labels.Set(pod.Labels))
}

func selectedBy(entries []Entry, pod Pod) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool { return selects(e, pod) })
}

func name(e Entry) string { return fmt.Sprintf("%s %d %q", e.PodType, e.PodPriority, e.PodSelector) }

func drawPlan(t *rapid.T) Plan {
	p, err := New(entriesGen.Draw(t, "entries"), includedGen.Draw(t, "include"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOrderIsTotalAndIndependentOfTheInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries, include := entriesGen.Draw(t, "entries"), includedGen.Draw(t, "include")
		p, err := New(entries, include)
		if err != nil {
			t.Fatal(err)
		}
		permuted, err := New(rapid.Permutation(entries).Draw(t, "permuted"), rapid.Permutation(include).Draw(t, "permuted include"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p.Entries(), permuted.Entries()); diff != "" {
			t.Fatalf("another order gives another plan:\n%s", diff)
		}
		again, err := New(p.Entries(), include)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p.Entries(), again.Entries()); diff != "" {
			t.Fatalf("the entries of a plan give another plan:\n%s", diff)
		}
		for i, a := range p.tiers {
			for j, b := range p.tiers {
				if got := compare(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
					t.Fatalf("compare(%s, %s) is %d for tiers %d and %d", name(a.Entry), name(b.Entry), got, i, j)
				}
			}
		}
	})
}

func TestPlanHasTheGivenAndTheStandardEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries, include := entriesGen.Draw(t, "entries"), includedGen.Draw(t, "include")
		p, err := New(entries, include)
		if err != nil {
			t.Fatal(err)
		}
		want := map[Entry]bool{}
		for _, e := range entries {
			want[canonical(e)] = true
		}
		for _, podType := range include {
			for _, priority := range []int32{1000000000, 2000000000, 2000001000, 2147483647} {
				want[Entry{PodType: podType, PodPriority: priority}] = true
			}
		}
		if p.Len() != len(want) {
			t.Fatalf("%d tiers, want %d", p.Len(), len(want))
		}
		for _, e := range p.Entries() {
			if !want[e] {
				t.Fatalf("%s was not asked for", name(e))
			}
		}
	})
}

func TestRepeatedEntryIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.SliceOfNDistinct(entryGen, 1, 12, canonical).Draw(t, "entries")
		repeated := canonical(rapid.SampledFrom(entries).Draw(t, "repeated"))
		if _, err := New(rapid.Permutation(append(entries, repeated)).Draw(t, "all"), nil); err == nil {
			t.Fatalf("%s was accepted twice", name(repeated))
		}
	})
}

func TestSelectedPodBelongsToExactlyOneTier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, pod := drawPlan(t), podGen.Draw(t, "pod")
		tier, ok := p.TierOf(pod)
		if ok != selectedBy(p.Entries(), pod) {
			t.Fatalf("in a tier: %t, which is not what the entries say", ok)
		}
		if !ok {
			return
		}
		if !selects(p.Entry(tier), pod) {
			t.Fatalf("tier %d does not select the pod", tier)
		}
		if selectedBy(p.Entries()[:tier], pod) {
			t.Fatalf("a tier before %d selects the pod as well", tier)
		}
	})
}

func TestTargetsAreTheTiersReachedAndOnlyGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, pod := drawPlan(t), podGen.Draw(t, "pod")
		own, ok := p.TierOf(pod)
		was := false
		for tier := -1; tier <= p.Len(); tier++ {
			is := selectedBy(p.Targets(tier), pod)
			if was && !is {
				t.Fatalf("a target at tier %d and no more at tier %d", tier-1, tier)
			}
			if want := ok && own <= tier; is != want {
				t.Fatalf("target at tier %d: %t, but the pod's tier is %d, %t", tier, is, own, ok)
			}
			was = is
		}
	})
}

func TestTargetsNameEachSelectorOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		for tier := range p.Len() {
			seen := map[Entry]bool{}
			for _, e := range p.Targets(tier) {
				e.PodPriority = 0
				if seen[e] {
					t.Fatalf("tier %d has two targets for %s", tier, name(e))
				}
				seen[e] = true
			}
		}
	})
}

func TestNextNeverGoesBackNorPastPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		reached := 0
		for range rapid.IntRange(1, 10).Draw(t, "observations") {
			remaining := make([]int, p.Len())
			for _, pod := range rapid.SliceOfN(podGen, 0, 4).Draw(t, "pods") {
				if tier, ok := p.TierOf(pod); ok {
					remaining[tier]++
				}
			}
			next := p.Next(reached, remaining)
			if next < reached || next > p.Len() {
				t.Fatalf("from tier %d to %d of %d", reached, next, p.Len())
			}
			left := func(upTo int) bool { return slices.Max(append(remaining[:upTo:upTo], 0)) > 0 }
			if next > reached && left(next) {
				t.Fatalf("from tier %d to %d with pods left before: %v", reached, next, remaining)
			}
			if next < p.Len() && !left(next+1) {
				t.Fatalf("waits in tier %d for no pod: %v", next, remaining)
			}
			if again := p.Next(next, remaining); again != next {
				t.Fatalf("tier %d, then %d of the same pods", next, again)
			}
			reached = next
		}
	})
}
