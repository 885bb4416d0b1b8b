package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

// kep is the status of a plan in the KEP's own shape: a line for each node, in the order of their names, with its targets and
// its message.
func kep(s *site.Site, name string) (lines []string, m api.KEPNodeMaintenance, err error) {
	s.Helper()
	said := s.Drydock("plan", "status", name, "-o", "kep")
	if said.Status != 0 {
		return nil, m, errors.New(said.Out()) // a worker that has much to do answers late
	}
	if err := yaml.UnmarshalStrict([]byte(said.Stdout), &m); err != nil {
		s.Fatal(err)
	}
	for _, n := range m.Status.NodeStatuses {
		var targets []string
		for _, e := range n.DrainTargets {
			targets = append(targets, fmt.Sprint(e.PodType, " ", e.PodPriority))
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s [%s]", name, n.NodeRef.Name, n.DrainMessage, strings.Join(targets, ", ")))
	}
	slices.Sort(lines)
	return lines, m, nil
}

// keps waits until the plans say this of their nodes.
func keps(s *site.Site, when string, want ...string) {
	s.Helper()
	var names []string
	for _, line := range want {
		if name, _, _ := strings.Cut(line, " "); len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	s.Eventually(when, func() error {
		var got []string
		for _, name := range names {
			lines, _, err := kep(s, name)
			if err != nil {
				return err
			}
			got = append(got, lines...)
		}
		if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
			return fmt.Errorf("the plans say\n%s\nwant\n%s", g, w)
		}
		return nil
	})
}

// together is the input of a plan all of whose nodes are drained at once, up to entries "TYPE PRIORITY".
func together(nodes []string, tiers ...string) string {
	var entries []string
	for _, t := range tiers {
		podType, priority, _ := strings.Cut(t, " ")
		entries = append(entries, fmt.Sprintf(`{"podType":%q,"podPriority":%s}`, podType, priority))
	}
	return fmt.Sprintf(`{"nodes":["%s"],"strategy":{"type":"allAtOnce"},"stage":"Drain","reason":"firmware","drainPlan":{"tiers":[%s],"include":[]}}`,
		strings.Join(nodes, `","`), strings.Join(entries, ","))
}

// The example of KEP-4212, "Pod Selection and DrainTargets Example": three plans that share a node. Budgets keep each node
// where the example has it.
func TestTheExampleOfTheKEP(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 10}")
	ns := s.Namespace()
	const one, two, three, four = "worker-01", "worker-02", "worker-03", "worker-04"
	before := s.Imprints()
	for _, p := range []struct {
		node       string
		priorities []int32
	}{{one, []int32{5000, 10000, 15000}}, {two, []int32{5000, 15000}}, {three, []int32{10000, 15000}}, {four, []int32{2000, 15000}}} {
		for _, priority := range p.priorities {
			name := fmt.Sprintf("%s-%d", p.node, priority)
			s.Guarded(ns, name, p.node, priorityOf(s, name, priority))
		}
	}
	empties := func(node string, priority int) { s.Allow(ns, fmt.Sprintf("%s-%d", node, priority)) }

	a := newPlan(s, "maintenance-a", together([]string{one, two}, "Default 5000", "Default 15000", "DaemonSet 3000"))
	b := newPlan(s, "maintenance-b", together([]string{one, three}, "Default 10000", "Default 15000", "DaemonSet 4000"))
	keps(s, "both begin",
		"maintenance-a worker-01: Evacuating [Default 5000]",
		"maintenance-a worker-02: Evacuating [Default 5000]",
		"maintenance-b worker-01: Evacuating (limited by maintenance-a) [Default 5000]",
		"maintenance-b worker-03: Evacuating [Default 10000]")
	s.Eventually("maintenance-b says how many pods wait", func() error {
		if _, m, err := kep(s, "maintenance-b"); err != nil || m.Spec.Stage != api.StageDrain || len(m.Status.StageStatuses) != 2 || m.Status.NodeStatuses[0].PodsPendingEvacuation != 1 ||
			m.Status.Conditions[0].Type != "Drained" || m.Status.Conditions[0].Status != "False" {
			return errors.Join(fmt.Errorf("it is %+v", m), err)
		}
		return nil
	})
	empties(three, 10000)
	keps(s, "three is drained",
		"maintenance-b worker-01: Evacuating (limited by maintenance-a) [Default 5000]",
		"maintenance-b worker-03: Waiting for node worker-01. [Default 10000]")
	empties(one, 5000)
	keps(s, "one is drained",
		"maintenance-a worker-01: Waiting for node worker-02. [Default 5000]",
		"maintenance-a worker-02: Evacuating [Default 5000]",
		"maintenance-b worker-01: Waiting for node worker-02 (maintenance-a). [Default 5000]",
		"maintenance-b worker-03: Waiting for node worker-02 (maintenance-a). [Default 10000]")
	empties(two, 5000)
	keps(s, "two is drained",
		"maintenance-a worker-01: Evacuating (limited by maintenance-b) [Default 10000]",
		"maintenance-a worker-02: Evacuating [Default 15000]",
		"maintenance-b worker-01: Evacuating [Default 10000]",
		"maintenance-b worker-03: Waiting for node worker-01. [Default 10000]")
	c := newPlan(s, "maintenance-c", together([]string{one, four}, "Default 2000", "Default 15000"))
	keps(s, "maintenance-c is fast-forwarded",
		"maintenance-b worker-01: Evacuating [Default 10000]",
		"maintenance-b worker-03: Waiting for node worker-01. [Default 10000]",
		"maintenance-c worker-01: Evacuating (fast-forwarded by older maintenance-b) [Default 10000]",
		"maintenance-c worker-04: Evacuating [Default 2000]")
	for _, node := range []string{one, two, three, four} {
		for _, pod := range s.PodsOn(ns, node) {
			if pod.Labels["app"] == node+"-15000" && node != two {
				s.MustStay(pod)
			}
		}
	}
	empties(one, 10000)
	empties(four, 2000)
	for _, node := range []string{one, two, three, four} {
		empties(node, 15000)
	}
	const all = "Default 15000"
	keps(s, "all are drained",
		"maintenance-a worker-01: Drained ["+all+", DaemonSet 4000]",
		"maintenance-a worker-02: Drained ["+all+", DaemonSet 3000]",
		"maintenance-b worker-01: Drained ["+all+", DaemonSet 4000]",
		"maintenance-b worker-03: Drained ["+all+", DaemonSet 4000]",
		"maintenance-c worker-01: Drained ["+all+", DaemonSet 4000]",
		"maintenance-c worker-04: Drained ["+all+"]")
	if _, m, err := kep(s, "maintenance-c"); err != nil || m.Status.Conditions[0].Status != "True" {
		t.Errorf("conditions %+v, %v", m.Status.Conditions, err)
	}

	// A node goes back when the last plan that holds it is complete.
	s.MustDrydock("plan", "set-stage", "maintenance-a", string(api.StageComplete), "--comment", "flashed")
	if status := planEnds(s, a); status.Phase != api.PlanCompleted {
		t.Errorf("maintenance-a ended %s: %s", status.Phase, status.Failure)
	}
	s.Back(two, before[two])
	if !s.Node(one).Spec.Unschedulable {
		t.Error("node one was given back while two plans hold it")
	}
	s.Exits(s.Drydock("plan", "set-stage", "maintenance-b", string(api.StageCordon)), 1, "no plan goes back")
	for _, name := range []string{"maintenance-b", "maintenance-c"} {
		s.MustDrydock("plan", "set-stage", name, string(api.StageComplete))
	}
	planEnds(s, b)
	planEnds(s, c)
	for _, node := range []string{one, three, four} {
		s.Back(node, before[node])
	}
}

// A plan whose nodes are more than a limit lets go at a time touches none of them, and goes on by the command that it names.
func TestAPlanThatIsLargerThanALimitWaitsForThat(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 2}")
	const one, two, three = "worker-01", "worker-02", "worker-03"
	before := s.Imprints()
	run := newPlan(s, "wide", together([]string{one, two, three}, "Default 1000"))
	const command = "drydock limits set --max-parallel 3"
	s.Eventually("the plan says what to do", func() error {
		lines, _, err := kep(s, "wide")
		if err != nil {
			return err
		}
		if all := strings.Join(lines, "\n"); strings.Count(all, command) != 3 {
			return fmt.Errorf("the plan says\n%s", all)
		}
		return nil
	})
	for _, node := range []string{one, two, three} {
		s.Back(node, before[node])
	}
	s.MustDrydock(strings.Fields(strings.TrimPrefix(command, "drydock "))...)
	keps(s, "all are drained",
		"wide worker-01: Drained [Default 1000]",
		"wide worker-02: Drained [Default 1000]",
		"wide worker-03: Drained [Default 1000]")
	s.MustDrydock("plan", "cancel", "wide", "--yes")
	if status := planEnds(s, run); status.Phase != api.PlanCancelled {
		t.Errorf("it ended %s: %s", status.Phase, status.Failure)
	}
	for _, node := range []string{one, two, three} {
		s.Back(node, before[node])
	}
}
