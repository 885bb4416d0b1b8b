package lockstep

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	activity "drydock.dev/drydock/activities/lockstep"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/workflows/controller"
	"drydock.dev/drydock/workflows/controller/controllertest"
)

type option func(l *lockstep)

// given is the state of a workflow that knows what runs, and decided for the last time a minute ago.
func given(options ...option) *lockstep {
	l := &lockstep{Known: true, Decided: now.Add(-time.Minute)}
	for _, o := range options {
		o(l)
	}
	return l
}

func intentOf(name string, stage api.Stage, nodes ...string) api.PlanIntent {
	return api.PlanIntent{
		Name: name, RunID: runOf("plan " + name), CreatedAt: now.Add(-time.Hour), Revision: 1, Stage: stage, Tiers: tiersOf(10, 20), Nodes: nodes,
	}
}

// accepted is a plan whose intent counts.
func accepted(name string, stage api.Stage, nodes ...string) option {
	return func(l *lockstep) { l.settle(intentOf(name, stage, nodes...), now.Add(-time.Minute)) }
}

// says is a signal of a plan.
func says(name string, stage api.Stage, nodes ...string) option {
	return func(l *lockstep) { planIntent{intentOf(name, stage, nodes...)}.Apply(l, now) }
}

// stands is a node with its maintenance, as changed.
func stands(name string, stand stand, changes ...func(*node)) option {
	return func(l *lockstep) {
		l.Inventory.regroup()
		n := l.Inventory.byName[name]
		if n == nil {
			n = l.Inventory.add(name)
		}
		n.Stand, n.Run, n.progress.Phase = stand, runOf(name), api.Draining
		l.Inventory.ungrouped = true
		for _, change := range changes {
			change(n)
		}
	}
}

func drained(n *node)   { n.target.Revision, n.target.Targets, n.Drained = 1, tiersOf(10), true }
func unsent(n *node)    { n.target.Revision, n.target.Targets, n.Unsent = 1, tiersOf(10), true }
func postponed(n *node) { n.Tries, n.RetryAt = 1, now.Add(20*time.Second).Unix() }

// emptied is a drain that has told that the node is empty, to the last of its targets, a while ago.
func emptied(ago time.Duration) func(*node) {
	return func(n *node) {
		drained(n)
		n.target.Last, n.DrainedAt = true, now.Add(-ago).Unix()
	}
}

func othersSettings(n *node) { n.made, n.of = "another plan's", nil }

func isReady(n *node) { n.progress.Phase = api.Ready }
func endSent(n *node) { n.Unsent = false }

// decidedBefore is that plans and nodes have not changed since the last decision, and plans received.
func decidedBefore(l *lockstep) {
	for l.Decide(controller.At(now.Add(-30 * time.Second))).More {
	}
	for _, p := range l.Inventory.plans {
		p.take(l.Inventory.part(p, l.Inventory.headerOf(p)), now.Add(-time.Minute))
	}
	for _, n := range l.Inventory.nodes {
		n.Unsent = false
	}
}

func silent(name string) option {
	return func(l *lockstep) { l.Inventory.setSilent(api.HeldPlan{Name: name, RunID: runOf("plan " + name)}) }
}
func patient(l *lockstep)    { l.Until = now.Add(10 * time.Second) }
func justNow(l *lockstep)    { l.Decided = now.Add(-400 * time.Millisecond) }
func unknown(l *lockstep)    { l.Known = false }
func wasReset(l *lockstep)   { l.Reset(now) }
func cancelled(l *lockstep)  { l.Cancel(now) }
func refused(l *lockstep)    { l.refuse(intentOf("a", api.StageDrain), errors.New("why")) }
func gone(l *lockstep)       { l.Inventory.plans[0].Missing = true }
func theLastOne(l *lockstep) { l.Inventory.ready = true }

func TestLockstepDecides(t *testing.T) {
	drain, cordon, complete := api.StageDrain, api.StageCordon, api.StageComplete
	begin0, steer0, progress := keyOf(beginNodes, "0"), keyOf(steerNodes, "0"), keyOf(sendProgress, "a")
	for name, c := range map[string]struct {
		options  []option
		underWay []controller.Key
		want     string
	}{
		"it begins":                      {[]option{unknown}, nil, "find"},
		"nothing is left":                {nil, nil, "end <nil>"},
		"an intent comes first":          {[]option{unknown, says("a", drain, "n1")}, nil, "check[a], find"},
		"its plan has to run":            {[]option{says("a", drain, "n1")}, nil, "check[a]"},
		"an intent counts":               {[]option{accepted("a", drain, "n1", "n2")}, nil, "begin/0[n1 n2], progress/a[n1 n2], watch"},
		"its nodes are being begun":      {[]option{accepted("a", drain, "n1")}, []controller.Key{begin0}, "begin/1[n1], progress/a[n1], watch"},
		"nothing has changed":            {[]option{accepted("a", cordon, "n1"), stands("n1", held), decidedBefore}, nil, "watch"},
		"decided just now":               {[]option{accepted("a", cordon, "n1"), stands("n1", held), decidedBefore, accepted("a2", drain, "n1"), justNow}, nil, "watch, wake 600ms"},
		"but a plan may go on":           {[]option{accepted("a", drain, "n1"), stands("n1", held, drained), justNow, theLastOne}, nil, "steer/0[n1 2], progress/a[n1], watch"},
		"a node has no target":           {[]option{accepted("a", drain, "n1"), stands("n1", held)}, nil, "steer/0[n1 1], progress/a[n1], watch"},
		"its target is being sent":       {[]option{accepted("a", drain, "n1"), stands("n1", held)}, []controller.Key{steer0}, "steer/1[n1 1], progress/a[n1], watch"},
		"it could not be sent":           {[]option{accepted("a", drain, "n1"), stands("n1", held, unsent, postponed)}, nil, "progress/a[n1], watch, wake 20s"},
		"its progress is being sent":     {[]option{accepted("a", drain, "n1"), stands("n1", held)}, []controller.Key{progress}, "steer/0[n1 1], watch"},
		"two plans have progress":        {[]option{accepted("a", cordon, "n1"), accepted("b", cordon, "n1"), stands("n1", held)}, nil, "steer/0[n1 1], progress/a[n1], progress/b[n1], watch"},
		"what runs was found":            {[]option{stands("n1", asked)}, nil, "steer/0[n1 ask], watch"},
		"it does not answer":             {[]option{stands("n1", asked, postponed)}, nil, "end/0[n1], watch"},
		"which a plan may want":          {[]option{stands("n1", asked, postponed), silent("b")}, nil, "ask/b, watch, wake 20s"},
		"others wait for those":          {[]option{accepted("a", drain, "n1"), stands("n1", asked), patient}, nil, "steer/0[n1 ask], watch, wake 10s"},
		"but not for long":               {[]option{accepted("a", drain, "n1"), stands("n1", asked)}, nil, "steer/0[n1 ask], progress/a[n1], watch"},
		"no plan wants a node":           {[]option{stands("n1", held)}, nil, "end/0[n1], watch"},
		"which is about to be ready":     {[]option{stands("n1", held, emptied(20*time.Second))}, nil, "watch, wake 40s"},
		"and is not":                     {[]option{stands("n1", held, emptied(time.Minute))}, nil, "end/0[n1], watch"},
		"or is":                          {[]option{stands("n1", held, emptied(0), isReady)}, nil, "end/0[n1], watch"},
		"which another plan wants":       {[]option{accepted("a", drain, "n1"), stands("n1", held, emptied(20*time.Second), othersSettings), decidedBefore}, nil, "watch, wake 40s"},
		"with other settings":            {[]option{accepted("a", drain, "n1"), stands("n1", held, emptied(time.Minute), othersSettings)}, nil, "end/0[n1], progress/a[n1], watch"},
		"unless a plan that comes does":  {[]option{stands("n1", held), says("a", drain, "n1")}, nil, "check[a], watch"},
		"its end was sent":               {[]option{stands("n1", ending, endSent)}, nil, "watch"},
		"a plan is complete":             {[]option{accepted("a", complete, "n1")}, nil, "progress/a[n1 complete], watch"},
		"once its nodes are given back":  {[]option{accepted("a", drain, "n1"), stands("n1", held), accepted("b", drain, "n2"), option(func(l *lockstep) { l.settle(completeOf("a"), now) })}, nil, "begin/0[n2], end/0[n1], progress/a[n1], progress/b[n2], watch"},
		"a plan cannot be signalled":     {[]option{accepted("a", cordon, "n1"), stands("n1", held), decidedBefore, gone}, nil, "check[a], watch"},
		"an intent is refused":           {[]option{refused}, nil, "refuse/a"},
		"a reset finds out all anew":     {[]option{accepted("a", drain, "n1"), stands("n1", held), wasReset}, nil, "find"},
		"and asks plans and nodes":       {[]option{accepted("a", drain, "n1"), stands("n1", held), wasReset, func(l *lockstep) { l.Known = true }, patient}, nil, "ask/a, steer/0[n1 ask], watch, wake 10s"},
		"a cancellation leaves all be":   {[]option{accepted("a", drain, "n1"), stands("n1", held), cancelled}, nil, "end canceled"},
		"also where it knows of nothing": {[]option{unknown, cancelled}, nil, "end canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			l := given(c.options...)
			turn := controller.At(now, c.underWay...)
			for range 3 { // a decision is taken in turns
				l.Decide(turn)
			}
			d := controllertest.Again(t, l, turn, show)
			if got := show(d); got != c.want || d.More {
				t.Errorf("%q, want %q", got, c.want)
			}
			next := restored(t, handedOver(t, l))
			turn = controller.At(now.Add(2*time.Second), c.underWay...)
			for range 3 {
				next.Decide(turn)
				l.Decide(turn)
			}
			if got, want := show(next.Decide(turn)), show(l.Decide(turn)); got != want {
				t.Errorf("the next run decides %q, want %q", got, want)
			}
		})
	}
}

func handedOver(t *testing.T, l *lockstep) []byte {
	t.Helper()
	packed, err := api.Pack(l)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func completeOf(name string) api.PlanIntent {
	in := intentOf(name, api.StageComplete)
	in.Revision = 2
	return in
}

// show is a decision in words.
func show(d controller.Decision) string {
	var all []string
	name := func(k controller.Key) string { return strings.TrimSuffix(k.Kind+"/"+k.Of, "/") }
	for _, x := range d.Effects {
		all = append(all, name(controller.Came(x, nil).Key)+contents(x))
	}
	for _, w := range d.Watches {
		all = append(all, name(w.Key))
	}
	if !d.Wake.IsZero() {
		all = append(all, fmt.Sprint("wake ", d.Wake.Sub(now)))
	}
	if d.End != nil {
		all = append(all, fmt.Sprint("end ", d.End.Err))
	}
	return strings.Join(all, ", ")
}

func contents(x controller.Effect) string {
	var all []string
	switch x := x.(type) {
	case controller.Signal:
		p := x.Payload.(api.PlanProgress)
		for _, n := range p.Nodes {
			all = append(all, n.Node)
		}
		if p.Complete {
			all = append(all, "complete")
		}
	case controller.Activity:
		switch in := x.Input.(type) {
		case activity.CheckInput:
			for _, p := range in.Plans {
				all = append(all, p.Name)
			}
		case activity.Batch:
			for _, r := range in.Requests {
				switch all = append(all, r.Node); {
				case r.Target == nil:
				case r.Target.Report:
					all = append(all, "ask")
				default:
					all = append(all, fmt.Sprint(r.Target.Revision))
				}
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "[" + strings.Join(all, " ") + "]"
}

// effect is the one of a kind that is decided on.
func effect(t *testing.T, l *lockstep, kind string) controller.Effect {
	t.Helper()
	_, d := settled(l, now)
	i := slices.IndexFunc(d.Effects, func(x controller.Effect) bool { return controller.Came(x, nil).Key.Kind == kind })
	if i < 0 {
		t.Fatalf("no %s: %s", kind, show(d))
	}
	return d.Effects[i]
}

func TestALookUpFromBeforeAResetDoesNotCount(t *testing.T) {
	l := given(unknown)
	o := controller.Came(effect(t, l, findAll), activity.Running{Nodes: []string{"n1"}})
	o.Stale = true
	if l.Outcome(o, now); l.Known {
		t.Error("it counts")
	}
	o.Stale = false
	if l.Outcome(o, now); !l.Known || l.Inventory.byName["n1"].Stand != asked || !l.Until.Equal(now.Add(patience)) {
		t.Errorf("%+v", l)
	}
	l = given(says("a", api.StageDrain, "n1"))
	o = controller.Came(effect(t, l, checkPlans), []api.HeldPlan{})
	o.Stale = true
	if l.Outcome(o, now); len(l.Inventory.waiting) != 1 {
		t.Error("an intent was forgotten")
	}
	o.Stale = false
	if l.Outcome(o, now); len(l.Inventory.waiting) != 0 || len(l.Notes) != 1 {
		t.Errorf("%+v", l.Notes)
	}
}

// What was begun was, whatever has happened since.
func TestAMaintenanceThatWasBegunBeforeAResetIsHeld(t *testing.T) {
	l := given(accepted("a", api.StageDrain, "n1", "n2"))
	begin := effect(t, l, beginNodes)
	l.Reset(now)
	o := controller.Came(begin, []activity.Result{{Node: "n1", RunID: "r1"}, {Node: "n2", Failed: "no such luck"}})
	o.Stale = true
	l.Outcome(o, now)
	if n := l.Inventory.byName["n1"]; n.Stand != held || n.Run != "r1" {
		t.Errorf("%+v", n.nodeState)
	}
	if n := l.Inventory.byName["n2"]; n.Stand != wanted || n.Tries != 1 || len(l.Notes) != 1 {
		t.Errorf("%+v, %+v", n.nodeState, l.Notes)
	}
}

func TestWhatFailsForABatchKeepsNoOtherWaiting(t *testing.T) {
	for _, c := range []struct {
		kind string
		node option
		then string
	}{
		{beginNodes, func(*lockstep) {}, "begin/0[n2], progress/a[n1 n2], watch, wake 30s"},
		{steerNodes, stands("n1", held), "begin/0[n2], progress/a[n1 n2], watch, wake 30s"},
	} {
		l := given(accepted("a", api.StageDrain, "n1"), c.node)
		l.Outcome(controller.Came(effect(t, l, c.kind), errors.New("no such luck")), now)
		in := intentOf("a", api.StageDrain, "n1", "n2")
		in.Revision = 2
		l.settle(in, now)
		l.Decided = time.Time{}
		_, d := settled(l, now)
		if got := show(d); got != c.then || l.Inventory.byName["n1"].Tries != 1 {
			t.Errorf("after a failed %s: %q, want %q", c.kind, got, c.then)
		}
	}
}

func TestTheStateShowsWhatFails(t *testing.T) {
	l := given(accepted("a", api.StageDrain, "n1"))
	l.Fails(keyOf(watchEnds, ""), "watch maintenances and plans", "no such luck", now)
	state, err := l.page(api.LockstepRequest{}, now)
	if err != nil || len(state.Troubles) != 1 || state.Troubles[0].Why != "no such luck" {
		t.Errorf("%+v, %v", state.Troubles, err)
	}
}

// A plan that is terminated while a maintenance is begun for it may leave a node that nobody wants, and that was not begun.
func TestANodeThatWasNotBegunAndNobodyWantsIsForgotten(t *testing.T) {
	l := given(accepted("a", api.StageDrain, "n1"))
	begin := effect(t, l, beginNodes)
	l.Inventory.drop(l.Inventory.planOf(runOf("plan a")))
	if d := l.Decide(controller.At(now.Add(time.Minute), keyOf(beginNodes, "0"))); d.End != nil || len(l.Inventory.nodes) != 1 {
		t.Fatal(show(d))
	}
	l.Outcome(controller.Came(begin, []activity.Result{{Node: "n1", Failed: "no such luck"}}), now)
	_, d := settled(l, now.Add(2*time.Minute))
	if got := show(d); got != "end <nil>" {
		t.Errorf("%q, %d nodes", got, len(l.Inventory.nodes))
	}
}

// What a plan was sent counts once it has arrived, and not where it has to be sent everything since.
func TestAPlanIsSentEverythingAgainAfterASignalThatIsUnderWay(t *testing.T) {
	l := given(accepted("a", api.StageCordon, "n1"), stands("n1", held))
	signal := effect(t, l, sendProgress)
	p := l.Inventory.plans[0]
	in := p.PlanIntent
	l.settle(in, now) // said again: the plan was reset
	turn := controller.At(now.Add(time.Minute), keyOf(sendProgress, "a"))
	for l.Decide(turn).More {
	}
	l.Outcome(controller.Came(signal, nil), now)
	_, d := settled(l, now.Add(time.Minute))
	if got := show(d); !strings.Contains(got, "progress/a[n1]") {
		t.Errorf("%q", got)
	}
	l.Outcome(controller.Came(effect(t, l, sendProgress), nil), now)
	if _, d = settled(l, now.Add(time.Minute)); strings.Contains(show(d), "progress/") || p.All {
		t.Errorf("%q", show(d))
	}
}

func TestAPlanThatCannotBeSignalledIsLookedUp(t *testing.T) {
	l := given(accepted("a", api.StageCordon, "n1"), stands("n1", held))
	o := controller.Came(effect(t, l, sendProgress), nil)
	o.Err = &temporal.UnknownExternalWorkflowExecutionError{}
	l.Outcome(o, now)
	l.Outcome(controller.Came(effect(t, l, checkPlans), []api.HeldPlan{}), now)
	_, d := settled(l, now.Add(time.Minute))
	if got := show(d); got != "end/0[n1], watch" || len(l.Inventory.plans) != 0 {
		t.Errorf("%q", got)
	}
}

// Whom a plan waits for changes with every node: that alone is sent once in half a minute.
func TestWhomAPlanWaitsForIsSentNowAndThen(t *testing.T) {
	l := given(accepted("a", api.StageDrain, "n1"), accepted("b", api.StageDrain, "n1", "n2", "n3"),
		stands("n1", held, drained), stands("n2", held), stands("n3", held), decidedBefore)
	a := l.Inventory.plans[0]
	if a.Header.WaitsFor != "Waiting for nodes n2 (b), n3 (b)." {
		t.Fatalf("plan a waits: %q", a.Header.WaitsFor)
	}
	a.sentAt = now.Add(-10 * time.Second)
	l.Inventory.byName["n2"].Drained, l.Inventory.changed = true, true
	_, d := settled(l, now)
	if got := show(d); got != "progress/b[n2], watch, wake 5s" {
		t.Errorf("%q", got)
	}
	for _, x := range d.Effects {
		l.Outcome(controller.Came(x, nil), now)
	}
	_, d = settled(l, now.Add(20*time.Second))
	if !strings.Contains(show(d), "progress/a") || strings.Contains(show(d), "progress/b") {
		t.Errorf("%q", show(d))
	}
	for _, x := range d.Effects {
		if s, is := x.(controller.Signal); is && (s.Payload.(api.PlanProgress).WaitsFor != "Waiting for node n3 (b)." || contents(x) != "") {
			t.Errorf("%+v", s.Payload)
		}
	}
}

// A plan is sent its nodes in parts: one that changes after its part was sent, and with which nothing else is decided, is sent again.
func TestANodeThatChangesWhileOthersAreSentIsSentAgain(t *testing.T) {
	names := make([]string, maxSent+1)
	for i := range names {
		names[i] = fmt.Sprintf("n%04d", i)
	}
	l := given(accepted("a", api.StageCordon, names...))
	first := effect(t, l, sendProgress)
	l.Outcome(controller.Came(first, nil), now)
	n := l.Inventory.byName[names[0]]
	n.Stand, n.progress.Phase, l.Inventory.changed = held, api.Cordoned, true
	_, d := settled(l, now.Add(time.Minute))
	for range 2 {
		for _, x := range d.Effects {
			if s, is := x.(controller.Signal); is {
				l.Outcome(controller.Came(s, nil), now.Add(time.Minute))
			}
		}
		_, d = settled(l, now.Add(time.Minute))
		if strings.Contains(show(d), "progress/a["+names[0]) {
			return
		}
	}
	t.Errorf("%s is not sent again: %q", names[0], show(d))
}

// Of a plan with thousands of nodes that are found to run nothing is known but their targets.
func TestThousandsOfNodesAreTakenOver(t *testing.T) {
	l := largest(t)
	l.Reset(now)
	l.Outcome(controller.Came(effect(t, l, findAll), activity.Running{}), now)
	for _, n := range l.Inventory.nodes {
		nodeProgress{api.NodeProgress{Node: n.name, RunID: n.Run, Phase: api.Draining, Revision: 7, Targets: tiersOf(20)}}.Apply(l, now)
	}
	longest, _ := settled(l, now.Add(time.Hour))
	for _, n := range l.Inventory.nodes {
		if n.Stand != held || n.at == nil || *n.at != (drainplan.Entry{PodType: drainplan.Default, PodPriority: 20}) {
			t.Fatalf("%+v, at %v", n.nodeState, n.at)
		}
	}
	t.Logf("the longest turn of %d nodes took %s", plan.MaxNodes, longest)
}

func TestIntentsOfOneMomentAreBoundedTogether(t *testing.T) {
	l := given()
	names := slices.Sorted(slices.Values(randomNames(plan.MaxNodes)))
	l.settle(intentOf("a", api.StageDrain, names...), now)
	l.settle(intentOf("b", api.StageDrain, "one-more"), now)
	if len(l.Inventory.plans) != 1 || len(l.Refusals) != 1 || !strings.Contains(l.Refusals[0].Progress.Refused, "all plans have 15001: at most 15000 are taken") {
		t.Errorf("%d plans, refused %+v", len(l.Inventory.plans), l.Refusals)
	}
}
