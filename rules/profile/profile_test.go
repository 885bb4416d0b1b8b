package profile

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/rules/profile/cel"
	"drydock.dev/drydock/rules/profile/check"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/rules/profile/trigger"
)

var now = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC) // a Monday

func environment() Environment {
	return Environment{
		Variable:    func(name string) (string, bool) { return "https://hooks.example/" + name, name == "HOOK" },
		Environment: check.Environment{CEL: cel.Compile},
	}
}

func load(t testing.TB, file string) *Config {
	t.Helper()
	c, err := Load([]byte(file), environment())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func loadFile(t testing.TB, name string) *Config {
	t.Helper()
	file, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return load(t, string(file))
}

// machine is a configuration with checks and triggers to be used by their letters: annotations a, b, c that make the checks of
// the same names hold, err which fails, and triggers t, u and notifications say, once.
func machine(profiles string) string {
	return `
intervals: {requeue: 1m}
instances:
  check:
  - {type: hasAnnotation, name: a, config: {key: a}}
  - {type: hasAnnotation, name: b, config: {key: b}}
  - {type: hasAnnotation, name: c, config: {key: c}}
  - {type: clusterSemver, name: err, config: {key: nowhere}}
  - {type: maxMaintenance, name: one, config: {max: 1}}
  - {type: stagger, name: stagger, config: {duration: 1h, leaseName: l, leaseNamespace: ns}}
  trigger:
  - {type: alterLabel, name: t, config: {key: t}}
  - {type: alterLabel, name: u, config: {key: u}}
  notify:
  - {type: slack, name: say, config: {hook: h, channel: c, message: m}, schedule: {type: periodic, config: {}}}
  - {type: slack, name: once, config: {hook: h, channel: c, message: m}, schedule: {type: oneshot, config: {}}}
profiles:
` + profiles
}

// cluster is nodes that evaluations are applied to.
type cluster struct {
	config *Config
	nodes  []Node
	facts  Facts
	now    time.Time
}

func newNode(name, profiles string, annotations ...string) Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}}}
	if profiles != "" {
		n.Labels[state.ProfileLabel] = profiles
	}
	for _, key := range annotations {
		n.Annotations[key] = "true"
	}
	return Node{Object: n, Busy: map[string]Busy{}}
}

func (c *cluster) decide() []Evaluation { return c.config.Decide(c.nodes, c.facts, c.now) }

func (c *cluster) node(name string) Node {
	if last := len(c.nodes) - 1; last >= 0 && c.nodes[last].Object.Name == name {
		return c.nodes[last]
	}
	return c.nodes[slices.IndexFunc(c.nodes, func(n Node) bool { return n.Object.Name == name })]
}

// write writes what an evaluation says at once.
func (c *cluster) write(e Evaluation) {
	if e.Problem != "" {
		return
	}
	n := c.node(e.Node).Object
	text, err := e.Data.Write()
	if err != nil {
		panic(err)
	}
	n.Annotations[state.DataAnnotation] = text
	n.Labels[state.StateLabel] = string(e.Label)
	for _, p := range e.Profiles {
		for _, claim := range p.Claims {
			if c.facts.Leases == nil {
				c.facts.Leases = map[check.LeaseName]check.Lease{}
			}
			c.facts.Leases[claim.LeaseName] = check.Lease{Holder: claim.Holder, Renewed: claim.At, For: claim.For}
		}
	}
}

// finish carries out what was begun for a profile of a node.
func (c *cluster) finish(node string, p Evaluated) {
	n := c.node(node)
	data := c.data(node)
	var err error
	if p.Move != nil {
		data, err = data.Move(p.Profile, p.Move.From, p.Move.To, c.now)
	} else {
		data, err = data.Enter(p.Profile, p.State)
	}
	delete(n.Busy, p.Profile)
	if err != nil {
		return // the profile is no longer in the label
	}
	for _, name := range append(slices.Clone(p.Enter), p.triggers()...) {
		if of, _ := c.config.Trigger(name); of.Of != nil {
			if change, ok := of.Of.(trigger.Change); ok {
				change.Apply(n.Object)
			}
		}
	}
	c.write(Evaluation{Node: node, Data: data, Label: c.config.Label(n.Object.Labels, data)})
}

func (p Evaluated) triggers() []string {
	if p.Move == nil {
		return nil
	}
	return p.Move.Triggers
}

func (c *cluster) data(node string) state.Data {
	d, err := state.Read(c.node(node).Object.Annotations[state.DataAnnotation])
	if err != nil {
		panic(err)
	}
	return d
}

// step evaluates, writes, and carries out all that was begun.
func (c *cluster) step() []Evaluation {
	all := c.decide()
	for _, e := range all {
		c.write(e)
	}
	c.now = c.now.Add(time.Second)
	for _, e := range all {
		for _, p := range e.Profiles {
			if p.Move != nil || len(p.Enter) > 0 {
				c.finish(e.Node, p)
			}
		}
	}
	c.now = c.now.Add(time.Minute)
	return all
}

func (c *cluster) state(node, profile string) state.State {
	return c.data(node).Profiles[profile].Current
}

func TestTheExamplesOfTheDocument(t *testing.T) {
	c := &cluster{config: loadFile(t, "document.yaml"), now: now, nodes: []Node{newNode("n", "os-patching"), newNode("plain", "")}}
	is := func(s state.State) {
		t.Helper()
		if got := c.state("n", "os-patching"); got != s {
			t.Fatalf("%s, and not %s", got, s)
		}
		if got := c.node("n").Object.Labels[state.StateLabel]; got != string(s) {
			t.Fatalf("the label says %s, and not %s", got, s)
		}
	}
	n := c.node("n").Object
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	c.step()
	is(state.Operational)
	if got := c.node("plain").Object.Labels[state.StateLabel]; got != "operational" {
		t.Error(got)
	}
	n.Annotations["os-patching/needed"] = "true"
	c.step()
	is(state.Required)
	due := c.step()[0].Profiles[0].Notify
	if len(due) != 1 || due[0].Instance != "notify_slack" {
		t.Fatalf("%+v", due)
	}
	of, _ := c.config.Notification("notify_slack")
	text, err := of.Of.Notice.Render(c.config.Parameters(n, "os-patching", c.data("n")))
	if err != nil || text.Text != "Node n is maintenance-required, by os-patching" {
		t.Error(text, err)
	}
	is(state.Required)
	n.Labels["maintenance-approved"] = "true"
	moved := c.step()[0].Profiles[0].Move
	if moved == nil || !slices.Equal(moved.Triggers, []string{"cordon_node", "remove_approval"}) {
		t.Fatalf("%+v", moved)
	}
	is(state.Maintenance)
	if _, there := n.Labels["maintenance-approved"]; there {
		t.Error("the approval is still there")
	}
	entered := c.step()[0].Profiles[0]
	if !slices.Equal(entered.Enter, []string{"drain_node", "reboot_ok"}) || entered.Transitions != nil {
		t.Fatalf("%+v", entered)
	}
	if n.Annotations["os-patching/reboot-ok"] != "true" {
		t.Error("it was not entered")
	}
	c.step()
	is(state.Maintenance)
	delete(n.Annotations, "os-patching/needed")
	c.step()
	is(state.Operational)
}

func TestTheFlatcarProfile(t *testing.T) {
	config := loadFile(t, "flatcar.yaml")
	const agent = "flatcar-linux-update.v1.flatcar-linux.net/"
	c := &cluster{config: config, now: now}
	for _, name := range []string{"a", "b", "c"} {
		c.nodes = append(c.nodes, newNode(name, "flatcar", agent+"reboot-needed"))
	}
	in := func() (names []string) {
		for _, n := range c.nodes {
			if c.state(n.Object.Name, "flatcar") == state.Maintenance {
				names = append(names, n.Object.Name)
			}
		}
		return names
	}
	c.step()
	c.step()
	if got := in(); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatal(got)
	}
	c.step()
	for _, name := range []string{"a", "b"} {
		n := c.node(name).Object
		if n.Annotations[agent+"reboot-ok"] != "true" {
			t.Errorf("%s may not reboot", name)
		}
		delete(n.Annotations, agent+"reboot-needed")
	}
	c.step()
	if got := in(); len(got) != 0 || c.node("a").Object.Annotations[agent+"reboot-ok"] != "" {
		t.Fatal(got)
	}
	c.step()
	if got := in(); !slices.Equal(got, []string{"c"}) {
		t.Fatal(got)
	}
	c.nodes[2].Object.Annotations = map[string]string{}
	c.now = now.Add(10 * time.Hour)
	c.step()
	if got := in(); len(got) != 0 {
		t.Error("what is forgotten begins anew", got)
	}
	if needs := config.Needs(); len(needs.Leases) != 2 || len(needs.Queries) != 0 {
		t.Errorf("%+v", needs)
	}
}

// Whatever is read is either refused with words, or decides about a node without a panic.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{"document.yaml", "flatcar.yaml", "wrong.yaml"} {
		file, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(file)
	}
	f.Add([]byte(machine("- {name: p, operational: {transitions: [{check: 'a && !(b || c)', next: in-maintenance}]}}")))
	f.Add([]byte("intervals: {requeue: 1m}\nprofiles: {a: b}\ninstances: ~"))
	f.Fuzz(func(t *testing.T, file []byte) {
		report := Lint(file, environment())
		c, err := Load(file, environment())
		if (err == nil) != (len(report.Problems) == 0) {
			t.Fatalf("lint finds %v, and load %v", report.Problems, err)
		}
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Fatal("it is refused without words")
			}
			return
		}
		for _, p := range c.Profiles {
			p.Mermaid()
			n := newNode("n", p.Name)
			for range 3 {
				c.Decide([]Node{n}, Facts{}, now)
			}
		}
	})
}
