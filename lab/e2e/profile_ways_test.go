package e2e

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
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
	m.patchNode(node, `{"metadata":{"annotations":{"cloud.sap/first-approved":"true","cloud.sap/second-approved":"true"}}}`)
	m.comes(node, "first", state.Maintenance)
	m.eventually("the other is told to wait", func() error {
		if r := m.drydock("profile", "explain", node); !strings.Contains(r.out(), "profile first has the node in maintenance") {
			return errors.New(r.out())
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
	m.eventually("the second is forgotten", func() error {
		n := m.node(node)
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

func TestAFileOfProfilesThatChanges(t *testing.T) {
	slow(t)
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
	m.eventually("the label goes by what the file has", func() error {
		if label := m.node(node).Labels[state.StateLabel]; label != string(state.Operational) {
			return errors.New(label)
		}
		return nil
	})
	m.flag(node, "a", "needed")
	m.comes(node, "a", state.Required)
	m.flag(node, "a", "approved")
	m.flag(node, "b", "done")
	m.eventually("it says that the profile is not there", func() error {
		if r := m.drydock("profile", "explain", node); !strings.Contains(r.out(), "the configuration does not have it; it stays in-maintenance") ||
			!strings.Contains(r.out(), "profile b has the node in maintenance") {
			return errors.New(r.out())
		}
		return nil
	})
	if is := m.data(node).Profiles["b"]; is.Current != state.Maintenance || !is.Transition.Equal(in.Transition) {
		t.Errorf("what the file lost became %+v", is)
	}

	// A bad file changes nothing but what is said.
	m.write(t, strings.Replace(one, "check: a_needed", "check: a_nedded", 1))
	m.eventually("the list says that the file is bad", func() error {
		if r := m.drydock("profile", "list"); r.status != 0 || !strings.Contains(r.out(), "a_nedded") {
			return errors.New(r.out())
		}
		return nil
	})
	m.eventually("the workflow and the log say it", func() error {
		s, err := m.profiles()
		warned := slices.ContainsFunc(strings.Split(m.logOf(m.worker), "\n"), func(line string) bool {
			return strings.Contains(line, "a_nedded") && strings.Contains(line, "WARN")
		})
		if err == nil && (!strings.Contains(s.Problem, "a_nedded") || !warned) {
			err = fmt.Errorf("the state says %q, the log ends with\n%s", s.Problem, m.worker.Tail())
		}
		return err
	})
	m.exits(m.drydock("profile", "lint", m.file), 2, "a_nedded")
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
	m.eventually("nothing is wrong any more", func() error {
		s, err := m.profiles()
		if err == nil && s.Problem != "" {
			err = errors.New(s.Problem)
		}
		return err
	})
	m.exits(m.drydock("profile", "lint", m.file), 0)
	m.exits(m.drydock("profile", "graph", "a", "--file", m.file), 0, "stateDiagram-v2", "a_needed")
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
	ns := m.namespace()
	m.deployment(ns, "web", 2, on(node))
	m.guarded(ns, "guarded", node)
	m.daemonSet(ns, "agent")
	bare := m.pod(ns, "bare", node, withEmptyDir)
	guarded := m.one(ns, "guarded")
	m.label(node, "drained")
	m.comes(node, "drained", state.Operational)
	m.annotate(node, "cloud.sap/approved", "true")
	m.comes(node, "drained", state.Maintenance)
	m.untilGone(*bare)
	m.eventually("only the pod with a budget is left", func() error {
		for name, pod := range m.podsOn(ns, node) {
			if app := pod.Labels["app"]; app != "agent" && app != "guarded" {
				return errors.New(name)
			}
		}
		return nil
	})
	m.mustStay(guarded)
	if n := m.node(node); !n.Spec.Unschedulable || n.Annotations["cloud.sap/empty"] != "" {
		t.Errorf("unschedulable %t, annotations %v", n.Spec.Unschedulable, n.Annotations)
	}
	m.eventually("the transition says what it waits for", func() error {
		r := m.drydock("profile", "explain", node)
		if !strings.Contains(r.out(), "on entering in-maintenance") {
			return errors.New(r.out())
		}
		return nil
	})
	// Another worker goes on with the drain.
	m.worker.Kill()
	m.startWorker()
	m.mustStay(guarded)
	m.allow(ns, "guarded")
	m.untilGone(guarded)
	m.eventually("it is empty", func() error {
		if m.node(node).Annotations["cloud.sap/empty"] != "true" {
			return errors.New("not yet")
		}
		return nil
	})
	m.rests()
	n := m.node(node)
	if mark, err := k8s.MarkOf(n); err != nil || len(mark.Holders) > 0 || n.Annotations[api.HoldersAnnotation] != "" || n.Labels[api.PhaseLabel] != "" {
		t.Errorf("Drydock's mark is left: %v, %v", n.Annotations, n.Labels)
	}
	if !n.Spec.Unschedulable || len(m.podsOn(ns, node)) != 1 {
		t.Errorf("unschedulable %t, pods %d", n.Spec.Unschedulable, len(m.podsOn(ns, node)))
	}
	m.annotate(node, "cloud.sap/approved", "")
	m.comes(node, "drained", state.Operational)
	m.mustBeFree(node)

	// Taken from the label while it drains: the drain ends, and the cordon stays, as maintenance-controller leaves it.
	m.deploymentReady(ns, "guarded", 1)
	m.budgetOn(ns, "again", map[string]string{"app": "guarded"}, 1)
	guarded = m.one(ns, "guarded")
	m.annotate(node, "cloud.sap/approved", "true")
	m.comes(node, "drained", state.Maintenance)
	m.eventually("it is being drained", func() error {
		if m.node(node).Annotations[api.HoldersAnnotation] == "" {
			return errors.New("not yet")
		}
		return nil
	})
	m.label(node)
	m.eventually("the drain ends", func() error {
		n := m.node(node)
		if n.Annotations[api.HoldersAnnotation] != "" {
			return fmt.Errorf("%s", n.Annotations[api.HoldersAnnotation])
		}
		return nil
	})
	m.rests()
	m.mustStay(guarded)
	if !m.node(node).Spec.Unschedulable {
		t.Error("it was uncordoned")
	}
}
