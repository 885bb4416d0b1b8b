package k8s_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

// givenBackBy is what a node tells of a release by a maintenance of ops or net.
func givenBackBy(requestor, run string) *k8s.GivenBack {
	id := holder(requestor, true).Holder.WorkflowID
	return &k8s.GivenBack{WorkflowID: id, RunID: run, At: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), By: id, Run: run, Activity: "17"}
}

func releaseTelling(t *testing.T, client k8stest.Fake, requestor string, tells *k8s.GivenBack) {
	t.Helper()
	h := holder(requestor, true).Holder
	if _, err := k8s.Release(t.Context(), client, "n1", k8s.Caller{WorkflowID: h.WorkflowID, RunID: h.RunID}, k8s.Known{GivenBack: tells}); err != nil {
		t.Fatal(err)
	}
}

func TestANodeTellsWhoGaveItBack(t *testing.T) {
	client := k8stest.NewFake(nodeWith(nil))
	hold(t, client, holder("ops", true))
	hold(t, client, holder("net", true))
	releaseTelling(t, client, "ops", givenBackBy("ops", "first")) // net holds it still
	releaseTelling(t, client, "net", givenBackBy("net", "first"))
	if got := k8s.GivenBackOn(get(t, client)); len(got) != 2 || got[0] != *givenBackBy("ops", "first") || got[1] != *givenBackBy("net", "first") {
		t.Fatalf("the node tells of %+v", got)
	}

	var back *k8s.GivenBackError
	again := holder("ops", true)
	again.Holder.RunID = "another"
	again.ChecksReleases = true
	if _, err := k8s.Hold(t.Context(), client, again); !errors.As(err, &back) || !errors.Is(err, k8s.ErrGivenBack) || len(back.Releases) != 1 || back.Releases[0] != *givenBackBy("ops", "first") {
		t.Fatalf("held again: %v", err)
	}
	if node := get(t, client); node.Spec.Unschedulable || node.Annotations[api.HoldersAnnotation] != "" {
		t.Errorf("the node was touched: %+v", node)
	}
	again.ChecksReleases = false
	hold(t, client, again)
	again.ChecksReleases = true
	hold(t, client, again) // it holds the node: what was before does not matter

	elsewhere := holder("net", true)
	elsewhere.Holder.Namespace, elsewhere.ChecksReleases = "another", true
	hold(t, client, elsewhere) // that release is none of its namespace's
}

func TestANodeTellsOfTheLastReleases(t *testing.T) {
	client := k8stest.NewFake(nodeWith(nil))
	for i := range 12 {
		requestor := fmt.Sprintf("team-%d", i%10)
		hold(t, client, holder(requestor, true))
		tells := givenBackBy(requestor, fmt.Sprint(i))
		tells.RunID = holder(requestor, true).Holder.RunID
		releaseTelling(t, client, requestor, tells)
	}
	var runs []string
	for _, g := range k8s.GivenBackOn(get(t, client)) {
		runs = append(runs, g.Run)
	}
	if got := strings.Join(runs, " "); got != "4 5 6 7 8 9 10 11" {
		t.Errorf("it tells of %s: want the last eight, each maintenance once", got)
	}
}

func TestWhatSomebodyWroteTellsOfNoRelease(t *testing.T) {
	for _, text := range []string{"", "nonsense", `{"workflowId":"w"}`, `["w"]`, "[" + strings.Repeat(" ", 1<<20) + "]"} {
		node := nodeWith(nil)
		node.Annotations[api.GivenBackAnnotation] = text
		if got := k8s.GivenBackOn(node); len(got) != 0 {
			t.Errorf("%.20q tells of %+v", text, got)
		}
		client := k8stest.NewFake(node)
		hold(t, client, holder("ops", true))
		releaseTelling(t, client, "ops", givenBackBy("ops", "first"))
		if got := k8s.GivenBackOn(get(t, client)); len(got) != 1 {
			t.Errorf("after %.20q it tells of %+v", text, got)
		}
	}
}
