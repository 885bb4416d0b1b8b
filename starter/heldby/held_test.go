package heldby

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	rules "drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

// evaluation is an evaluator with an answer.
type evaluation struct {
	none   bool
	answer api.ProfileReport
	err    error
	asked  []api.ProfileReportInput
}

func (e *evaluation) RunsProfiles(context.Context) (bool, error) { return !e.none, nil }

func (e *evaluation) ProfileReport(_ context.Context, in api.ProfileReportInput, _ time.Duration) (api.ProfileReport, error) {
	e.asked = append(e.asked, in)
	return e.answer, e.err
}

func holds(node, profile string) api.ProfileNode {
	return api.ProfileNode{Node: node, Profiles: []api.NodeProfile{{Profile: profile, State: state.Maintenance, Since: startertest.Before(40 * time.Minute)}}}
}

func TestNodesThatProfilesHoldAreShown(t *testing.T) {
	e := &evaluation{answer: api.ProfileReport{Nodes: []api.ProfileNode{holds("worker-11", "flatcar"), holds("worker-12", "os")}, Next: "worker-12"}}
	begun := []api.MaintenanceSummary{{Node: "worker-12", Requestor: "profile-os"}, {Node: "worker-11", Requestor: "ops"}}
	held, err := heldByProfiles(t.Context(), e, "", begun)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	terminal.Show(&out, views.HeldByProfiles(held, views.At(startertest.Noon)))
	const want = `In maintenance by a profile:
  NODE       PROFILE  SINCE  WHAT
  worker-11  flatcar  40m
  and more: drydock profile list --state in-maintenance
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	if in := e.asked[0]; in.State != state.Maintenance || in.Limit != shown {
		t.Errorf("asked for %+v", in)
	}
}

func TestTheProfileThatHoldsANodeIsShown(t *testing.T) {
	e := &evaluation{answer: api.ProfileReport{Explanation: &api.ProfileExplanation{Evaluation: rules.Evaluation{Node: "worker-11", Profiles: []rules.Evaluated{
		{Profile: "os", State: state.Operational}, {Profile: "flatcar", State: state.Maintenance, Since: startertest.Before(40 * time.Minute)},
	}}}}}
	held, err := heldByProfiles(t.Context(), e, "worker-11", nil)
	if err != nil || len(held.Nodes) != 1 || e.asked[0] != (api.ProfileReportInput{Node: "worker-11"}) {
		t.Fatalf("%+v, %v, asked for %+v", held, err, e.asked)
	}
	var out strings.Builder
	terminal.Show(&out, views.ProfileHolds(held.Nodes[0], views.At(startertest.Noon)))
	const want = `Node:     worker-11
Profile:  flatcar, in-maintenance since 11:20:00 CEST, 40m ago
Next:     drydock profile explain worker-11 | drydock history worker-11
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestNoWorkerIsAskedWhereThereAreNoProfiles(t *testing.T) {
	e := &evaluation{none: true}
	if held, err := heldByProfiles(t.Context(), e, "", nil); err != nil || len(held.Nodes) > 0 || len(e.asked) > 0 {
		t.Errorf("%+v, %v, asked for %+v", held, err, e.asked)
	}
	e = &evaluation{err: errors.New("no worker")}
	if held, err := heldByProfiles(t.Context(), e, "", nil); err == nil || len(held.Nodes) > 0 {
		t.Errorf("%+v, %v", held, err)
	}
}

func TestWhyNoMaintenanceOfANodeRunsIsSaid(t *testing.T) {
	none := &client.NotFoundError{Node: "worker-11"}
	held := api.ProfileReport{Explanation: &api.ProfileExplanation{Evaluation: rules.Evaluation{Node: "worker-11", Profiles: []rules.Evaluated{
		{Profile: "flatcar", State: state.Maintenance, Since: startertest.Before(40 * time.Minute)},
	}}}}
	for name, c := range map[string]struct {
		of   *evaluation
		err  error
		want string
	}{
		"a profile holds it": {&evaluation{answer: held}, none,
			"no maintenance of worker-11 is running; the node is in maintenance by profile flatcar\n\"drydock profile explain worker-11\" says what moves it on."},
		"the last one too": {&evaluation{answer: held}, exit.Hint(fmt.Errorf("%w: that of ops ended 2m ago", none), "See those that ended."),
			"no maintenance of worker-11 is running: that of ops ended 2m ago; the node is in maintenance by profile flatcar\n" +
				"\"drydock profile explain worker-11\" says what moves it on."},
		"there is no node": {&evaluation{err: &client.FailedError{Kind: api.ErrorNodeNotFound}}, none,
			"there is no node worker-11: no maintenance of worker-11 is running"},
		"nothing is known":   {&evaluation{err: errors.New("no worker")}, none, none.Error()},
		"there are no such":  {&evaluation{none: true}, none, none.Error()},
		"it is another fact": {&evaluation{answer: held}, errors.New("no route"), "no route"},
	} {
		got := WhyNone(t.Context(), c.of, "drydock", c.err)
		if got.Error() != c.want || !errors.Is(got, c.err) {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
		if len(c.of.asked) > 1 {
			t.Errorf("%s: it was asked %d times", name, len(c.of.asked))
		}
	}
}

// TestNodesSayThatProfilesHoldThem: no worker is asked for that.
func TestNodesSayThatProfilesHoldThem(t *testing.T) {
	node := func(name, label, data string) invocation.Node {
		return invocation.Node{Name: name, Labels: map[string]string{state.ProfileLabel: label}, Annotations: map[string]string{state.DataAnnotation: data}}
	}
	const of = `{"Profiles":{"flatcar":{"Transition":"2026-07-01T08:00:00Z","Current":"%s","Previous":"operational"}},"Notifications":{}}`
	nodes := []invocation.Node{
		node("held", "os--flatcar", fmt.Sprintf(of, state.Maintenance)),
		node("required", "flatcar", fmt.Sprintf(of, state.Required)),
		node("no longer labelled", "os", fmt.Sprintf(of, state.Maintenance)),
		node("unreadable", "flatcar", "{"),
		{Name: "without profiles"},
	}
	for name, c := range map[string]struct {
		nodes []invocation.Node
		of    *evaluation
		want  string
	}{
		"one is held":         {nodes, &evaluation{}, "held flatcar in-maintenance"},
		"none is held":        {nodes[1:], &evaluation{}, ""},
		"nodes are not asked": {nil, &evaluation{}, ""},
		"SAP's own writes it": {nodes, &evaluation{none: true}, ""},
	} {
		got := ""
		for _, n := range Of(t.Context(), c.of, c.nodes) {
			got += fmt.Sprint(n.Node, " ", n.Profiles[0].Profile, " ", n.State)
		}
		if got != c.want || len(c.of.asked) > 0 {
			t.Errorf("%s: %q, want %q; a worker was asked %v", name, got, c.want, c.of.asked)
		}
	}
}
