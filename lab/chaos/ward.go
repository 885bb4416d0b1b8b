package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/witness"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/health"
)

// healing is how a health check of the lane's nodes remediates them; empty is that there is no check.
type healing string

const (
	// byObjects: remediators do it, for which objects are made from two templates, one after the other.
	byObjects healing = "objects"
	// byMaintenance: a maintenance does, which has the node fenced and its pods moved.
	byMaintenance healing = "maintenance"
	// byControlPlane: it goes by objects, for nodes of the control plane, which the scheduler lets one at a time be remediated.
	byControlPlane healing = "control-plane"
)

const (
	// checkName is the check's name, broken the type of the condition that it goes by.
	checkName = "chaos"
	broken    = "ChaosBroken"
	// silentLabel has a played kubelet say nothing any more.
	silentLabel = world.NotReadyLabel
	// healsWithin bounds the remediations of a run: a watch of the nodes whose worker is lost is begun anew by the next worker, and a
	// remediation that failed after a minute.
	healsWithin = 8 * time.Minute
)

// ward is an attempt whose nodes fall ill, and are remediated by the health check of the lane's configuration.
type ward struct{ *attempt }

// heals says how nodes are remediated in the attempt, empty if they are maintained.
func (w ward) heals() healing { return shapeFor(w.cell).heals }

// shape is what a lane's Drydock is like.
type shape struct {
	// slots is how many of its nodes may be out of service at a time.
	slots int
	heals healing
	// profiles: its nodes may have profiles. Objects: it has a bridge.
	profiles, objects bool
}

// shapeFor is what a fault needs: a plan in lockstep takes both nodes.
func shapeFor(c cell) shape {
	if c.step.plan == together {
		return shape{slots: 2}
	}
	return shape{slots: 1, heals: c.step.heals, profiles: c.step.profile != "", objects: c.step.objects}
}

// role is the JSON of what the label of a control-plane node is set to on the lane's nodes: null takes it off.
func (s shape) role() string {
	if s.heals == byControlPlane {
		return `""`
	}
	return "null"
}

// healthConfig is the part of a worker's configuration that has the check. One of two nodes has to be healthy, so that one at a
// time is remediated.
func (s shape) healthConfig(lane string) string {
	if s.heals == "" {
		return ""
	}
	minHealthy, etcd := 1, ""
	if s.heals == byControlPlane { // the check itself lets both begin; there is no etcd to ask
		minHealthy, etcd = 0, "    controlPlane: {allow: always}\n"
	}
	text := fmt.Sprintf(`healthChecks:
  %s:
    selector: {matchLabels: {%s: %s}}
    minHealthy: %d
    unhealthyConditions:
    - {type: %s, status: "True", duration: 1s}
`, checkName, laneLabel, lane, minHealthy, broken) + etcd
	if s.heals == byMaintenance {
		return text + `    - {type: Ready, status: Unknown, duration: 1s}
    maintenance:
      outOfService: true
      input: {work: fence, drain: {plan: {tiers: ` + lockstepTiers + `, include: []}}, validation: {ready: true, deadline: 4m, every: 3s}}
`
	}
	text += "    escalatingRemediations:\n"
	for i, name := range []string{soft, hard} {
		text += fmt.Sprintf("    - {order: %d, timeout: 30m, remediationTemplate: {apiVersion: %s, kind: %sTemplate, namespace: %s, name: %s}}\n",
			i+1, remedyVersion, remedyKind, lane, name)
	}
	return text
}

// ready waits until the check has counted its nodes, and begins to count what is remediated anew.
func (w ward) ready(ctx context.Context) error {
	if w.heals() == "" {
		return nil
	}
	w.remedies.forget(w.name)
	return w.well(ctx, healsWithin)
}

// well waits until the check says that all nodes are healthy, and nothing goes on.
func (w ward) well(ctx context.Context, limit time.Duration) error {
	return world.Eventually(ctx, limit, "the health check finds all well", func() error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		s, err := world.Ask[api.HealthStatus](ctx, w.temporal.Client, api.HealthCheckID(w.cluster, checkName), api.QueryStatus, api.HealthStatusRequest{})
		if err == nil && (s.Phase != health.PhaseEnabled || s.ObservedNodes != 2 || s.HealthyNodes != 2 || s.Unhealthy+s.Remediating+s.Soon > 0) {
			err = fmt.Errorf("it is %s (%s), %d of %d healthy, %d under remediation, waits for %q, blocked by %q, nodes %+v",
				s.Phase, s.Reason, s.HealthyNodes, s.ObservedNodes, s.Remediating, s.WaitingFor, s.Blocked, s.UnhealthyNodes)
		}
		return err
	})
}

// fallIll has the nodes fall ill and recover, and waits until the check finds all well.
func (w ward) fallIll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healsWithin)
	defer cancel()
	var err error
	if w.heals() == byMaintenance {
		err = w.repair(ctx)
	} else {
		err = w.remediate(ctx)
	}
	return errors.Join(err, w.well(ctx, healsWithin))
}

// remediate has the first node fall ill, whose first remedy fails, and then the second one, which has to wait until nothing of the
// first one's remediation is left.
func (w ward) remediate(ctx context.Context) error {
	first, second := w.nodes[0], w.nodes[1]
	return inOrder(
		func() error { return w.isBroken(ctx, first, true) },
		func() error { return w.has(ctx, first, soft, true) },
		func() error { return w.rebuild(ctx) },
		func() error { return w.failSoft(ctx) }, // with both nodes ill no further step would begin
		func() error { return w.isBroken(ctx, second, true) },
		func() error { return w.isBroken(ctx, first, false) },
		func() error { return w.has(ctx, first, "", false) },
		func() error { return w.has(ctx, second, soft, true) },
		func() error { return w.isBroken(ctx, second, false) },
		func() error { return w.has(ctx, second, "", false) },
	)
}

// inOrder does one thing after the other, until one fails.
func inOrder(all ...func() error) error {
	for _, do := range all {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// failSoft says of the first node's first object that it did not help, until there is the second.
func (w ward) failSoft(ctx context.Context) error {
	return world.Eventually(ctx, healsWithin, "node "+w.nodes[0]+" has the next remedy", func() error {
		for _, o := range w.remedies.of(w.name, w.nodes[0], soft) {
			if _, said := o.Object["status"]; said {
				continue
			}
			if err := w.remedies.fail(ctx, o); err != nil {
				return err
			}
		}
		if len(w.remedies.of(w.name, w.nodes[0], hard)) == 0 {
			return errors.New("it has not")
		}
		return nil
	})
}

// has waits until a node has an object from a template, or none any more.
func (w ward) has(ctx context.Context, node, template string, is bool) error {
	return world.Eventually(ctx, healsWithin, fmt.Sprintf("node %s has a remediation object %s: %t", node, template, is), func() error {
		if found := w.remedies.of(w.name, node, template); (len(found) > 0) != is {
			return fmt.Errorf("it has %d", len(found))
		}
		return nil
	})
}

// repair has the first node's kubelet fall silent until its maintenance has fenced it, and the second fall ill meanwhile, which is
// not remediated.
func (w ward) repair(ctx context.Context) error {
	first, second := w.nodes[0], w.nodes[1]
	m := w.expect(first, api.RemediationRequestor(checkName))
	return inOrder(
		func() error { return w.isSilent(ctx, first, true) },
		func() error {
			return world.Eventually(ctx, healsWithin, "node "+first+" is being repaired", func() error { return w.repairs(ctx, m.id, "") })
		},
		func() error { return w.rebuild(ctx) },
		func() error { return w.isBroken(ctx, second, !w.comesBack()) },
		func() error {
			if w.comesBack() {
				return nil // by the fault
			}
			return world.Eventually(ctx, healsWithin, "node "+first+" is fenced", func() error { return w.repairs(ctx, m.id, fenced) })
		},
		func() error { return w.isBroken(ctx, second, false) },
		func() error {
			if w.comesBack() {
				return nil
			}
			return w.isSilent(ctx, first, false)
		},
		func() error { return w.untilEnded(ctx, m) },
	)
}

// fenced is how a maintenance says that its node is out of service no more: it waits for the kubelet.
const fenced = string(api.Validating) + ", waiting for the validation"

// repairs reports whether a maintenance has begun in this attempt and says that of itself.
func (w ward) repairs(ctx context.Context, id, says string) error {
	described, err := w.temporal.Client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return err
	}
	if info := described.WorkflowExecutionInfo; info.StartTime.AsTime().Before(w.since) {
		return errors.New("it is not")
	}
	if said := w.statusOf(id); !strings.HasPrefix(said, says) {
		return errors.New(said)
	}
	return nil
}

// isBroken has a node fall ill by its condition, or recover.
func (s *stack) isBroken(ctx context.Context, node string, is bool) error {
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	return world.SetCondition(ctx, s.kube, node, broken, status, time.Now())
}

// isSilent has a node's kubelet fall silent, or answer again.
func (s *stack) isSilent(ctx context.Context, node string, is bool) error {
	label := "null"
	if is {
		label = `"unknown"`
	}
	return world.PatchNode(ctx, s.kube, node, `{"metadata":{"labels":{%q:%s}}}`, silentLabel, label)
}

// rebuild ends the check by force, where that is what the step is about: the worker starts another.
func (w ward) rebuild(ctx context.Context) error {
	if !w.cell.step.rebuild {
		return nil
	}
	return world.Eventually(ctx, patience, "ending the check", func() error { return w.terminate(ctx, api.HealthCheckID(w.cluster, checkName)) })
}

// hasHealed is what the objects, the leases and the API server's audit log tell of the remediations.
func (w ward) hasHealed(ctx context.Context) error {
	if w.heals() == "" {
		return nil
	}
	var problems []error
	if left := w.remedies.of(w.name, "", ""); len(left) > 0 {
		problems = append(problems, fmt.Errorf("%d remediation objects are left", len(left)))
	}
	for _, node := range w.nodes {
		problems = append(problems, world.Eventually(ctx, patience, "the lease of "+node+" is given back", func() error {
			_, err := w.kube.CoordinationV1().Leases(leasesNamespace).Get(ctx, "node-"+node, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(err, errors.New("it is there"))
		}))
	}
	most, err := w.remedies.mostNodes(w.name)
	wantMost, wantMade := 1, 3
	if w.heals() == byMaintenance {
		wantMost, wantMade = 0, 0
	}
	if err == nil && most != wantMost {
		err = fmt.Errorf("%d nodes were remediated at one instant, want %d", most, wantMost)
	}
	problems = append(problems, err)
	made, err := witness.Created(w.audit, w.from, w.name, remedyResource)
	if err == nil && len(made) != wantMade {
		err = fmt.Errorf("%d remediation objects were made (%s), want %d: one for each step", len(made), strings.Join(made, ", "), wantMade)
	}
	problems = append(problems, err)
	if w.heals() == byMaintenance {
		problems = append(problems, w.isUntouched(ctx, w.nodes[1]))
	}
	return errors.Join(problems...)
}

// isUntouched reports a remediation of a node that should have had none in the attempt.
func (w ward) isUntouched(ctx context.Context, node string) error {
	described, err := w.temporal.Client.DescribeWorkflowExecution(ctx, api.RemediationID(w.cluster, checkName, node), "")
	if err == nil && described.WorkflowExecutionInfo.StartTime.AsTime().After(w.since) {
		return fmt.Errorf("node %s was remediated beside the other, though one of two has to be healthy", node)
	}
	return nil
}

// recover makes the lane's nodes healthy, and removes what remediated them.
func (s *stack) recover(ctx context.Context, l *lane) error {
	if s.remedies == nil {
		return nil
	}
	problems := []error{s.remedies.clear(ctx, l.name)}
	for _, node := range l.nodes {
		problems = append(problems, s.isBroken(ctx, node, false), s.isSilent(ctx, node, false))
		err := s.kube.CoordinationV1().Leases(leasesNamespace).Delete(ctx, "node-"+node, metav1.DeleteOptions{})
		if !apierrors.IsNotFound(err) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}
