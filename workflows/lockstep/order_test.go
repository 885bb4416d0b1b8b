package lockstep

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"drydock.dev/drydock/api"
)

// outcomeOf is what plans that overlap in a chain come to, whatever the order of what is said and how long drains take.
func outcomeOf(t *testing.T, seed uint64, continueAfter int) (outcome []string, runs int) {
	s := newSite(t)
	s.continueAfter = continueAfter
	random := rand.New(rand.NewPCG(seed, 1))
	for i := range 6 {
		s.takes[fmt.Sprintf("n%d", i)] = time.Duration(1+random.IntN(60)) * time.Second
	}
	tiers := [][]int32{{10, 20, 30}, {15, 30}, {5, 20, 40}}
	var plans []*planned
	for i := range 3 {
		name := fmt.Sprintf("p%d", i)
		p := s.plan(name, time.Duration(i)*time.Second, tiersOf(tiers[i]...), fmt.Sprintf("n%d", 2*i), fmt.Sprintf("n%d", 2*i+1), fmt.Sprintf("n%d", (2*i+2)%6))
		when := time.Duration(10+random.IntN(100)) * time.Second
		if random.IntN(2) == 0 {
			p.says(when, api.StageCordon)
		}
		p.says(when+time.Duration(random.IntN(60))*time.Second, api.StageDrain)
		for range random.IntN(4) { // said again, out of date and twice
			in := p.in
			in.Revision = 1 + random.IntN(in.Revision)
			s.at(time.Duration(200+random.IntN(60))*time.Second, func() { s.signal(api.SignalPlanIntent, in) })
		}
		plans = append(plans, p)
	}
	// What maintenances said long ago comes late.
	for range 10 {
		name, when := fmt.Sprintf("n%d", random.IntN(6)), time.Duration(100+random.IntN(300))*time.Second
		s.at(when, func() {
			if m := s.nodes[name]; m != nil && len(m.history) > 0 {
				s.signal(api.SignalNodeProgress, api.NodeProgress{Node: name, RunID: m.run, Phase: api.Ready, Revision: 1, Targets: m.history[0], Drained: true})
			}
		})
	}
	s.at(19*time.Minute, func() {
		for _, name := range sortedKeys(s.nodes) {
			m := s.nodes[name]
			outcome = append(outcome, fmt.Sprintf("%s %s drained %v last %v plans %v", name, text(m.target.Targets), m.drained, m.target.Last, m.target.Plans))
		}
		for _, name := range sortedKeys(s.received) {
			h := s.received[name]
			outcome = append(outcome, fmt.Sprintf("%s revision %v tier %d", name, h.last.Revision == s.intents[name].Revision, h.last.Tier))
			for _, node := range sortedKeys(h.nodes) {
				n := h.nodes[node]
				outcome = append(outcome, fmt.Sprintf("%s %s %s %s %v %v", name, node, n.Phase, n.Message, n.Drained, n.Left))
			}
		}
	})
	for i, p := range plans {
		p.says(20*time.Minute+time.Duration(i)*time.Minute, api.StageComplete)
	}
	s.run(time.Hour)
	for _, name := range sortedKeys(s.nodes) {
		outcome = append(outcome, fmt.Sprintf("%s over %v", name, s.nodes[name].over))
	}
	for _, name := range sortedKeys(s.received) {
		outcome = append(outcome, fmt.Sprintf("%s complete %v", name, s.received[name].complete))
	}
	if s.count("begin") != 6 || !s.ended {
		s.dump()
		t.Errorf("seed %d: %d began, ended %v", seed, s.count("begin"), s.ended)
	}
	return outcome, s.runs
}

// TestTheOrderOfWhatIsSaidDoesNotMatter: the same plans and nodes end the same way.
func TestTheOrderOfWhatIsSaidDoesNotMatter(t *testing.T) {
	want, _ := outcomeOf(t, 0, 0)
	if len(want) < 20 {
		t.Fatalf("outcome %v", want)
	}
	for seed := range uint64(15) {
		if got, _ := outcomeOf(t, seed, 0); !slices.Equal(got, want) {
			t.Fatalf("seed %d: outcome\n%q\nwant\n%q", seed, got, want)
		}
	}
}

// TestContinueAsNewLosesNothing: neither what was received nor what was sent.
func TestContinueAsNewLosesNothing(t *testing.T) {
	for _, after := range []int{1, 2, 3, 5, 7, 11} {
		for seed := range uint64(2) {
			want, _ := outcomeOf(t, seed, 0)
			got, runs := outcomeOf(t, seed, after)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, after %d signals: outcome\n%q\nwant\n%q", seed, after, got, want)
			}
			if runs < 20/after {
				t.Errorf("seed %d, after %d signals: %d runs", seed, after, runs)
			}
		}
	}
}
