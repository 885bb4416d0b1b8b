package health

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// failer is a test, or a property.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	workers     = `"selector":{"matchLabels":{"role":"worker"}}`
	oneTemplate = `"remediationTemplate":{"apiVersion":"infra/v1","kind":"RebootTemplate","namespace":"fix","name":"reboot"}`
)

func escalating(timeouts ...string) string {
	var steps []string
	for i, timeout := range timeouts {
		steps = append(steps, fmt.Sprintf(`{"remediationTemplate":{"apiVersion":"infra/v1","kind":"RebootTemplate","namespace":"fix","name":"step-%d"},"order":%d,"timeout":%q}`, i+1, 10*(i+1), timeout))
	}
	return `"escalatingRemediations":[` + strings.Join(steps, ",") + `]`
}

func specOf(t failer, fields ...string) Spec {
	t.Helper()
	s, err := Decode([]byte("{" + strings.Join(append([]string{workers}, fields...), ",") + "}"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// cluster plays a check, what it sees and its remediations.
type cluster struct {
	t     failer
	spec  Spec
	state State
	now   time.Time
	nodes map[string]*Facts
	// last is the latest decision, events are all.
	last   Decision
	events []Event
	// running are the remediations by node.
	running map[string]*Progress
	runs    int
	// restart writes the state and reads it before each decision.
	restart bool
	// waiting are nodes whose remediation does not begin although it was decided on.
	waiting []string
}

func newCluster(t failer, s Spec, names ...string) *cluster {
	c := &cluster{t: t, spec: s, now: start, nodes: map[string]*Facts{}, running: map[string]*Progress{}, restart: true}
	for _, name := range names {
		c.nodes[name] = &Facts{Name: name, UID: "uid-" + name}
	}
	c.decide()
	c.watch()
	return c
}

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i+1)
	}
	return names
}

// watch tells the check of everything, as the watch would.
func (c *cluster) watch(change ...func(*Observation)) {
	c.t.Helper()
	o := Observation{Full: true, At: c.now}
	counts := map[string]*GroupCount{"": {}}
	for _, f := range c.nodes {
		for _, group := range slices.Compact([]string{"", f.Group}) {
			if f.Left {
				continue
			}
			if counts[group] == nil {
				counts[group] = &GroupCount{Group: group}
			}
			counts[group].Nodes++
			if len(f.Matches) > 0 {
				counts[group].Matching++
			}
		}
		if len(f.Matches) > 0 || c.running[f.Name] != nil {
			o.Nodes = append(o.Nodes, *f)
		}
	}
	for _, g := range counts {
		o.Groups = append(o.Groups, *g)
	}
	o.Upgrading, o.Disabled, o.DisabledReason = "", "", ""
	for _, change := range change {
		change(&o)
	}
	c.state.Observe(o)
	c.decide()
}

func (c *cluster) ill(name string, index int) {
	c.nodes[name].Matches = []Match{{Index: index, Since: c.now}}
	c.watch()
}

func (c *cluster) well(name string) {
	c.nodes[name].Matches = nil
	c.watch()
}

func (c *cluster) pass(d time.Duration) {
	c.now = c.now.Add(d)
	c.decide()
}

func (c *cluster) decide() {
	c.t.Helper()
	if c.restart {
		text, err := json.Marshal(c.state)
		if err != nil {
			c.t.Fatal(err)
		}
		c.state = State{}
		if err := json.Unmarshal(text, &c.state); err != nil {
			c.t.Fatal(err)
		}
	}
	c.last = Decide(Input{Spec: c.spec, State: c.state, Now: c.now, Waiting: c.waiting})
	c.state = c.last.State
	c.events = append(c.events, c.last.Events...)
	for _, b := range c.last.Begin {
		c.runs++
		c.running[b.Node] = &Progress{Node: b.Node, UID: b.UID, RunID: fmt.Sprintf("run-%d", c.runs), Revision: 1, Step: b.Step, StartedAt: c.now, ControlPlane: b.ControlPlane}
	}
}

// made has the remediation of a node make the object of its step.
func (c *cluster) made(name string) {
	c.t.Helper()
	p := c.remediation(name)
	p.Steps = append(p.Steps, StepState{Index: p.Step, StartedAt: c.now, Resource: &Resource{APIVersion: "infra/v1", Kind: "Reboot", Namespace: "fix", Name: name}})
	c.report(name)
}

func (c *cluster) remediation(name string) *Progress {
	c.t.Helper()
	if c.running[name] == nil {
		c.t.Fatalf("%s is not being remediated", name)
	}
	return c.running[name]
}

func (c *cluster) report(name string) {
	c.t.Helper()
	said := *c.remediation(name)
	said.Steps = slices.Clone(said.Steps)
	if !c.state.Report(said) {
		c.t.Fatalf("what the remediation of %s says does not count", name)
	}
	c.decide()
}

// obey has the remediation of a node take its latest order.
func (c *cluster) obey(name string) {
	c.t.Helper()
	p, order := c.remediation(name), c.order(name)
	p.Revision = order.Revision
	for i := range p.Steps {
		if slices.Contains(order.TimedOut, p.Steps[i].Index) && p.Steps[i].TimedOut == nil {
			at := c.now
			p.Steps[i].TimedOut = &at
		}
	}
	if p.Step != order.Step {
		p.Step = order.Step
		c.made(name)
		return
	}
	c.report(name)
}

// end has the remediation of a node end, as it was ordered to or for another reason.
func (c *cluster) end(name string, change ...func(*Progress)) {
	c.t.Helper()
	p := c.remediation(name)
	p.Ended, p.Revision = true, c.order(name).Revision
	for _, change := range change {
		change(p)
	}
	said := *p
	delete(c.running, name)
	if !c.state.Report(said) {
		c.t.Fatalf("the end of the remediation of %s does not count", name)
	}
	c.decide()
}

func (c *cluster) order(name string) Order {
	c.t.Helper()
	n, found := c.state.Node(name)
	if !found || n.Remediation == nil {
		c.t.Fatalf("%s is not being remediated", name)
	}
	return n.Remediation.Order
}

func (c *cluster) status() Status {
	return Look(Input{Spec: c.spec, State: c.state, Now: c.now}, 0, 0)
}

// announced counts the events of a reason.
func (c *cluster) announced(reason string) (n int) {
	for _, e := range c.events {
		if e.Reason == reason {
			n++
		}
	}
	return n
}

func (c *cluster) begun() []string {
	var names []string
	for name := range c.running {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (c *cluster) want(what string, ok bool) {
	c.t.Helper()
	if !ok {
		c.t.Fatalf("%s: begun %v, last decision %+v, status %+v", what, c.begun(), c.last, c.status())
	}
}
