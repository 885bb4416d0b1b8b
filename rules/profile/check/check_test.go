package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/rules/profile/conf"
	"drydock.dev/drydock/rules/profile/state"
)

// configured makes a check of a kind, and says what is wrong.
func configured(kind, config string) (Check, error) {
	var p conf.Problems
	o := conf.Read([]byte("config: "+config+"\n"), nil, &p).Object("config")
	c, known := Read(kind, o, Environment{})
	if !known {
		return nil, fmt.Errorf("there is no kind %s", kind)
	}
	for _, key := range o.Unknown() {
		p.Add(o.At(key), "", "unknown")
	}
	return c, p.Join()
}

func made(t *testing.T, kind, config string) Check {
	t.Helper()
	c, err := configured(kind, config)
	if err != nil {
		t.Fatalf("%s %s: %v", kind, config, err)
	}
	return c
}

func node(name string, labels ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		n.Labels[key] = value
	}
	return n
}

// in puts a profile of a node into a state.
func in(n *corev1.Node, profile string, s state.State, since time.Time) *corev1.Node {
	d, err := state.Read(n.Annotations[state.DataAnnotation])
	if err != nil {
		panic(err)
	}
	d.Profiles[profile] = state.Profile{Transition: since, Current: s, Previous: s}
	text, err := d.Write()
	if err != nil {
		panic(err)
	}
	n.Annotations[state.DataAnnotation] = text
	return n
}

const (
	profiled   = state.ProfileLabel + "="
	maintained = state.StateLabel + "=in-maintenance"
)

// at is 2026-01-05, a Monday, at a time of day.
func at(clock string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", "2026-01-05 "+clock)
	if err != nil {
		panic(err)
	}
	return t
}

var noon = at("12:00:00")

func ask(c Check, n *corev1.Node, others ...*corev1.Node) Result {
	return c.Hold(Case{Now: noon, Node: n, Profile: "p", State: state.Required, View: NewView(append(others, n), nil)})
}

func want(t *testing.T, r Result, holds bool, reason string) {
	t.Helper()
	if r.Error != "" || r.Holds != holds || reason != "" && r.Reason != reason {
		t.Errorf("holds: %t, reason %q, error %q", r.Holds, r.Reason, r.Error)
	}
}

func TestLabelsAndAnnotations(t *testing.T) {
	n := node("n", "key=value", "empty=")
	n.Annotations["note"] = "value"
	for _, c := range []struct {
		kind, config string
		holds        bool
		reason       string
	}{
		{"hasLabel", "{key: key, value: value}", true, ""},
		{"hasLabel", "{key: key}", true, ""},
		{"hasLabel", "{key: key, value: ''}", true, ""},
		{"hasLabel", "{key: empty}", true, ""},
		{"hasLabel", "{key: other, value: ''}", false, "label other not present"},
		{"hasLabel", "{key: key, value: other}", false, `label key is "value", and "other" is wanted`},
		{"hasAnnotation", "{key: note, value: value}", true, ""},
		{"hasAnnotation", "{key: note}", true, ""},
		{"hasAnnotation", "{key: key}", false, "annotation key not present"},
		{"anyLabel", "{key: far}", true, ""},
		{"anyLabel", "{key: far, value: away}", true, ""},
		{"anyLabel", "{key: key}", true, ""},
		{"anyLabel", "{key: far, value: near}", false, `label far is "near" on no node`},
		{"anyLabel", "{key: absent everywhere}", false, "label absent everywhere is on no node"},
	} {
		t.Run(c.kind+" "+c.config, func(t *testing.T) {
			want(t, ask(made(t, c.kind, c.config), n, node("other", "far=away")), c.holds, c.reason)
		})
	}
}

func TestCondition(t *testing.T) {
	n := node("n")
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)}}
	r := ask(made(t, "condition", `{type: Ready, status: "True"}`), n)
	want(t, r, true, "")
	if !r.Since.Equal(noon) || !slices.Equal(r.Info, []Fact{{"current", "True"}, {"expected", "True"}}) {
		t.Errorf("%+v", r)
	}
	want(t, ask(made(t, "condition", `{type: Ready, status: "False"}`), n), false, "condition Ready is True")
	want(t, ask(made(t, "condition", `{type: DiskPressure, status: "False"}`), n), false, "condition DiskPressure not present")
	// YAML makes true of an unquoted True, which is no condition's status.
	want(t, ask(made(t, "condition", `{type: Ready, status: True}`), n), false, "condition Ready is True")
}

func TestNodeCount(t *testing.T) {
	want(t, ask(made(t, "nodeCount", "{count: 3}"), node("n")), false, "1 node is there, and 3 are wanted")
	want(t, ask(made(t, "nodeCount", "{count: 2}"), node("n"), node("o")), true, "")
}

func TestClusterSemver(t *testing.T) {
	outdated, newest, unparseable := node("old", "v=1.2.3"), node("new", "v=1.10.0", profiled+"q"), node("broken", "v=v9")
	for _, c := range []struct {
		name, config string
		n            *corev1.Node
		holds        bool
		err          string
	}{
		{"newest", "{key: v}", newest, false, ""},
		{"outdated although an unparseable node exists", "{key: v}", outdated, true, ""},
		{"scoped to a profile nobody has", "{key: v, profileScoped: yes}", outdated, false, ""},
		{"own label missing", "{key: v}", node("none"), false, "label v not present"},
		{"own label invalid", "{key: v}", unparseable, false, "which is not a version"},
		{"the floor of the highest", "{key: v}", node("first", "v=0.0.1"), true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			nodes := []*corev1.Node{outdated, newest, unparseable}
			if c.name == "the floor of the highest" {
				nodes = nil
			}
			r := ask(made(t, "clusterSemver", c.config), c.n, nodes...)
			if c.err != "" {
				if !strings.Contains(r.Error, c.err) || r.Holds {
					t.Errorf("%+v", r)
				}
				return
			}
			want(t, r, c.holds, "")
		})
	}
	scoped := made(t, "clusterSemver", "{key: v, profileScoped: true}")
	v := NewView([]*corev1.Node{outdated, newest}, nil)
	want(t, scoped.Hold(Case{Node: outdated, Profile: "q", View: v}), true, "")
	// Under default nobody is in scope.
	want(t, scoped.Hold(Case{Node: outdated, Profile: "default", View: v}), false, "")
}

func TestMaxMaintenance(t *testing.T) {
	zoned := func(name, zone string, labels ...string) *corev1.Node {
		return node(name, append(labels, "zone="+zone)...)
	}
	old, young := noon.Add(-20*time.Second), noon.Add(-2*time.Second)
	for _, c := range []struct {
		name, config string
		n            *corev1.Node
		others       []*corev1.Node
		holds        bool
	}{
		{"1 of max 2", "{max: 2}", node("n"), []*corev1.Node{node("a", maintained), node("b")}, true},
		{"2 of 2", "{max: 2}", node("n"), []*corev1.Node{node("a", maintained), node("b", maintained)}, false},
		{"the node itself counts if labelled", "{max: 1}", node("n", maintained), nil, false},
		{"the annotation counts before the label", "{max: 1}", node("n"), []*corev1.Node{in(node("a", profiled+"p"), "p", state.Maintenance, old)}, false},
		{"a node without profile label is not counted under profile", "{max: 1, profile: p}", node("n"), []*corev1.Node{node("a", maintained)}, true},
		{"profile counts whichever profile put it in maintenance", "{max: 1, profile: p}", node("n"), []*corev1.Node{node("a", maintained, profiled+"q--p")}, false},
		{"skipAfter 5s with a 20s-old transition", "{max: 1, skipAfter: 5s}", node("n"), []*corev1.Node{in(node("a", maintained), "default", state.Maintenance, old)}, true},
		{"skipAfter 5s with a younger one of any profile", "{max: 1, skipAfter: 5s}", node("n"), []*corev1.Node{in(in(node("a", maintained, profiled+"p--q"), "p", state.Maintenance, old), "q", state.Required, young)}, false},
		{"skipAfter 50s", "{max: 1, skipAfter: 50s}", node("n"), []*corev1.Node{in(node("a", maintained), "default", state.Maintenance, old)}, false},
		{"skipAfter without data of the profile", "{max: 1, skipAfter: 5s, profile: p}", node("n"), []*corev1.Node{node("a", maintained, profiled+"p")}, false},
		{"other group", "{max: 1, groupBy: zone}", zoned("n", "a"), []*corev1.Node{zoned("a", "b", maintained)}, true},
		{"same group", "{max: 1, groupBy: [zone]}", zoned("n", "a"), []*corev1.Node{zoned("a", "a", maintained)}, false},
		{"group value empty on the current node", "{max: 1, groupBy: zone}", zoned("n", ""), []*corev1.Node{zoned("a", "b", maintained)}, false},
		{"legacy groupLabel", "{max: 1, groupLabel: zone}", zoned("n", "a"), []*corev1.Node{zoned("a", "b", maintained)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			want(t, ask(made(t, "maxMaintenance", c.config), c.n, c.others...), c.holds, "")
		})
	}
	t.Run("an unparseable annotation counts", func(t *testing.T) {
		broken := node("a", maintained)
		broken.Annotations[state.DataAnnotation] = "{"
		want(t, ask(made(t, "maxMaintenance", "{max: 1, skipAfter: 5s}"), node("n"), broken), false, "1 in maintenance: a")
	})
	t.Run("a transition under way counts", func(t *testing.T) {
		v := NewView([]*corev1.Node{node("n"), node("a")}, map[string][]string{"a": {"p"}})
		want(t, made(t, "maxMaintenance", "{max: 1}").Hold(Case{Now: noon, Node: node("n"), View: v}), false, "1 in maintenance: a")
	})
	t.Run("a grant counts for the next", func(t *testing.T) {
		v := NewView([]*corev1.Node{node("n"), node("a")}, nil)
		k := made(t, "maxMaintenance", "{max: 1}")
		want(t, k.Hold(Case{Now: noon, Node: node("n"), View: v}), true, "")
		v.Grant("a", "p")
		want(t, k.Hold(Case{Now: noon, Node: node("n"), View: v}), false, "")
	})
}

func TestStagger(t *testing.T) {
	one := made(t, "stagger", "{duration: 60, leaseName: l, leaseNamespace: ns}")
	v := NewView([]*corev1.Node{node("a"), node("b")}, nil)
	of := func(name string, now time.Time) Case { return Case{Now: now, Node: node(name), View: v} }
	// A Lease that is missing is free, and a check that is not gone by takes none.
	want(t, one.Hold(of("a", noon)), true, "")
	want(t, one.Hold(of("b", noon)), true, "")
	taken := Claims(of("a", noon), []Check{one})
	if len(taken) != 1 || taken[0] != (Claim{LeaseName{"ns", "l-0"}, "a", noon, time.Minute}) {
		t.Fatalf("%+v", taken)
	}
	v.Take(taken)
	// Its holder is not exempt.
	r := one.Hold(of("a", noon))
	want(t, r, false, "taken by a")
	if !r.Until.Equal(noon.Add(time.Minute)) {
		t.Error(r.Until)
	}
	want(t, one.Hold(of("b", noon.Add(time.Minute))), false, "")
	want(t, one.Hold(of("b", noon.Add(time.Minute+1))), true, "")
	if late := Claims(of("b", noon.Add(time.Hour)), []Check{one}); len(late) != 1 || late[0].Holder != "b" {
		t.Errorf("%+v", late)
	}
	t.Run("two at once", func(t *testing.T) {
		two := made(t, "stagger", "{duration: 1m, leaseName: m, leaseNamespace: ns, parallel: 2}")
		for _, name := range []string{"a", "b"} {
			want(t, two.Hold(of(name, noon)), true, "")
			v.Take(Claims(of(name, noon), []Check{two}))
		}
		want(t, two.Hold(of("c", noon)), false, "taken by a, b")
		if got := NeedsOf([]Check{two, one, one}).Leases; len(got) != 3 {
			t.Error(got)
		}
	})
	t.Run("parallel 0 never holds", func(t *testing.T) {
		none := made(t, "stagger", "{duration: 1m, leaseName: m, leaseNamespace: ns, parallel: 0}")
		want(t, none.Hold(of("a", noon)), false, "no lease is free")
		if !Idle(none) || Claims(of("a", noon), []Check{none}) != nil {
			t.Error("it claims")
		}
	})
	t.Run("the duration that counts is that in the Lease", func(t *testing.T) {
		v.Leases[LeaseName{"ns", "l-0"}] = Lease{Holder: "x", Renewed: noon, For: time.Second}
		want(t, one.Hold(of("a", noon.Add(2*time.Second))), true, "")
	})
	t.Run("it is the API server's clock that counts", func(t *testing.T) {
		for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
			server := noon.Add(ahead)
			v := NewView([]*corev1.Node{node("a")}, nil)
			v.Ahead = ahead
			c := Case{Now: noon, Node: node("a"), View: v}
			v.Leases = map[LeaseName]Lease{{"ns", "l-0"}: {Holder: "x", Renewed: server.Add(-59 * time.Second), For: time.Minute}}
			r := one.Hold(c)
			want(t, r, false, "taken by x")
			if !r.Until.Equal(noon.Add(time.Second)) || len(r.Info) != 1 || r.Info[0].Value != "[1]" {
				t.Errorf("%s ahead: %+v", ahead, r)
			}
			v.Leases[LeaseName{"ns", "l-0"}] = Lease{Holder: "x", Renewed: server.Add(-61 * time.Second), For: time.Minute}
			want(t, one.Hold(c), true, "")
			if taken := Claims(c, []Check{one}); len(taken) != 1 || !taken[0].At.Equal(server) {
				t.Errorf("%s ahead: %+v", ahead, taken)
			}
		}
	})
	t.Run("a Lease that could not be read is not free", func(t *testing.T) {
		two := made(t, "stagger", "{duration: 1m, leaseName: u, leaseNamespace: ns, parallel: 2}")
		v.Leases[LeaseName{"ns", "u-0"}] = Lease{Error: "the API server is away"}
		if r := two.Hold(of("a", noon)); r.Holds || r.Error != "lease ns/u-0: the API server is away" {
			t.Errorf("%+v", r)
		}
		if taken := Claims(of("a", noon), []Check{two}); len(taken) != 1 || taken[0].Name != "u-1" {
			t.Errorf("%+v", taken)
		}
	})
}

func TestAffinity(t *testing.T) {
	required := func(name string, profile string) *corev1.Node {
		return in(node(name, profiled+profile), profile, state.Required, noon)
	}
	k := made(t, "affinity", "~")
	held := func(k Check, s state.State, marked map[string]bool, nodes ...*corev1.Node) Result {
		v := NewView(nodes, nil)
		v.Marked = marked
		return k.Hold(Case{Now: noon, Node: nodes[0], Profile: "p", State: s, View: v})
	}
	want(t, held(k, state.Required, nil, required("n", "p"), required("o", "p")), true, "no pods with affinity")
	want(t, held(k, state.Required, map[string]bool{"n": true}, required("n", "p"), required("o", "p")), false, "pods without affinity on: o")
	want(t, held(k, state.Required, map[string]bool{"n": true, "o": true}, required("n", "p"), required("o", "p")), true, "")
	want(t, held(k, state.Required, map[string]bool{"n": true}, required("n", "p"), required("o", "different")), true, "")
	if r := held(k, state.Operational, nil, required("n", "p")); r.Error == "" || r.Holds {
		t.Errorf("%+v", r)
	}
	for name, c := range map[string]struct {
		marked map[string]bool
		unread map[string]string
		error  string
		holds  bool
	}{
		"its own pods were not read":         {nil, map[string]string{"n": "away"}, "pods of n: away", false},
		"another's were not, and it has one": {map[string]bool{"n": true}, map[string]string{"o": "away"}, "pods of o: away", false},
		"another's were not, and a third has none": {
			map[string]bool{"n": true, "q": true}, map[string]string{"q": "away"}, "", false,
		},
		"another's were not, and it has none": {nil, map[string]string{"o": "away"}, "", true},
	} {
		v := NewView([]*corev1.Node{required("n", "p"), required("o", "p"), required("q", "p")}, nil)
		v.Marked, v.Unread = c.marked, c.unread
		if c.marked["n"] && c.error != "" {
			v.Marked["q"] = true
		}
		r := k.Hold(Case{Now: noon, Node: required("n", "p"), Profile: "p", State: state.Required, View: v})
		if r.Holds != c.holds || r.Error != c.error {
			t.Errorf("%s: %+v", name, r)
		}
	}
	operational := in(node("o", profiled+"p"), "p", state.Operational, noon)
	least := made(t, "affinity", "{minOperational: 1}")
	want(t, held(least, state.Required, map[string]bool{"n": true}, required("n", "p"), operational, required("q", "p")), true, "minOperational exceeded")
	want(t, held(least, state.Required, map[string]bool{"n": true}, required("n", "p"), required("q", "p")), false, "")
	for _, config := range []string{"~", "{}", "{minOperational: 0}"} {
		if got := made(t, "affinity", config); got != (affinity{}) {
			t.Errorf("%s: %+v", config, got)
		}
	}
}

func TestMarked(t *testing.T) {
	pod := func(key string, operator corev1.NodeSelectorOperator, values ...string) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Preference: corev1.NodeSelectorTerm{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}},
			}}},
		}}}}
	}
	for i, c := range []struct {
		pod  *corev1.Pod
		want bool
	}{
		{pod(state.StateLabel, corev1.NodeSelectorOpIn, "operational"), true},
		{pod(state.StateLabel, corev1.NodeSelectorOpIn, "operational", "in-maintenance"), false},
		{pod(state.StateLabel, corev1.NodeSelectorOpNotIn, "operational"), false},
		{pod("other", corev1.NodeSelectorOpIn, "operational"), false},
		{&corev1.Pod{}, false},
		{&corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{}}}, false},
	} {
		if Marked(c.pod) != c.want {
			t.Errorf("%d is not %t", i, c.want)
		}
	}
}

func TestTimeWindow(t *testing.T) {
	const days = "weekdays: [mon, Tuesday, WED, thu, fri]"
	for _, c := range []struct {
		config, at string
		holds      bool
		reason     string
	}{
		{"{start: 10:30, end: '15:20', " + days + "}", "2026-01-05 10:29:59", false, "opens at 10:30 UTC"},
		{"{start: 10:30, end: '15:20', " + days + "}", "2026-01-05 10:30:00", false, "opens at 10:30 UTC"},
		{"{start: 10:30, end: '15:20', " + days + "}", "2026-01-05 10:30:01", true, ""},
		{"{start: 10:30, end: '15:20', " + days + "}", "2026-01-05 15:19:59", true, ""},
		{"{start: 10:30, end: '15:20', " + days + "}", "2026-01-05 15:20:00", false, "closed at 15:20 UTC"},
		{"{start: 10:30, end: '15:20', weekdays: tue}", "2026-01-05 12:00:00", false, "current day of week forbidden"},
		{"{start: 9:00, end: '15:20', weekdays: monday, exclude: Jan 5}", "2026-01-05 12:00:00", false, "current day/month forbidden"},
		{"{start: 9:00, end: '15:20', weekdays: monday, exclude: [feb 2, DEC 24]}", "2026-02-02 12:00:00", false, "current day/month forbidden"},
		{"{start: 9:00, end: '15:20', weekdays: monday, exclude: Feb 2}", "2026-02-09 12:00:00", true, ""},
		// Over midnight: the day is that on which it begins.
		{"{start: '22:00', end: '04:00', weekdays: mon}", "2026-01-05 23:00:00", true, ""},
		{"{start: '22:00', end: '04:00', weekdays: mon}", "2026-01-06 03:59:59", true, ""},
		{"{start: '22:00', end: '04:00', weekdays: mon}", "2026-01-06 04:00:00", false, ""},
		{"{start: '22:00', end: '04:00', weekdays: mon}", "2026-01-05 03:00:00", false, ""},
		{"{start: '22:00', end: '04:00', weekdays: mon}", "2026-01-06 22:30:00", false, ""},
		{"{start: '22:00', end: '04:00', weekdays: mon, exclude: Jan 5}", "2026-01-06 02:00:00", false, ""},
		{"{start: '22:00', end: '04:00', weekdays: mon, exclude: Jan 6}", "2026-01-06 02:00:00", true, ""},
		{"{start: '10:00', end: '10:00', weekdays: mon}", "2026-01-05 10:00:00", false, ""},
		// Windows of Drydock's own.
		{"{windows: [{days: mon, from: '22:00', to: '02:00', timezone: Europe/Berlin}]}", "2026-01-06 00:59:59", true, ""},
		{"{windows: [{days: mon, from: '22:00', to: '02:00', timezone: Europe/Berlin}]}", "2026-01-06 01:00:00", false, "no window is open"},
		{"{windows: [{from: '01:00', to: '02:00'}, {from: '12:00', to: '13:00', except: [2026-01-06]}]}", "2026-01-05 12:00:00", true, ""},
		{"{windows: [{from: '12:00', to: '13:00', except: [2026-01-05]}]}", "2026-01-05 12:00:00", false, "no window is open"},
	} {
		t.Run(c.config+" "+c.at, func(t *testing.T) {
			now, err := time.Parse("2006-01-02 15:04:05", c.at)
			if err != nil {
				t.Fatal(err)
			}
			want(t, made(t, "timeWindow", c.config).Hold(Case{Now: now.In(time.FixedZone("", 3600))}), c.holds, c.reason)
		})
	}
	if !Never(made(t, "timeWindow", "{start: '10:00', end: '10:00', weekdays: mon}")) || !BeyondMidnight(made(t, "timeWindow", "{start: '18:00', end: '17:30', weekdays: mon}")) {
		t.Error("it is not reported")
	}
}

func TestWait(t *testing.T) {
	since := noon.Add(-12 * time.Minute)
	r := made(t, "wait", "{duration: 10m}").Hold(Case{Now: noon, Since: since})
	want(t, r, true, "")
	if !r.Since.Equal(since.Add(10 * time.Minute)) {
		t.Error(r.Since)
	}
	r = made(t, "wait", "{duration: 15m}").Hold(Case{Now: noon, Since: since})
	want(t, r, false, "3m00s to go")
	if !r.Until.Equal(since.Add(15*time.Minute)) || r.Info[0] != (Fact{"remaining_seconds", "180"}) {
		t.Errorf("%+v", r)
	}
	want(t, made(t, "wait", "{duration: 0s}").Hold(Case{Now: noon, Since: noon}), false, "")
	want(t, made(t, "wait", "{duration: 10m}").Hold(Case{Now: noon}), true, "")
}

func TestWaitExclude(t *testing.T) {
	of := func(text string) time.Time {
		// 2026-01-04 is a Sunday, and 2026-01-03 the Saturday before it.
		days := map[string]int{"Sat": 3, "Sun": 4, "Mon": 5, "Tue": 6, "Wed": 7, "Thu": 8}
		clock, err := time.Parse("15:04:05", text[4:])
		if err != nil {
			t.Fatal(err)
		}
		return time.Date(2026, 1, days[text[:3]], clock.Hour(), clock.Minute(), clock.Second(), 0, time.UTC)
	}
	k := made(t, "waitExclude", "{duration: 30h, exclude: [mon, Wednesday]}")
	for _, c := range []struct {
		from, to string
		holds    bool
	}{
		{"Sun 12:00:00", "Tue 17:00:00", false}, {"Sun 12:00:00", "Tue 18:10:00", true},
		{"Mon 12:00:00", "Thu 05:00:00", false}, {"Mon 12:00:00", "Thu 06:10:00", true},
		{"Sat 22:00:00", "Mon 17:00:00", false},
		// What holds goes on to hold while a day that does not count goes by.
		{"Sun 12:00:00", "Wed 10:00:00", true}, {"Sun 12:00:00", "Wed 13:00:00", true}, {"Sun 12:00:00", "Wed 23:59:59", true},
	} {
		t.Run(c.from+" "+c.to, func(t *testing.T) {
			want(t, k.Hold(Case{Now: of(c.to), Since: of(c.from)}), c.holds, "")
		})
	}
	want(t, made(t, "waitExclude", "{duration: 1s, exclude: mon}").Hold(Case{Now: of("Tue 10:00:02"), Since: of("Tue 10:00:00")}), true, "")
	want(t, k.Hold(Case{Now: noon}), true, "") // since ever
	want(t, k.Hold(Case{Now: noon, Since: noon.AddDate(-3, 0, 0)}), true, "")
}

func TestTheDaysThatCount(t *testing.T) {
	w := wait{excludes: true}
	w.exclude[time.Saturday], w.exclude[time.Sunday] = true, true
	from := time.Date(2026, 1, 2, 18, 30, 0, 0, time.UTC)
	for to := from; to.Before(from.AddDate(0, 0, 40)); to = to.Add(97 * time.Minute) {
		var minutes time.Duration
		for m := from; m.Before(to); m = m.Add(time.Minute) {
			if d := m.Weekday(); d != time.Saturday && d != time.Sunday {
				minutes += time.Minute
			}
		}
		if got := w.counted(from, to); got != minutes {
			t.Fatalf("until %s: %s and not %s", to, got, minutes)
		}
	}
}

func TestPrometheus(t *testing.T) {
	held := func(expr string, s *Sample) Result {
		k := made(t, "prometheusInstant", "{url: 'http://p', query: up, expr: '"+expr+"'}")
		v := NewView(nil, nil)
		if s != nil {
			v.Samples = map[Query]Sample{{"http://p", "up"}: *s}
		}
		return k.Hold(Case{View: v})
	}
	for _, c := range []struct {
		expr  string
		value float64
		holds bool
	}{
		{"value > 5", 6, true}, {"value > 5", 5, false}, {"value >= 5 && value <= 5", 5, true}, {"!(value == 1) || value < 0", 2, true},
		{"value", 0.5, true}, {"value", 0, false}, {"value - 1", 1, false}, {"value * 2 + 1 == 7", 3, true}, {"-value < -1.5e0", 2, true}, {"value % 2", 4, false},
		{"true", 0, true}, {"false", 1, false}, {"value / 0 > 1", 1, true}, {"value != 3", 3, false},
	} {
		want(t, held(c.expr, &Sample{Value: c.value}), c.holds, "")
	}
	for _, s := range []*Sample{nil, {Error: "the query has 0 samples"}} {
		if r := held("value > 1", s); r.Error == "" || r.Holds {
			t.Errorf("%+v", r)
		}
	}
	for _, fact := range held("value", &Sample{Value: 1, Warnings: []string{"old", "slow"}}).Info {
		if fact.Key == "warns" && fact.Value != "old; slow" {
			t.Error(fact)
		}
	}
	if got := shown("https://me:hunter2@p/x"); got != "https://me:xxxxx@p/x" {
		t.Error(got)
	}
	k := made(t, "prometheusInstant", "{url: 'http://p', query: up, expr: value}")
	if got := NeedsOf([]Check{k, k}); len(got.Queries) != 1 || got.Pods {
		t.Errorf("%+v", got)
	}
}

func TestWhatIsWrongWithAConfiguration(t *testing.T) {
	for _, c := range []struct{ kind, config, want string }{
		{"hasLabel", "{}", "config.key: required"},
		{"hasLabel", "~", "config: required"},
		{"condition", "{type: Ready}", "config.status: required"},
		{"clusterSemver", "{profileScoped: maybe}", "config.key: required"},
		{"maxMaintenance", "{max: 0}", "config.max: required"},
		{"maxMaintenance", "{max: many}", "config.max: is \"many\", and a whole number is wanted"},
		{"maxMaintenance", "{max: 1, skipAfter: soon}", "config.skipAfter: is \"soon\", and a duration is wanted"},
		{"nodeCount", "{count: 0}", "config.count: required"},
		{"prometheusInstant", "{url: x}", "config.expr: required"},
		{"prometheusInstant", "{query: x, expr: value}", "config.url: required"},
		{"prometheusInstant", "{url: x, expr: 'value >'}", "config.expr: \"value >\" is not an expression"},
		{"prometheusInstant", "{url: x, expr: 'f(value)'}", "config.expr: only value"},
		{"prometheusInstant", "{url: x, expr: 'other > 1'}", "config.expr: there is no \"other\""},
		{"prometheusInstant", "{url: x, expr: 'value << 1'}", "config.expr: << is not known here"},
		{"prometheusInstant", "{url: x, expr: 'value > \"a\"'}", "config.expr: \"a\" is not a number"},
		{"stagger", "{leaseName: a, leaseNamespace: b}", "config.duration: required"},
		{"stagger", "{duration: 1m, leaseNamespace: b}", "config.leaseName: required"},
		{"stagger", "{duration: 1m, leaseName: a, leaseNamespace: b, parallel: 100000}", "config.parallel: 100000 is out of range"},
		{"timeWindow", "{start: '10:00', end: '11:00'}", "config.weekdays: required"},
		{"timeWindow", "{start: '24:00', end: '11:00', weekdays: mon}", "config.start: \"24:00\" is not a time of day"},
		{"timeWindow", "{start: '10:00', end: '11:00', weekdays: [mo]}", "config.weekdays[0]: \"mo\" is not a day of the week"},
		{"timeWindow", "{start: '10:00', end: '11:00', weekdays: mon, exclude: [24 Dec]}", "config.exclude[0]: \"24 Dec\" is not a day"},
		{"timeWindow", "{start: '10:00', end: '11:00', weekdays: mon, exclude: ['']}", "config.exclude[0]: \"\" is not a day"},
		{"timeWindow", "{windows: [{from: '10:00'}]}", "config.windows[0].to: required"},
		{"wait", "{duration: 60}", "config.duration: \"60\" is not a duration"},
		{"wait", "{}", "config.duration: required"},
		{"waitExclude", "{duration: 1h}", "config.exclude: required"},
		{"affinity", "{minOperational: few}", "config.minOperational: is \"few\""},
		{"cel", "{}", "config.expression: required"},
	} {
		t.Run(c.kind+" "+c.config, func(t *testing.T) {
			if _, err := configured(c.kind, c.config); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestKinds(t *testing.T) {
	want := "affinity anyLabel cel clusterSemver condition hasAnnotation hasLabel maxMaintenance nodeCount prometheusInstant stagger timeWindow wait waitExclude"
	if got := strings.Join(Kinds(), " "); got != want {
		t.Error(got)
	}
	for _, kind := range []string{"checkHypervisor", "hypervisorCondition", "kubernikusCount"} {
		if _, known := Read(kind, nil, Environment{}); known || !NotBuilt(kind) {
			t.Error(kind)
		}
	}
	if _, known := Read("HasLabel", nil, Environment{}); known || NotBuilt("HasLabel") {
		t.Error("names are case-sensitive")
	}
}

func TestCELThatWasNotCompiledFails(t *testing.T) {
	if r := ask(made(t, "cel", "{expression: 'true'}"), node("n")); r.Error == "" || r.Holds {
		t.Errorf("%+v", r)
	}
}
