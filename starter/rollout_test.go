package starter

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func resultsOf(outcomes []outcome) []result {
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
		outcomes := roller{nodes: nodes, parallel: parallel, continueOnError: goOn, abandon: context.Background(),
			work: func(_ context.Context, node string) outcome {
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
					return outcome{Node: node, Result: resultFailed}
				}
				return outcome{Node: node, Result: resultDone}
			}}.run()
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
	got := roller{nodes: []string{"fails", "pending", "third"}, parallel: 2, abandon: context.Background(),
		work: func(abandon context.Context, node string) outcome {
			if node == "fails" {
				<-pending
				return outcome{Result: resultFailed}
			}
			close(pending)
			<-abandon.Done()
			return outcome{Result: resultCancelled, Note: whyAbandoned(abandon)}
		}}.run()
	if diff := cmp.Diff([]result{resultFailed, resultCancelled, resultNotStarted}, resultsOf(got)); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if got[1].Note != "another node failed" || got[2].Note != "another node failed" {
		t.Errorf("notes = %q, %q", got[1].Note, got[2].Note)
	}
}

func TestInterruptedRollerBeginsNothingMore(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	got := roller{nodes: []string{"running", "next"}, parallel: 1, continueOnError: true, abandon: ctx,
		work: func(context.Context, string) outcome {
			cancel(errInterrupted)
			return outcome{Result: resultDone}
		}}.run()
	if diff := cmp.Diff([]result{resultDone, resultNotStarted}, resultsOf(got)); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if got[1].Note != "interrupted" {
		t.Errorf("note = %q", got[1].Note)
	}
}

func TestRolloutCodes(t *testing.T) {
	of := func(results ...result) []outcome {
		outcomes := make([]outcome, len(results))
		for i, r := range results {
			outcomes[i].Result = r
		}
		return outcomes
	}
	for name, c := range map[string]struct {
		outcomes []outcome
		want     int
	}{
		"all done":             {of(resultDone, resultDone, resultSkipped), 0},
		"one failed":           {of(resultDone, resultFailed, resultNotStarted), 1},
		"cancelled":            {of(resultDone, resultCancelled), 3},
		"not started":          {of(resultDone, resultNotStarted), 3},
		"cancelled and failed": {of(resultCancelled, resultFailed), 1},
	} {
		if got := rolloutCode(c.outcomes); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestControlPlaneNodes(t *testing.T) {
	for label, want := range map[string]bool{
		"node-role.kubernetes.io/control-plane": true, "node-role.kubernetes.io/master": true, "node-role.kubernetes.io/worker": false,
	} {
		if got := (node{Labels: map[string]string{label: ""}}).controlPlane(); got != want {
			t.Errorf("%s: %v", label, got)
		}
	}
}
