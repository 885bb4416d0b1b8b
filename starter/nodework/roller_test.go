package nodework

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"drydock/starter/exit"
)

func resultsOf(outcomes []Outcome) []result {
	results := make([]result, len(outcomes))
	for i, o := range outcomes {
		results[i] = o.Result
	}
	return results
}

func TestRollerNeverWorksOnMoreThanItMay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count, parallel := rapid.IntRange(0, 12).Draw(t, "nodes"), rapid.IntRange(1, 5).Draw(t, "parallel")
		failing := rapid.SliceOfN(rapid.Bool(), count, count).Draw(t, "failing")
		goOn := rapid.Bool().Draw(t, "continue on error")
		var mu sync.Mutex
		active, worked := 0, map[string]int{}
		var nodes []string
		for i := range count {
			nodes = append(nodes, fmt.Sprint(i))
		}
		outcomes := Roller{Nodes: nodes, Parallel: parallel, ContinueOnError: goOn, Abandon: context.Background(),
			Work: func(_ context.Context, node string) Outcome {
				mu.Lock()
				active++
				worked[node]++
				if active > parallel {
					t.Errorf("%d nodes at a time", active)
				}
				mu.Unlock()
				time.Sleep(time.Microsecond * 50)
				mu.Lock()
				active--
				mu.Unlock()
				if failing[slices.Index(nodes, node)] {
					return Outcome{Node: node, Result: ResultFailed}
				}
				return Outcome{Node: node, Result: resultDone}
			}}.Run()
		if len(outcomes) != count {
			t.Fatalf("%d outcomes for %d nodes", len(outcomes), count)
		}
		for i, o := range outcomes {
			if o.Node != nodes[i] {
				t.Errorf("outcome %d is of %s", i, o.Node)
			}
			if begun := o.Result != resultNotStarted; begun != (worked[o.Node] == 1) {
				t.Errorf("%s: %s after %d times of work", o.Node, o.Result, worked[o.Node])
			}
			if o.Result == resultNotStarted && (goOn || !slices.Contains(failing, true)) {
				t.Errorf("%s was not started though nothing stopped the rollout", o.Node)
			}
		}
		// With one at a time, nothing is begun after the first failure.
		if first := slices.Index(failing, true); !goOn && parallel == 1 && first >= 0 {
			for _, o := range outcomes[first+1:] {
				if o.Result != resultNotStarted {
					t.Errorf("%s was begun after a failure", o.Node)
				}
			}
		}
	})
}

func TestFirstFailureGivesUpWhatIsNotReady(t *testing.T) {
	pending := make(chan struct{})
	got := Roller{Nodes: []string{"fails", "pending", "third"}, Parallel: 2, Abandon: context.Background(),
		Work: func(abandon context.Context, node string) Outcome {
			if node == "fails" {
				<-pending
				return Outcome{Result: ResultFailed}
			}
			close(pending)
			<-abandon.Done()
			return Outcome{Result: resultCancelled, Note: whyAbandoned(abandon)}
		}}.Run()
	if diff := cmp.Diff([]result{ResultFailed, resultCancelled, resultNotStarted}, resultsOf(got)); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if got[1].Note != "another node failed" || got[2].Note != "another node failed" {
		t.Errorf("notes = %q, %q", got[1].Note, got[2].Note)
	}
}

func TestInterruptedRollerBeginsNothingMore(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	got := Roller{Nodes: []string{"running", "next"}, Parallel: 1, ContinueOnError: true, Abandon: ctx,
		Work: func(context.Context, string) Outcome {
			cancel(exit.ErrInterrupted)
			return Outcome{Result: resultDone}
		}}.Run()
	if diff := cmp.Diff([]result{resultDone, resultNotStarted}, resultsOf(got)); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if got[1].Note != "interrupted" {
		t.Errorf("note = %q", got[1].Note)
	}
}

func TestRolloutCodes(t *testing.T) {
	of := func(results ...result) []Outcome {
		outcomes := make([]Outcome, len(results))
		for i, r := range results {
			outcomes[i].Result = r
		}
		return outcomes
	}
	for name, c := range map[string]struct {
		outcomes []Outcome
		want     int
	}{
		"all done":             {of(resultDone, resultDone, ResultSkipped), 0},
		"one failed":           {of(resultDone, ResultFailed, resultNotStarted), 1},
		"cancelled":            {of(resultDone, resultCancelled), 3},
		"not started":          {of(resultDone, resultNotStarted), 3},
		"cancelled and failed": {of(resultCancelled, ResultFailed), 1},
	} {
		if got := RolloutCode(c.outcomes); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
