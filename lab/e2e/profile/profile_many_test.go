package profile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/profile/state"
)

// many is a profile for all nodes without a label. A node that has a new generation goes through maintenance, whose end an agent says.
const many = `
intervals: {requeue: 10s}
instances:
  check:
  - {type: hasAnnotation, name: old, config: {key: cloud.sap/old, value: "true"}}
  - {type: hasAnnotation, name: done, config: {key: cloud.sap/done, value: "true"}}
  - {type: maxMaintenance, name: five, config: {max: 5}}
  trigger:
  - {type: alterAnnotation, name: clear, config: {key: cloud.sap/done, remove: true}}
  - {type: alterAnnotation, name: young, config: {key: cloud.sap/old, remove: true}}
profiles:
- name: default
  operational: {transitions: [{check: old, next: maintenance-required}]}
  maintenance-required: {transitions: [{check: five, next: in-maintenance}]}
  in-maintenance: {transitions: [{check: done, next: operational, trigger: clear && young}]}
`

// TestSlowFiveHundredNodesNeverHaveMoreInMaintenanceThanTheyMay kills the worker on the way, and resets and terminates the workflow that
// decides.
func TestSlowFiveHundredNodesNeverHaveMoreInMaintenanceThanTheyMay(t *testing.T) {
	t.Parallel()
	const nodes, rounds, most = 500, 30, 5
	m := prepareMachines(t, site.OwnLane(t, nodes), many, "")
	var all []string
	for _, n := range m.Nodes() {
		all = append(all, n.Name)
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	old := all[:rounds]
	m.StartWorker()
	m.Eventually("every node shows a state", func() error {
		for _, n := range m.Nodes() {
			if n.Labels[state.StateLabel] == "" {
				return errors.New(n.Name)
			}
		}
		return nil
	})
	d := m.follow()
	for _, node := range all { // all want to, at once
		m.annotate(node, "cloud.sap/old", "true")
	}
	finished := func() (done int) {
		for _, node := range all {
			if labels, _, _ := d.told(node); len(labels) > 1 && labels[len(labels)-1] == string(state.Operational) {
				done++
			}
		}
		return done
	}
	stop := make(chan struct{})
	var agents sync.WaitGroup
	agents.Go(func() { m.finishes(stop) })
	defer agents.Wait()
	defer close(stop)
	after := func(done int, what string, do func()) {
		m.Eventually(fmt.Sprintf("%d nodes are done", done), func() error {
			if n := finished(); n < done {
				return fmt.Errorf("%d are", n)
			}
			return nil
		})
		t.Logf("%s after %d nodes", what, finished())
		do()
	}
	after(rounds/6, "the worker is killed", func() {
		m.Worker.Kill()
		m.StartWorker()
	})
	after(2*rounds/6, "the workflow is reset", func() { m.ResetWorkflow(api.ProfilesID(m.Cluster), 50) })
	after(3*rounds/6, "the workflow is terminated", func() {
		if err := m.Temporal.TerminateWorkflow(m.Ctx, api.ProfilesID(m.Cluster), "", "a test"); err != nil {
			t.Fatal(err)
		}
	})
	after(rounds, "that will do", func() {})
	_, saw, err := d.told(old[0])
	if saw != most || err != nil {
		t.Errorf("%d nodes were in maintenance at one instant, want %d; %v", saw, most, err)
	}
	m.Exits(m.Drydock("profile", "list", "--state", "in-maintenance"), 0, "in-maintenance")
}

// finishes is what works on nodes: each is done a moment after it was given.
func (m *machines) finishes(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-m.Ctx.Done():
			return
		case <-time.After(200 * time.Millisecond):
		}
		for _, n := range m.nodesIn(state.Maintenance) {
			m.annotate(n, "cloud.sap/done", "true")
		}
	}
}
