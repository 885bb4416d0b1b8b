package health

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	activity "drydock.dev/drydock/activities/health"
	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/workflows/announce"
	"drydock.dev/drydock/workflows/controller"
	"drydock.dev/drydock/workflows/controller/controllertest"
)

var now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// option changes a check of three nodes, all of which are healthy.
type option func(c *check)

func given(options ...option) *check {
	c, err := newCheck(controller.Info{WorkflowID: checkID, Run: runOf("check"), TaskQueue: api.DefaultTaskQueue}, []byte(oneStep("")))
	if err != nil {
		panic(err)
	}
	c.Info = controller.Info{WorkflowID: checkID, Run: runOf("check"), Started: now, TaskQueue: api.DefaultTaskQueue}
	c.Begin(now)
	c.Prepared, c.Known = &settings.Prepared{}, true
	c.Health.Seen = health.Seen{Known: true, Groups: []health.GroupCount{{Nodes: 3}}, At: now}
	c.Decide(controller.At(now)) // tells that it is in force
	c.Health.AnnouncedBlock, c.Unrecorded = "", nil
	for _, o := range options {
		o(c)
	}
	return c
}

// node changes a node, which it adds where it is missing.
func (c *check) node(name string, change func(n *health.Node)) {
	n, found := c.Health.Node(name)
	if !found {
		n = health.Node{Facts: health.Facts{Name: name, UID: "uid-" + name}}
	}
	change(&n)
	var all health.Nodes
	for _, other := range c.Health.Nodes {
		if other.Name < name {
			all = append(all, other)
		}
	}
	all = append(all, n)
	for _, other := range c.Health.Nodes {
		if other.Name > name {
			all = append(all, other)
		}
	}
	c.Health.Nodes = all
}

// ill has a node be ill since a while: for 5 minutes it is nothing but unhealthy.
func ill(name string, since time.Duration) option {
	return func(c *check) {
		c.node(name, func(n *health.Node) { n.Matches = []health.Match{{Since: now.Add(-since)}} })
		c.Health.Seen.Groups = []health.GroupCount{{Nodes: 3, Matching: 1}}
	}
}

// well has a node have recovered.
func well(name string) option {
	return func(c *check) {
		c.node(name, func(n *health.Node) { n.Matches = nil })
		c.Health.Seen.Groups = []health.GroupCount{{Nodes: 3}}
	}
}

func unseen(name string) option {
	return func(c *check) { c.node(name, func(n *health.Node) { n.Unseen = true }) }
}

// decided has the remediation of a node decided on, and not begun.
func decided(name string) option {
	return func(c *check) {
		ill(name, time.Hour)(c)
		c.node(name, func(n *health.Node) {
			n.Remediation = &health.Running{BeganAt: now, Order: health.Order{Node: name, Revision: 1}}
		})
		c.Queue = append(c.Queue, health.Begin{Node: name})
		c.settle()
	}
}

// runs has a remediation run that has acknowledged its order.
func runs(name string, revision int) option {
	return func(c *check) {
		decided(name)(c)
		c.Queue = nil
		c.setChild(name, child{Run: runOf(name)})
		c.node(name, func(n *health.Node) {
			n.Remediation.Order.Revision = 2
			n.Remediation.Progress = &health.Progress{Node: name, RunID: runOf(name), Revision: revision, StartedAt: now}
		})
		c.settle()
	}
}

// settle takes what the check would do because of its options alone, but for what it starts and orders.
func (c *check) settle() {
	queue := c.Queue
	c.Decide(controller.At(now))
	c.Queue, c.Unrecorded = queue, nil
}

func begun(name string, ago time.Duration) option {
	return func(c *check) {
		decided(name)(c)
		c.Queue = nil
		c.setChild(name, child{Run: runOf(name), BegunAt: now.Add(-ago), Revision: 1})
	}
}

func childOf(name string, change func(one *child)) option {
	return func(c *check) {
		one := c.Children[name]
		change(&one)
		c.setChild(name, one)
	}
}

var (
	paused  = option(func(c *check) { _ = c.Health.Pause("ops", "", now) })
	unknown = option(func(c *check) { c.Known = false })
	removed = option(func(c *check) { c.Removed, c.RemovedAt = true, now })
	reset   = option(func(c *check) { c.Reset(now) })
	untold  = option(func(c *check) {
		c.Prepared.Channels = []notices.Channel{{Name: "ops", RetryFor: period.Duration(time.Minute)}}
		c.announce([]health.Event{{Reason: health.EventEnabled}}, now)
	})
)

func TestACheckDecides(t *testing.T) {
	begin := controller.Key{Kind: beginRemediation, Of: "b"}
	for name, c := range map[string]struct {
		options  []option
		underWay []controller.Key
		want     string
	}{
		"nothing to do":                      {nil, nil, "watch nodes/0"},
		"the worker is asked first":          {[]option{func(c *check) { c.Prepared = nil }}, nil, "judge/0"},
		"and about another spec":             {[]option{func(c *check) { c.Candidate = &c.Spec }}, nil, "judge/0, watch nodes/0"},
		"which it refuses":                   {[]option{func(c *check) { c.Prepared, c.Invalid = nil, "no such channel" }}, nil, "end of the workflow"},
		"what runs is to be found":           {[]option{unknown, ill("b", time.Hour)}, nil, "find, watch nodes/0"},
		"after a reset":                      {[]option{ill("b", time.Hour), reset}, nil, "find, watch nodes/1"},
		"after a reset nothing was seen":     {[]option{ill("b", time.Hour), reset, func(c *check) { c.Known = true }}, nil, "watch nodes/1"},
		"nor begins what was decided on":     {[]option{decided("b"), reset, func(c *check) { c.Known = true }}, nil, "watch nodes/1"},
		"but for what is being started":      {[]option{decided("b"), reset, func(c *check) { c.Known = true }}, []controller.Key{begin}, "begin/b, watch nodes/1"},
		"well again before the start":        {[]option{decided("b"), well("b")}, nil, "watch nodes/0"},
		"well again during the start":        {[]option{decided("b"), well("b")}, []controller.Key{begin}, "begin/b, watch nodes/0"},
		"ill anew before the start":          {[]option{decided("b"), ill("b", 4*time.Minute)}, nil, "watch nodes/0, in 1m0.001s"},
		"unseen before the start":            {[]option{decided("b"), unseen("b")}, nil, "watch nodes/0"},
		"ill in a minute":                    {[]option{ill("b", 4*time.Minute)}, nil, "watch nodes/0, in 1m0.001s"},
		"ill":                                {[]option{ill("b", 6*time.Minute)}, nil, "begin/b, events, watch nodes/0"},
		"a start under way":                  {[]option{decided("b")}, []controller.Key{begin}, "begin/b, watch nodes/0"},
		"paused before the start":            {[]option{decided("b"), paused}, nil, "events, watch nodes/0"},
		"paused during the start":            {[]option{decided("b"), paused}, []controller.Key{begin}, "begin/b, watch nodes/0"},
		"begun a moment ago":                 {[]option{begun("b", 10*time.Second)}, nil, "watch nodes/0, in 20s"},
		"begun, and nothing reported":        {[]option{begun("b", 30*time.Second)}, nil, "order/b, watch nodes/0"},
		"acknowledged":                       {[]option{runs("b", 2)}, nil, "watch nodes/0"},
		"not acknowledged":                   {[]option{runs("b", 1)}, nil, "order/b, watch nodes/0"},
		"to be asked":                        {[]option{runs("b", 2), childOf("b", func(one *child) { one.Ask = true })}, nil, "order/b, watch nodes/0"},
		"lost":                               {[]option{runs("b", 2), childOf("b", func(one *child) { one.Lost = true })}, nil, "begin/b, watch nodes/0"},
		"lost, while what runs is looked up": {[]option{runs("b", 2), unknown, childOf("b", func(one *child) { one.Lost = true })}, nil, "find, watch nodes/0"},
		"one that is silent is waited for": {[]option{runs("b", 1), ill("a", time.Hour), func(c *check) {
			c.Silent, c.Patience = []string{"b"}, now.Add(20*time.Second)
		}}, nil, "order/b, watch nodes/0, in 20s"},
		"not for longer": {[]option{runs("b", 2), ill("a", time.Hour), func(c *check) {
			c.Silent, c.Patience = []string{"b"}, now
		}}, nil, "begin/a, events, watch nodes/0"},
		"one speaks of which nothing is known": {[]option{func(c *check) { c.Suspected = true }}, nil, "recount, watch nodes/0"},
		"a channel was not sent":               {[]option{untold}, nil, "watch nodes/0, watch channel/ops"},
		"there is room for more nodes":         {[]option{func(c *check) { c.Health.Seen.Dropped = true }}, nil, "watch nodes/1"},
		"removed, and a channel was not sent":  {[]option{removed, untold}, nil, "watch channel/ops, in 1m0s"},
		"removed, and all is sent":             {[]option{removed}, nil, "end of the workflow"},
	} {
		t.Run(name, func(t *testing.T) {
			k := given(c.options...)
			d := controllertest.Again(t, k, controller.At(now, c.underWay...), show)
			if got := show(d); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// show is a decision in words.
func show(d controller.Decision) string {
	var all []string
	name := func(k controller.Key) string {
		if k.Kind == announce.Kind {
			k.Of, _, _ = strings.Cut(k.Of, "/") // the rest names the first event
		}
		return strings.TrimSuffix(k.Kind+"/"+k.Of, "/")
	}
	for _, x := range d.Effects {
		all = append(all, name(controller.Came(x, nil).Key))
	}
	for _, w := range d.Watches {
		all = append(all, "watch "+name(w.Key))
	}
	if !d.Wake.IsZero() {
		all = append(all, "in "+d.Wake.Sub(now).String())
	}
	if d.End != nil {
		all = append(all, "end of the workflow")
	}
	return strings.Join(all, ", ")
}

// does has a check decide, and takes what came of the first effect.
func (c *check) does(result any, change ...func(*controller.Outcome)) {
	o := controller.Came(c.Decide(controller.At(now)).Effects[0], result)
	for _, do := range change {
		do(&o)
	}
	c.Outcome(o, now)
}

func stale(o *controller.Outcome) { o.Stale = true }

func TestAfterAResetALookUpFromBeforeDoesNotCountAndAStartDoes(t *testing.T) {
	c := given(unknown)
	if c.does(activity.FoundRemediations{}, stale); c.Known {
		t.Error("a look-up from before the reset counts")
	}
	if c.does(activity.FoundRemediations{}); !c.Known {
		t.Error("a look-up counts not")
	}
	c = given(decided("b"))
	begin := c.Decide(controller.At(now)).Effects[0]
	c.Reset(now)
	o := controller.Came(begin, nil)
	o.Stale, o.Run = true, runOf("b")
	if c.Outcome(o, now); len(c.Queue) != 0 || c.Children["b"].Run != runOf("b") {
		t.Errorf("queue %+v, %+v", c.Queue, c.Children["b"])
	}
	if c.Known || c.Health.Seen.Known {
		t.Errorf("remediations known %v, nodes known %v", c.Known, c.Health.Seen.Known)
	}
}

// What was decided on before a reset is decided on anew, with what is seen then.
func TestAResetDropsWhatHasNotBegun(t *testing.T) {
	begin := controller.Key{Kind: beginRemediation, Of: "c"}
	c := given(decided("b"), decided("c"), reset)
	c.Decide(controller.At(now, begin))
	if c.isQueued("b") || c.remediation("b") != nil || !c.isQueued("c") || c.remediation("c") == nil {
		t.Errorf("queue %+v", c.Queue)
	}
}

// A worker that cannot see what blocks a check reports what it is given, also where everything is to be seen anew.
func TestWhatBlocksACheckIsGivenToItsNextWatch(t *testing.T) {
	c := given()
	c.Reported.Take(activity.WatchResult{Observation: &health.Observation{Upgrading: "half way"}})
	c.Reset(now)
	in := c.watch(controller.At(now)).Input.(activity.WatchInput)
	if in.Known.All || in.Known.Around.Upgrading != "half way" {
		t.Errorf("%+v", in.Known)
	}
}

func TestWhatIsFoundToRunIsNotStartedAgain(t *testing.T) {
	c := given(decided("b"), decided("c"), unknown)
	c.does(activity.FoundRemediations{Remediations: []activity.RunningRemediation{{Node: "b", RunID: runOf("b")}}})
	if got := show(c.Decide(controller.At(now))); got != "order/b, watch nodes/0, in 30s" {
		t.Errorf("%q", got)
	}
	c.Silent = nil
	if got := show(c.Decide(controller.At(now))); got != "begin/c, order/b, events, watch nodes/0" {
		t.Errorf("%q", got)
	}
}

// The lock of a check is taken by each child that starts or answers: the first of many that wait for it is not the first to get it.
func TestStartsAndOrdersAreBounded(t *testing.T) {
	c := given(runs("c", 1), decided("b"))
	bounds := map[string]int{}
	for _, x := range c.Decide(controller.At(now)).Effects {
		switch x := x.(type) {
		case controller.Start:
			bounds["start"] = x.AtOnce
		case controller.Signal:
			bounds["order"] = x.AtOnce
		}
	}
	if bounds["start"] != 16 || bounds["order"] != 16 {
		t.Errorf("%v", bounds)
	}
}

// A node may recover while its remediation is being started: its end is ordered, or it does not begin the next time.
func TestANodeThatRecoversDuringTheStart(t *testing.T) {
	for name, c := range map[string]struct {
		result error
		then   option
		want   string
	}{
		"begun":                   {nil, well("b"), "order/b, watch nodes/0"},
		"it failed":               {errors.New("no"), well("b"), "watch nodes/0"},
		"it failed, and ill anew": {errors.New("no"), ill("b", time.Hour), "begin/b, events, watch nodes/0"},
	} {
		t.Run(name, func(t *testing.T) {
			k := given(decided("b"))
			begin := k.Decide(controller.At(now)).Effects[0]
			well("b")(k)
			k.Decide(controller.At(now, controller.Key{Kind: beginRemediation, Of: "b"}))
			o := controller.Came(begin, nil)
			o.Run, o.Err = runOf("b"), c.result
			k.Outcome(o, now)
			c.then(k)
			if got := show(k.Decide(controller.At(now))); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestWhatBecameOfAStart(t *testing.T) {
	lost := []option{runs("b", 2), childOf("b", func(one *child) { one.Lost = true })}
	unordered := append(slices.Clone(lost), func(c *check) {
		c.node("b", func(n *health.Node) { n.Remediation.Order.Revision, n.Remediation.Progress.Revision = 0, 0 })
	})
	for name, c := range map[string]struct {
		options []option
		result  any
		want    string
	}{
		"begun":                     {[]option{decided("b")}, nil, "watch nodes/0, in 30s"},
		"it runs already":           {[]option{decided("b")}, &temporal.ChildWorkflowExecutionAlreadyStartedError{}, "order/b, watch nodes/0"},
		"it failed":                 {[]option{decided("b")}, errors.New("no"), "begin/b, watch nodes/0"},
		"a lost one is sent again":  {lost, nil, "order/b, watch nodes/0"},
		"one without an order, too": {unordered, nil, "order/b, watch nodes/0"},
		"a lost one runs after all": {lost, &temporal.ChildWorkflowExecutionAlreadyStartedError{}, "order/b, watch nodes/0"},
	} {
		t.Run(name, func(t *testing.T) {
			k := given(c.options...)
			k.does(c.result, func(o *controller.Outcome) { o.Run = runOf("begun") })
			if got := show(k.Decide(controller.At(now))); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestWhatBecameOfAnOrder(t *testing.T) {
	nobody := &temporal.UnknownExternalWorkflowExecutionError{}
	unconfirmed := func(c *check) { c.node("b", func(n *health.Node) { n.Remediation.Unconfirmed = true }) }
	over := func(c *check) { c.node("b", func(n *health.Node) { n.Remediation.Progress.Ended = true }) }
	for name, c := range map[string]struct {
		options []option
		result  any
		want    string
	}{
		"received":                        {[]option{runs("b", 1)}, nil, "order/b, watch nodes/0"},
		"not received":                    {[]option{runs("b", 1)}, errors.New("no"), "order/b, watch nodes/0"},
		"nobody is there":                 {[]option{runs("b", 1)}, nobody, "begin/b, watch nodes/0"},
		"nobody is there, nor ever was":   {[]option{runs("b", 1), unconfirmed}, nobody, "events, watch nodes/0, in 1m0s"},
		"nobody is there: it is over":     {[]option{runs("b", 1), over}, nobody, "events, watch nodes/0, in 1m0s"},
		"nobody is there, begun just now": {[]option{begun("b", time.Minute)}, nobody, "begin/b, watch nodes/0"},
	} {
		t.Run(name, func(t *testing.T) {
			k := given(c.options...)
			o := controller.Came(k.order("b", k.remediation("b")), c.result)
			k.Outcome(o, now)
			if got := show(k.Decide(controller.At(now))); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// A remediation may be reset or terminated: it is asked at once, and not started again before it is known not to run.
func TestARemediationWhoseRunEndsWithoutAReportIsAsked(t *testing.T) {
	for _, what := range []controller.What{controller.Ended, controller.Terminated} {
		c := given(runs("b", 2))
		c.Rest(orderOf("b"), time.Minute, now)
		o := controller.Outcome{Key: controller.Key{Kind: beginRemediation, Of: "b"}, What: what, Run: runOf("b")}
		c.Outcome(o, now)
		if got := show(c.Decide(controller.At(now))); got != "order/b, watch nodes/0" || c.Retries[len(c.Retries)-1].Until.After(now) {
			t.Errorf("%q, %+v", got, c.Retries)
		}
	}
}

// watched is the watch of the nodes that a check wants.
func (c *check) watched() controller.Watch { return c.Decide(controller.At(now)).Watches[0] }

// reports has the watch that a check wants report something.
func (c *check) reports(w controller.Watch, seen activity.WatchResult) {
	c.Outcome(controller.Came(w, seen), now)
}

func TestTheWatchKnowsWhatTheCheckKnows(t *testing.T) {
	c := given(runs("b", 2))
	first := c.watched()
	in := first.Input.(activity.WatchInput)
	want := activity.RunningRemediation{Node: "b", RunID: runOf("b")}
	if in.Check != "workers" || in.RunID != runOf("check") || !slices.Equal(in.Remediating, []string{"b"}) || len(in.Runs) != 1 || in.Runs[0] != want || in.Known.All || !first.Lasts {
		t.Errorf("%+v", in)
	}
	matches := []health.Match{{Since: now}}
	c.reports(first, activity.WatchResult{Digest: "d", Hashes: []string{"h1", "h2"}, Observation: &health.Observation{
		Full: true, At: now, Groups: []health.GroupCount{{Nodes: 3, Matching: 2}},
		Nodes: []health.Facts{{Name: "a", UID: "uid-a", Matches: matches}, {Name: "b", UID: "uid-b", Matches: matches}},
	}})
	second := c.watched()
	known := second.Input.(activity.WatchInput).Known
	if !known.All || known.Digest != "d" || known.Nodes["a"] != "h1" || known.Nodes["b"] != "h2" {
		t.Errorf("%+v", known)
	}
	if same, _ := json.Marshal(first.Want); !jsonEqual(t, second.Want, same) {
		t.Errorf("what is known has the watch begun anew: %+v, %+v", first.Want, second.Want)
	}
	c.node("c", func(n *health.Node) {
		n.Remediation = &health.Running{Order: health.Order{Node: "c", Revision: 1}, Progress: &health.Progress{Node: "c", RunID: runOf("c"), Revision: 1}}
		n.Unseen = true
	})
	if third := c.watched().Want.(activity.WatchInput); !slices.Equal(third.Intent.Unseen, []string{"c"}) || len(third.Runs) != 2 {
		t.Errorf("a node of which nothing was seen is not looked for: %+v", third)
	}
}

func jsonEqual(t *testing.T, value any, text []byte) bool {
	t.Helper()
	other, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(text, other)
}

func TestAReportOfAnEarlierViewSaysNothing(t *testing.T) {
	for name, change := range map[string]func(c *check){
		"a reset": func(c *check) { c.Reset(now) },
		"another selector": func(c *check) {
			next, err := health.Decode([]byte(strings.Replace(oneStep(""), "worker", "storage", 1)))
			if err != nil {
				t.Fatal(err)
			}
			c.Candidate = &next
			c.does(settings.Prepared{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := given()
			before := c.watched()
			change(c)
			seen := activity.WatchResult{Digest: "d", Observation: &health.Observation{Full: true, At: now, Groups: []health.GroupCount{{Nodes: 9}}}}
			if c.reports(before, seen); c.Health.Seen.Known || c.Reported.All {
				t.Errorf("%+v, %+v", c.Health.Seen, c.Reported)
			}
			c.Known = true
			if c.reports(c.watched(), seen); !c.Health.Seen.Known || !c.Reported.All {
				t.Errorf("%+v, %+v", c.Health.Seen, c.Reported)
			}
		})
	}
}

func TestARemediationThatTheWatchSeesEndIsAsked(t *testing.T) {
	c := given(runs("b", 2))
	c.reports(c.watched(), activity.WatchResult{Ended: []string{"b", "x"}})
	d := c.Decide(controller.At(now))
	if got := show(d); got != "order/b, watch nodes/0" {
		t.Errorf("%q", got)
	}
	if in := d.Watches[0].Input.(activity.WatchInput); len(in.Runs) != 0 {
		t.Errorf("the watch would report it again: %+v", in.Runs)
	}
}

func TestKubernetesEventsAreRecordedInBatchesAndOnce(t *testing.T) {
	c := given()
	for i := range 60 {
		c.announce([]health.Event{{Reason: health.EventDetectedUnhealthy, Node: fmt.Sprint("n", i)}}, now)
	}
	c.does(nil)
	c.announce([]health.Event{{Reason: health.EventDetectedUnhealthy, Node: "x"}}, now)
	if n := len(c.Unrecorded); n != 11 {
		t.Errorf("%d are left of 61 after a batch of %d", n, maxRecorded)
	}
	c.does(errors.New("forbidden"))
	if len(c.Unrecorded) != 0 || len(c.Troubles()) != 0 {
		t.Errorf("%d are left, troubles %+v", len(c.Unrecorded), c.Troubles())
	}
}

func TestTheCheckReportsNodesThatItMayNotRemediate(t *testing.T) {
	c := given(func(c *check) {
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			c.node(name, func(n *health.Node) {
				n.Past = &health.Past{EndedAt: now, Failure: "forbidden", Trouble: "grant it", RetryAt: now.Add(time.Minute)}
			})
		}
		c.node("a", func(n *health.Node) { n.Past.Trouble = "" })
		c.node("b", func(n *health.Node) { n.Remediation = &health.Running{} })
		c.node("c", func(n *health.Node) { n.Past.RetryAt = now })
	})
	answer, err := status{}.Answer(c, now)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, one := range answer.(api.HealthStatus).Troubles {
		told = append(told, one.String())
	}
	if got := strings.Join(told, ", "); got != "node d is not remediated: grant it, node e is not remediated: grant it, node f is not remediated: grant it, "+
		"node g is not remediated: grant it, node h is not remediated: grant it" {
		t.Error(got)
	}
	explained, err := explain{api.ExplainRequest{Node: "a"}}.Answer(c, now)
	if err != nil || slices.ContainsFunc(explained.(api.HealthExplanation).Blocks, func(b string) bool { return strings.Contains(b, "node d") }) {
		t.Errorf("%+v, %v", explained, err)
	}
}

// large is a check that remembers as many nodes as it may.
func large() *check {
	c := given()
	long := strings.Repeat("x", 200)
	for i := range health.MaxNodes {
		name := fmt.Sprintf("node-%05d.a-domain-that-is-as-long-as-they-are-in-some-clusters.example.com", i)
		n := health.Node{Facts: health.Facts{Name: name, UID: runOf(name), Matches: []health.Match{{Since: now.Add(-time.Hour)}}}}
		if i < 400 {
			n.Remediation = &health.Running{BeganAt: now, Order: health.Order{Node: name, Revision: 2, Why: long}, Progress: &health.Progress{
				Node: name, RunID: runOf(name), Revision: 2, StartedAt: now, Waiting: long,
				Steps: []health.StepState{{StartedAt: now, Resource: &health.Resource{Kind: "Reboot", Name: name}}},
			}}
			c.setChild(name, child{Run: runOf(name), BegunAt: now, Revision: 1})
		}
		c.Health.Nodes = append(c.Health.Nodes, n)
	}
	c.Reported = activity.Known{All: true, Digest: "d", Nodes: activity.Hashes{}}
	for i := range 15_000 { // of many more that are ill than are remembered the hashes are known
		name := fmt.Sprintf("node-%05d.a-domain-that-is-as-long-as-they-are-in-some-clusters.example.com", i)
		c.Reported.Nodes[name] = strconv.FormatUint(uint64(i)*0x9E3779B97F4A7C15, 36)
	}
	for range maxUnrecorded {
		c.announce([]health.Event{{Reason: health.EventDetectedUnhealthy, Node: c.Health.Nodes[0].Name, Text: long}}, now)
	}
	return c
}

func TestALargeStateIsHandedOver(t *testing.T) {
	c := large()
	packed, err := api.Pack(c)
	if err != nil || len(packed) > 1_500_000 {
		t.Errorf("%d bytes, %v", len(packed), err)
	}
	if in, err := json.Marshal(c.watched().Input); err != nil || len(in) > 1_000_000 {
		t.Errorf("the watch's input has %d bytes, %v", len(in), err)
	}
	var again check
	if err := api.Unpack(packed, &again); err != nil || len(again.Children) != 400 || len(again.Reported.Nodes) != 15_000 || len(again.Unrecorded) != maxUnrecorded {
		t.Errorf("%v", err)
	}
}

// BenchmarkDecide is a decision about as many nodes as a check remembers: it should take far less than a second.
func BenchmarkDecide(b *testing.B) {
	c := large()
	for b.Loop() {
		c.Decide(controller.At(now))
	}
}
