package profile

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/profile/state"
)

func TestOnlyOneProfileHasANodeInMaintenance(t *testing.T) {
	m := newMachines(t, flagged("first", "second"), "")
	const node = "worker-01"
	m.label(node, "first", "second")
	m.comes(node, "second", state.Operational)
	d := m.follow()
	for _, profile := range []string{"first", "second"} {
		m.flag(node, profile, "needed")
		m.comes(node, profile, state.Required)
	}
	// Both may from the same instant on.
	m.PatchNode(node, `{"metadata":{"annotations":{"cloud.sap/first-approved":"true","cloud.sap/second-approved":"true"}}}`)
	m.comes(node, "first", state.Maintenance)
	m.Eventually("the other is told to wait", func() error {
		if r := m.Drydock("profile", "explain", node); !strings.Contains(r.Out(), "profile first has the node in maintenance") {
			return errors.New(r.Out())
		}
		return nil
	})
	if is := m.data(node).Profiles["second"].Current; is != state.Required {
		t.Errorf("the second is %s", is)
	}
	m.flag(node, "first", "done")
	m.comes(node, "second", state.Maintenance)

	// Taken from the label midway, it is forgotten; what it has begun with the node is not undone, and it begins anew.
	m.label(node, "first")
	m.Eventually("the second is forgotten", func() error {
		n := m.Node(node)
		if _, there := m.data(node).Profiles["second"]; there || n.Labels[state.StateLabel] != string(state.Operational) {
			return fmt.Errorf("%v, %s", m.data(node), n.Labels[state.StateLabel])
		}
		return nil
	})
	m.annotate(node, "cloud.sap/second-needed", "")
	m.label(node, "first", "second")
	m.comes(node, "second", state.Operational)
	m.rests()
	if _, _, err := d.told(node); err != nil {
		t.Error(err)
	}
}

func TestSlowAFileOfProfilesThatChanges(t *testing.T) {
	both, one := flagged("a", "b"), flagged("a")
	m := newMachines(t, both, "")
	const node = "worker-01"
	m.label(node, "b", "a")
	m.comes(node, "b", state.Operational)
	m.flag(node, "b", "needed")
	m.flag(node, "b", "approved")
	in := m.comes(node, "b", state.Maintenance)
	m.rests()

	// Away from the file: kept, not looked at, not in the label; and still nobody else takes the node.
	m.write(t, one)
	m.Eventually("the label goes by what the file has", func() error {
		if label := m.Node(node).Labels[state.StateLabel]; label != string(state.Operational) {
			return errors.New(label)
		}
		return nil
	})
	m.flag(node, "a", "needed")
	m.comes(node, "a", state.Required)
	m.flag(node, "a", "approved")
	m.flag(node, "b", "done")
	m.Eventually("it says that the profile is not there", func() error {
		if r := m.Drydock("profile", "explain", node); !strings.Contains(r.Out(), "the configuration does not have it; it stays in-maintenance") ||
			!strings.Contains(r.Out(), "profile b has the node in maintenance") {
			return errors.New(r.Out())
		}
		return nil
	})
	if is := m.data(node).Profiles["b"]; is.Current != state.Maintenance || !is.Transition.Equal(in.Transition) {
		t.Errorf("what the file lost became %+v", is)
	}

	// A bad file changes nothing but what is said.
	m.write(t, strings.Replace(one, "check: a_needed", "check: a_nedded", 1))
	m.Eventually("the list says that the file is bad", func() error {
		if r := m.Drydock("profile", "list"); r.Status != 0 || !strings.Contains(r.Out(), "a_nedded") {
			return errors.New(r.Out())
		}
		return nil
	})
	m.Eventually("the workflow and the log say it", func() error {
		s, err := m.profiles()
		warned := slices.ContainsFunc(strings.Split(m.LogOf(m.Worker), "\n"), func(line string) bool {
			return strings.Contains(line, "a_nedded") && strings.Contains(line, "WARN")
		})
		if err == nil && (!strings.Contains(s.Problem, "a_nedded") || !warned) {
			err = fmt.Errorf("the state says %q, the log ends with\n%s", s.Problem, m.Worker.Tail())
		}
		return err
	})
	m.Exits(m.Drydock("profile", "lint", m.file), 2, "a_nedded")
	m.label("worker-02", "a")
	m.comes("worker-02", "a", state.Operational)
	m.flag("worker-02", "a", "needed")
	m.comes("worker-02", "a", state.Required)
	if err := os.Remove(m.file); err != nil {
		t.Fatal(err)
	}
	m.flag("worker-02", "a", "approved")
	m.comes("worker-02", "a", state.Maintenance)

	// Put back, it goes on where it was.
	m.write(t, both)
	m.comes(node, "b", state.Operational)
	m.comes(node, "a", state.Maintenance)
	m.Eventually("nothing is wrong any more", func() error {
		s, err := m.profiles()
		if err == nil && s.Problem != "" {
			err = errors.New(s.Problem)
		}
		return err
	})
	m.Exits(m.Drydock("profile", "lint", m.file), 0)
	m.Exits(m.Drydock("profile", "graph", "a", "--file", m.file), 0, "stateDiagram-v2", "a_needed")
}

// drained is a profile that drains on entering.
const drained = `
intervals: {requeue: 2s}
instances:
  check:
  - {type: hasAnnotation, name: approved, config: {key: cloud.sap/approved, value: "true"}}
  - {type: hasAnnotation, name: empty, config: {key: cloud.sap/empty, value: "true"}}
  trigger:
  - {type: eviction, name: drain, config: {action: drain}}
  - {type: eviction, name: uncordon, config: {action: uncordon}}
  - {type: alterAnnotation, name: empty, config: {key: cloud.sap/empty, value: "true"}}
  - {type: alterAnnotation, name: disapprove, config: {key: cloud.sap/approved, remove: true}}
  - {type: alterAnnotation, name: clear, config: {key: cloud.sap/empty, remove: true}}
profiles:
- name: drained
  operational: {transitions: [{check: approved, next: in-maintenance}]}
  in-maintenance:
    enter: drain && empty
    transitions: [{check: empty && !approved, next: operational, trigger: uncordon && clear}]
`

func TestAProfileDrainsItsNode(t *testing.T) {
	m := newMachines(t, drained, "")
	const node = "worker-01"
	ns := m.Namespace()
	m.Deployment(ns, "web", 2, site.On(node))
	m.Guarded(ns, "guarded", node)
	m.DaemonSet(ns, "agent")
	bare := m.Pod(ns, "bare", node, site.WithEmptyDir)
	guarded := m.One(ns, "guarded")
	m.label(node, "drained")
	m.comes(node, "drained", state.Operational)
	m.annotate(node, "cloud.sap/approved", "true")
	m.comes(node, "drained", state.Maintenance)
	m.UntilGone(*bare)
	m.Eventually("only the pod with a budget is left", func() error {
		for name, pod := range m.PodsOn(ns, node) {
			if app := pod.Labels["app"]; app != "agent" && app != "guarded" {
				return errors.New(name)
			}
		}
		return nil
	})
	m.MustStay(guarded)
	if n := m.Node(node); !n.Spec.Unschedulable || n.Annotations["cloud.sap/empty"] != "" {
		t.Errorf("unschedulable %t, annotations %v", n.Spec.Unschedulable, n.Annotations)
	}
	m.Eventually("the transition says what it waits for", func() error {
		r := m.Drydock("profile", "explain", node)
		if !strings.Contains(r.Out(), "on entering in-maintenance") {
			return errors.New(r.Out())
		}
		return nil
	})
	// Another worker goes on with the drain.
	m.Worker.Kill()
	m.StartWorker()
	m.MustStay(guarded)
	m.Allow(ns, "guarded")
	m.UntilGone(guarded)
	m.Eventually("it is empty", func() error {
		if m.Node(node).Annotations["cloud.sap/empty"] != "true" {
			return errors.New("not yet")
		}
		return nil
	})
	m.rests()
	n := m.Node(node)
	if mark, err := k8s.MarkOf(n); err != nil || len(mark.Holders) > 0 || n.Annotations[api.HoldersAnnotation] != "" || n.Labels[api.PhaseLabel] != "" {
		t.Errorf("Drydock's mark is left: %v, %v", n.Annotations, n.Labels)
	}
	if !n.Spec.Unschedulable || len(m.PodsOn(ns, node)) != 1 {
		t.Errorf("unschedulable %t, pods %d", n.Spec.Unschedulable, len(m.PodsOn(ns, node)))
	}
	m.annotate(node, "cloud.sap/approved", "")
	m.comes(node, "drained", state.Operational)
	m.MustBeFree(node)

	// Taken from the label while it drains: the drain ends, and the cordon stays, as maintenance-controller leaves it.
	m.Guard(ns, "guarded")
	guarded = m.One(ns, "guarded")
	m.annotate(node, "cloud.sap/approved", "true")
	m.comes(node, "drained", state.Maintenance)
	m.Eventually("it is being drained", func() error {
		if m.Node(node).Annotations[api.HoldersAnnotation] == "" {
			return errors.New("not yet")
		}
		return nil
	})
	m.label(node)
	m.Eventually("the drain ends", func() error {
		n := m.Node(node)
		if n.Annotations[api.HoldersAnnotation] != "" {
			return fmt.Errorf("%s", n.Annotations[api.HoldersAnnotation])
		}
		return nil
	})
	m.rests()
	m.MustStay(guarded)
	if !m.Node(node).Spec.Unschedulable {
		t.Error("it was uncordoned")
	}
}
