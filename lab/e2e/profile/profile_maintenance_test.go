package profile

import (
	"errors"
	"testing"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/witness"
	"drydock.dev/drydock/rules/profile/state"
)

// maintained is a profile whose nodes are maintained by Drydock while it has them in maintenance.
const maintained = `
intervals: {requeue: 2s}
instances:
  check:
  - {type: hasAnnotation, name: needed, config: {key: cloud.sap/needed, value: "true"}}
  trigger:
  - {type: maintenance, name: maintain, config: {reason: a new kernel, drain: {mode: evict}}}
profiles:
- name: kernel
  operational: {transitions: [{check: needed, next: in-maintenance, trigger: maintain}]}
  in-maintenance: {transitions: [{check: "!needed", next: operational}]}
`

// ofProfile is the present maintenance of a profile.
func (m *machines) ofProfile(node, profile string) client.WorkflowRun {
	return m.Temporal.GetWorkflow(m.Ctx, api.MaintenanceID(m.Cluster, node, api.ProfileRequestor(profile)), "")
}

// drains waits until the maintenance of a profile drains its node, whichever run that is.
func (m *machines) drains(node, profile string) client.WorkflowRun {
	m.Helper()
	var run client.WorkflowRun
	m.Eventually("the maintenance of "+node+" is Draining", func() error {
		run = m.ofProfile(node, profile)
		status, err := m.Status(run)
		if err == nil && status.Phase != api.Draining {
			err = errors.New(string(status.Phase))
		}
		return err
	})
	return run
}

func TestAProfileHasItsNodesMaintained(t *testing.T) {
	m := newMachines(t, maintained, "scheduler: {maxParallel: 1}")
	const node = "worker-01"
	ns := m.Namespace()
	m.Guarded(ns, "guarded", node)
	m.label(node, "kernel")
	m.comes(node, "kernel", state.Operational)
	before := m.imprintWithout(node)

	// The state is another only once the node is Ready for whoever works on it.
	m.annotate(node, "cloud.sap/needed", "true")
	m.drains(node, "kernel")
	if is := m.data(node).Profiles["kernel"].Current; is != state.Operational {
		t.Errorf("while its node is drained the profile is %s", is)
	}
	m.Exits(m.Drydock("profile", "explain", node), 0, "on its way to in-maintenance")
	m.Allow(ns, "guarded")
	m.comes(node, "kernel", state.Maintenance)
	run := m.ofProfile(node, "kernel")
	status := m.Until(run, api.Ready)
	if status.Spec.Reason != "a new kernel" {
		t.Errorf("its reason is %q", status.Spec.Reason)
	}
	m.MustBeHeld(node, status.RunID)
	m.Exits(m.Drydock("start", node, "--not-before", "48h"), 0, "the node is in-maintenance by profile kernel too", "drydock profile explain "+node)
	m.MustDrydock("cancel", node, "--requestor", "ops", "--wait")
	m.annotate(node, "cloud.sap/needed", "")
	m.comes(node, "kernel", state.Operational)
	m.MustEnd(run, api.Completed)
	m.gaveBack(node, before)

	// Taken from the label while it is Ready, and while it is drained.
	m.annotate(node, "cloud.sap/needed", "true")
	m.comes(node, "kernel", state.Maintenance)
	run = m.ofProfile(node, "kernel")
	m.Until(run, api.Ready)
	m.label(node)
	if result, _ := m.End(run); result.Phase != api.Cancelled && result.Phase != api.Completed {
		t.Errorf("without its profile the maintenance ended %s: %s", result.Phase, result.Message)
	}
	m.label(node, "kernel")
	m.comes(node, "kernel", state.Maintenance)
	m.Until(m.ofProfile(node, "kernel"), api.Ready)
	m.annotate(node, "cloud.sap/needed", "")
	m.comes(node, "kernel", state.Operational)
	m.gaveBack(node, before)

	m.Guard(ns, "guarded")
	m.annotate(node, "cloud.sap/needed", "true")
	run = m.drains(node, "kernel")
	m.label(node)
	if result, _ := m.End(run); result.Phase != api.Cancelled {
		t.Errorf("without its profile the maintenance ended %s: %s", result.Phase, result.Message)
	}
	m.rests()
	m.MustBeFree(node)
	if is := m.data(node).Profiles["kernel"]; is.Current != "" {
		t.Errorf("profile kernel is %s without being in the label", is.Current)
	}
}

// imprintWithout is what a maintenance could leave behind on a node.
func (m *machines) imprintWithout(node string) string {
	n := m.Node(node)
	delete(n.Annotations, state.DataAnnotation)
	delete(n.Annotations, "cloud.sap/needed")
	return witness.Imprint(n)
}

// gaveBack waits until a node is as it was but for the state of its profiles.
func (m *machines) gaveBack(node, before string) {
	m.Helper()
	m.Eventually("node "+node+" was given back", func() error {
		if after := m.imprintWithout(node); after != before {
			return errors.New("before " + before + ", after " + after)
		}
		return nil
	})
}
