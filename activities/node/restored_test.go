package node

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

var kept = execution.Namespace{ID: "home", Retention: 72 * time.Hour}

// givenBack has n1 tell that a run of the maintenance gave it back, by the activity of that ID.
func givenBack(t *testing.T, run, activity string, ago time.Duration) *k8stest.Server {
	t.Helper()
	text, err := json.Marshal([]k8s.GivenBack{{
		WorkflowID: activitytest.WorkflowID, RunID: run, Namespace: kept.ID, At: time.Now().Add(-ago), Reason: "MaintenanceCompleted",
		KeptSeconds: int64(kept.Retention / time.Second), By: activitytest.WorkflowID, Run: run, Activity: activity,
	}})
	if err != nil {
		t.Fatal(err)
	}
	n := activitytest.Node("n1")
	n.Annotations[api.GivenBackAnnotation] = string(text)
	return k8stest.New(n)
}

// A Temporal server that is restored to an earlier state does not know what was given back since, and would do it again.
func TestAMaintenanceOfARestoredTemporalHoldsNothing(t *testing.T) {
	const earlier = "0190b1c0-0000-7000-8000-00000000000b"
	released := did(t, 17, "ReleaseNode", Released{})
	for name, c := range map[string]struct {
		run, activity string
		runs          map[string][]*historypb.HistoryEvent
		ago           time.Duration
		refused       bool
	}{
		"an attempt before gave it back":        {run: activitytest.RunID, runs: map[string][]*historypb.HistoryEvent{activitytest.RunID: after(began(nil), released)}},
		"a maintenance before gave it back":     {run: earlier, runs: map[string][]*historypb.HistoryEvent{earlier: after(began(nil), released)}},
		"this run does not know that it did":    {run: activitytest.RunID, runs: map[string][]*historypb.HistoryEvent{activitytest.RunID: after(began(nil))}, refused: true},
		"nobody knows who did":                  {run: earlier, refused: true},
		"nobody need know any more":             {run: earlier, ago: kept.Retention + time.Hour},
		"another activity has that number":      {run: activitytest.RunID, runs: map[string][]*historypb.HistoryEvent{activitytest.RunID: after(began(nil), did(t, 17, "HoldNode", nil))}, refused: true},
		"it is said of a time to come":          {run: earlier, ago: -48 * time.Hour},
		"somebody wrote what names no activity": {run: activitytest.RunID, activity: "99", runs: map[string][]*historypb.HistoryEvent{activitytest.RunID: after(began(nil), released)}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := givenBack(t, c.run, cmp.Or(c.activity, "17"), cmp.Or(c.ago, time.Hour))
			n := &Activities{Client: s.Client(t), Temporal: telling(activitytest.Granting(), c.runs), Home: kept}
			_, checked := activitytest.Call(t, func(ctx context.Context, in HoldInput) (bool, error) { return true, n.CheckReleases(ctx, in) }, holdN1(true))
			if refused := activitytest.ErrorType(checked) == api.ErrorRestored; refused != c.refused || !refused && checked != nil || marked(s) {
				t.Fatalf("checked: %v", checked)
			}
			_, err := activitytest.Call(t, n.HoldNode, holdN1(true))
			if refused := activitytest.ErrorType(err) == api.ErrorRestored; refused != c.refused || !refused && err != nil {
				t.Fatalf("held: %v", err)
			}
			if marked(s) == c.refused || s.Node("n1").Spec.Unschedulable == c.refused {
				t.Errorf("the node: %+v", s.Node("n1"))
			}
			if c.refused && (!strings.Contains(err.Error(), "drydock cancel n1") || !strings.Contains(err.Error(), "kubectl annotate node n1 "+api.GivenBackAnnotation+"-")) {
				t.Errorf("it says nothing of what to do: %v", err)
			}
		})
	}
}

// An earlier release counts also where a later one is known: as that of a doctor, after the database was restored.
func TestEachReleaseThatANodeRecordsIsChecked(t *testing.T) {
	const lost, known = "0190b1c0-0000-7000-8000-00000000000c", "0190b1c0-0000-7000-8000-00000000000d"
	n := activitytest.Node("n1")
	var all []k8s.GivenBack
	for _, run := range []string{lost, known} {
		all = append(all, k8s.GivenBack{
			WorkflowID: activitytest.WorkflowID, RunID: run, Namespace: kept.ID, At: time.Now().Add(-time.Hour), KeptSeconds: 1 << 40,
			By: activitytest.WorkflowID, Run: run, Activity: "17",
		})
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	n.Annotations[api.GivenBackAnnotation] = string(text)
	s := k8stest.New(n)
	runs := map[string][]*historypb.HistoryEvent{known: after(began(nil), did(t, 17, "ReleaseNode", Released{}))}
	a := &Activities{Client: s.Client(t), Temporal: telling(activitytest.Granting(), runs), Home: kept}
	if _, err := activitytest.Call(t, a.HoldNode, holdN1(true)); activitytest.ErrorType(err) != api.ErrorRestored || marked(s) {
		t.Errorf("%v; marked %t", err, marked(s))
	}
}

func TestAReleaseIsKnownForAsLongAsItWasKept(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		ago, then, now time.Duration
		must           bool
	}{
		{2 * day, 3 * day, 3 * day, true},
		{2 * day, 3 * day, 30 * day, true},
		{10 * day, 3 * day, 30 * day, false},
		{2 * day, 30 * day, day, false},
		{-time.Minute, 3 * day, 3 * day, true},
		{-day, 3 * day, 3 * day, false},
	} {
		given := k8s.GivenBack{At: time.Now().Add(-c.ago), KeptSeconds: int64(c.then / time.Second)}
		if must := (execution.Namespace{Retention: c.now}).MustKnow(given); must != c.must {
			t.Errorf("a release %s ago, kept for %s then and %s now: known %t, want %t", c.ago, c.then, c.now, must, c.must)
		}
	}
}

func TestAServerThatIsAwayHasNotForgotten(t *testing.T) {
	s := givenBack(t, activitytest.RunID, "17", time.Hour)
	temporal := activitytest.Granting()
	temporal.On("GetWorkflowHistory", mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).
		Return(&history{err: serviceerror.NewUnavailable("away")})
	n := &Activities{Client: s.Client(t), Temporal: temporal, Home: kept}
	if _, err := activitytest.Call(t, n.HoldNode, holdN1(true)); err == nil || activitytest.ErrorType(err) != "" || marked(s) {
		t.Errorf("error %v, want one worth a retry; marked %t", err, marked(s))
	}
}

func TestANodeRecordsItsRelease(t *testing.T) {
	s := k8stest.New(activitytest.HeldNode())
	n := &Activities{Client: s.Client(t), Temporal: activitytest.Granting(), Home: kept}
	if _, err := activitytest.Call(t, n.ReleaseNode, ReleaseInput{Node: "n1", RunID: activitytest.RunID}); err != nil {
		t.Fatal(err)
	}
	got := k8s.GivenBackOn(s.Node("n1"))
	if len(got) != 1 || got[0].WorkflowID != activitytest.WorkflowID || got[0].By != activitytest.WorkflowID || got[0].Run == "" || got[0].Activity == "" ||
		got[0].Namespace != kept.ID || got[0].RunID != activitytest.RunID || got[0].KeptSeconds != 72*3600 || time.Since(got[0].At) > time.Minute {
		t.Errorf("it tells of %+v", got)
	}
}
