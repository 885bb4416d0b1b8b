package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/plan"
)

// maintained is a maintenance of an attempt. Its first run names it, however often it is reset.
type maintained struct {
	node, requestor, id string
	first               string
	done, told, failed  time.Time
}

// whole means that the maintenance comes to every step.
func (m *maintained) whole() bool {
	return strings.HasPrefix(m.requestor, chaosRequestor+"-") || strings.HasPrefix(m.requestor, plan.RequestorOf(chaosRequestor+"-")) || m.requestor == api.PlansRequestor
}

// inventory is what several goroutines know of the maintenances that were started.
type inventory struct {
	mu  sync.Mutex
	all []maintained
}

// expect adds a maintenance of this attempt, which is about to be started.
func (a *attempt) expect(node, requestor string) *maintained {
	m := maintained{node: node, requestor: requestor, id: api.MaintenanceID(a.cluster, node, requestor)}
	a.begun.mu.Lock()
	defer a.begun.mu.Unlock()
	a.begun.all = append(a.begun.all, m)
	return &m
}

// maintained are the maintenances of this attempt that were started, or are being started.
func (a *attempt) maintained() []maintained {
	a.begun.mu.Lock()
	defer a.begun.mu.Unlock()
	return slices.Clone(a.begun.all)
}

// maintain has some nodes maintained by one requestor, who is done as soon as it sees its node Ready, and waits for the
// maintenances' ends.
func (a *attempt) maintain(ctx context.Context, requestor, fields string, limit time.Duration, nodes ...string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	requestor = fmt.Sprintf("%s-%d", requestor, a.runs)
	var all []*maintained
	for _, node := range nodes {
		m, err := a.begin(ctx, requestor, fields, node)
		if err != nil {
			return err
		}
		all = append(all, m)
	}
	return tend(ctx, a, all)
}

// tend does for maintenances what their requestor does, until they have ended.
func tend(ctx context.Context, a *attempt, all []*maintained) error {
	ended := make(chan error, len(all))
	for _, m := range all {
		go func() { ended <- a.untilEnded(ctx, m) }()
	}
	disturbed := false
	var problems []error
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for left := len(all); left > 0; {
		for _, m := range all {
			a.identify(ctx, m)
			a.speak(ctx, m)
			if time.Since(m.done) < doneAgain || mustWork(ctx, a, m) || a.mustFail(ctx, m) || !a.isReady(m) {
				continue
			}
			if !disturbed {
				if err := disturb(ctx, a); err != nil {
					continue // Temporal may be away
				}
				disturbed = true
			}
			// Without a run: it may have been reset since.
			if a.temporal.Client.SignalWorkflow(ctx, m.id, "", api.MsgDone, api.Done{Run: m.first}) == nil {
				m.done = time.Now()
			}
		}
		select {
		case err := <-ended:
			left--
			problems = append(problems, err)
		case <-tick.C:
		}
	}
	return errors.Join(problems...)
}

// disturb does once, while a node is Ready, what the step needs besides its fault.
func disturb(ctx context.Context, a *attempt) error {
	switch {
	case a.cell.step.rebuild:
		return a.replaceScheduler(ctx)
	case a.cell.step.plan == anew:
		_, err := a.resetPlan(ctx)
		return err
	}
	return nil
}

// begin starts a maintenance. The fault may happen before that is done.
func (a *attempt) begin(ctx context.Context, requestor, fields, node string) (*maintained, error) {
	m := a.expect(node, requestor)
	err := world.Eventually(ctx, time.Minute, "starting the maintenance of "+node, func() error {
		run, err := a.startWorkflow(ctx, m.id, api.NodeMaintenanceType, json.RawMessage(fmt.Sprintf(`{"node":%q,"requestor":%q%s}`, node, requestor, fields)))
		if err == nil {
			m.first = run.GetRunID()
		}
		return err
	})
	return m, err
}

// isReady reports whether the node says of itself that it is Ready for this maintenance, or that the work on it failed.
func (a *attempt) isReady(m *maintained) bool {
	n := a.observer.node(m.node)
	if n == nil {
		return false
	}
	phase := api.Phase(n.Labels[api.PhaseLabel])
	return (phase == api.Ready || phase == api.RequestorFailed && !m.failed.IsZero()) && holds(n, m)
}

// holds reports whether a maintenance holds a node, which says so itself.
func holds(n *corev1.Node, m *maintained) bool {
	mark, err := k8s.MarkOf(n)
	return err == nil && len(mark.Holders) == 1 && mark.Holders[0].RunID == m.first
}

// sayAgain is after how long a maintenance is told once more what the step is about: what comes before its drain is ignored.
const sayAgain = 2 * time.Second

// speak tells the maintenance of the first node what the step is about, as long as it holds the node and the fault has not
// happened.
func (a *attempt) speak(ctx context.Context, m *maintained) {
	if a.cell.step.says == nil || m.node != a.nodes[0] || !m.whole() || time.Since(m.told) < sayAgain || a.trap.place() != "" {
		return
	}
	if n := a.observer.node(m.node); n == nil || !holds(n, m) {
		return
	}
	// A DaemonSet's pod is of the last tier: the drain is still at the first one, which the budget keeps from its end.
	pods, err := a.kube.CoreV1().Pods(a.name).List(ctx, metav1.ListOptions{LabelSelector: "app=agent", FieldSelector: "spec.nodeName=" + m.node})
	if err != nil || len(pods.Items) == 0 {
		return // it is tried again
	}
	who := api.Message{By: "chaos", Comment: "what the step is about"}
	message, payload := a.cell.step.says(who, m.first, k8s.PodName(&pods.Items[0]))
	// Without a run: it may have been reset since.
	if a.temporal.Client.SignalWorkflow(ctx, m.id, "", message, payload) == nil {
		m.told = time.Now()
	}
}

// untilEnded waits for the end of a maintenance, which must be its completion. Temporal may be away meanwhile, and a run
// that was reset is not the end.
func (a *attempt) untilEnded(ctx context.Context, m *maintained) error {
	for {
		var result api.Result
		err := a.temporal.Client.GetWorkflow(ctx, m.id, "").GetWithOptions(ctx, &result, client.WorkflowRunGetOptions{DisableFollowingRuns: true})
		var end *temporal.WorkflowExecutionError
		switch {
		case err == nil && result.Phase == api.Completed:
			return nil
		case err == nil:
			return fmt.Errorf("the maintenance of %s ended %s: %s", m.node, result.Phase, result.Message)
		case errors.As(err, &end) && !a.goesOn(ctx, m.id):
			return err
		}
		if world.Sleep(ctx, 300*time.Millisecond) != nil {
			return fmt.Errorf("the maintenance of %s did not end: %s", m.node, a.statusOf(m.id))
		}
	}
}

// goesOn reports whether a workflow whose run ended has another, or was completed by it.
func (l *lane) goesOn(ctx context.Context, id string) bool {
	described, err := l.temporal.Client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return true // it is asked again
	}
	status := described.WorkflowExecutionInfo.Status
	return status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING || status == enums.WORKFLOW_EXECUTION_STATUS_COMPLETED
}

// statusOf tells a person what a maintenance waits for.
func (l *lane) statusOf(id string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	status, err := world.Ask[api.Status](ctx, l.temporal.Client, id, api.QueryStatus)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s, waiting for %s", status.Phase, status.WaitingFor)
}
