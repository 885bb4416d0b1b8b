package scheduler

import (
	"slices"
	"strings"
	"testing"

	"drydock.dev/drydock/activities/cluster"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

func holders(ids ...string) []api.Holder {
	var all []api.Holder
	for _, id := range ids {
		node, _, _ := strings.Cut(id, "/")
		all = append(all, api.Holder{Grant: schedule.Grant{RequestID: id, Node: node, Requestor: "ops"}, RunID: "run-" + node})
	}
	return all
}

func TestAWatchThatSeesMoreIsGoodEnough(t *testing.T) {
	w := &watcher{scheduler: &scheduler{cluster: "prod"}}
	watch := func(digest string, ids ...string) cluster.WatchInput {
		return w.wanted(nil, digest, holders(ids...), nil)
	}
	have := watch("d", "a/1", "b/1", "c/1")
	for name, c := range map[string]struct {
		want   cluster.WatchInput
		covers bool
	}{
		"the same":        {watch("d", "a/1", "b/1", "c/1"), true},
		"fewer":           {watch("d", "a/1", "c/1"), true},
		"nothing waits":   {watch("", "b/1"), true},
		"another cluster": {watch("e", "a/1"), false},
		"another holder":  {watch("d", "a/1", "d/1"), false},
		"another order":   {watch("d", "b/1", "a/1"), false},
	} {
		if got := covers(have, c.want); got != c.covers {
			t.Errorf("%s: covers is %v", name, got)
		}
	}
	if id := have.Holders[0].WorkflowID; id != api.MaintenanceID("prod", "a", "ops") {
		t.Errorf("it watches %s", id)
	}
}

func TestAWatchGetsWhatIsKnownOfMarks(t *testing.T) {
	w := &watcher{scheduler: &scheduler{}, resting: map[string]bool{}, marked: map[string]bool{}}
	w.noteMarks([]cluster.WatchedHolder{{RequestID: "a/1"}, {RequestID: "b/1"}, {RequestID: "c/1"}},
		cluster.WatchReport{Marked: api.List[string]{"a/1"}, Missing: api.List[string]{"b/1"}})
	w.resting["d/1"] = true
	want := w.wanted(nil, "", holders("a/1", "b/1", "c/1", "d/1"), nil)
	if !slices.Equal(want.Marked, api.List[string]{"a/1"}) || !slices.Equal(want.Missing, api.List[string]{"b/1"}) || len(want.Holders) != 3 ||
		len(want.Known) != 1 || want.Known[0].Node != "d" {
		t.Errorf("%+v", want)
	}
	w.noteMarks(want.Holders, cluster.WatchReport{})
	w.assumeMarked("c/1")
	w.forget("c/1")
	if len(w.marked) > 0 {
		t.Errorf("marks %v", w.marked)
	}
}

func TestReclaimedHoldersAreLeftOut(t *testing.T) {
	r := &reclaimer{reclaiming: map[string]bool{"b/1": true}}
	rest, ending := r.split(holders("a/1", "b/1", "c/1"))
	if len(rest) != 2 || rest[1].RequestID != "c/1" || len(ending) != 1 || ending[0].Node != "b" {
		t.Errorf("rest %+v, ending %+v", rest, ending)
	}
}
