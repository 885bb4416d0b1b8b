package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/witness"
	"drydock.dev/drydock/lab/world"
)

// settle has everything finished, and waits until nothing is left of it; what is left at the deadline is a violation.
func (s *soak) settle(ctx context.Context, patience time.Duration) error {
	s.stack.receiver.calm()
	s.faults.recovering.Wait()
	deadline := time.Now().Add(patience)
	told := map[string]time.Time{}
	for {
		left := s.finish(ctx, told)
		if len(left) == 0 || ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(deadline) {
			for _, l := range left {
				s.journal.violated(Violation{At: time.Now(), Rule: ruleLeft, Node: l.node, What: l.what})
			}
			return nil
		}
		s.progressed(left)
		_ = world.Sleep(ctx, 2*time.Second) // what follows looks at the context
	}
}

// leftover is something that a maintenance left behind.
type leftover struct{ node, what string }

// finish thaws, ends what runs, and tells what is left.
func (s *soak) finish(ctx context.Context, told map[string]time.Time) (left []leftover) {
	s.operator.tidy(ctx)
	if err := s.fleet.look(ctx); err != nil {
		return []leftover{{what: "Temporal does not answer: " + err.Error()}}
	}
	s.controls.confirm(ctx)
	s.faults.lookAtWorkers(ctx)
	s.keepBridge(ctx)
	for _, id := range s.fleet.openOf(api.NodeMaintenanceType) {
		if time.Since(told[id]) > 8*time.Second {
			told[id] = time.Now()
			s.fleet.signal(ctx, id, api.MsgCancel, map[string]any{"by": "soak", "release": true}, "finish")
		}
	}
	for _, id := range s.fleet.openOf(api.NotificationType) {
		if s.tellsOfClosed(id) && time.Since(told[id]) > 30*time.Second {
			// What reports a maintenance that was terminated asks after it once a day; this makes it ask now.
			told[id] = time.Now()
			s.fleet.signal(ctx, id, api.SignalEvent, api.Moment{Sequence: 1 << 20, At: time.Now()}, "finish")
		}
	}
	for id, open := range s.fleet.openAll() {
		if open.kind != api.SchedulerType {
			_, node, _, _ := api.ParseMaintenanceID(id)
			left = append(left, leftover{node, fmt.Sprintf("%s %s runs (run %s)%s", open.kind, id, open.run, s.waitsFor(ctx, id, open.kind, len(left)))})
		}
	}
	left = append(left, s.leftInScheduler(ctx)...)
	left = append(left, s.leftOnNodes(ctx)...)
	left = append(left, s.stack.bridge.finish(ctx)...)
	slices.SortFunc(left, func(a, b leftover) int { return strings.Compare(a.what, b.what) })
	return left
}

// tellsOfClosed reports whether a Notification tells of one maintenance, which has ended.
func (s *soak) tellsOfClosed(id string) bool {
	parts := strings.Split(id, "/")
	if len(parts) < 5 {
		return false
	}
	_, open := s.fleet.openAll()[api.MaintenanceID("", parts[2], parts[3])]
	return !open
}

// waitsFor is what the first few say of themselves.
func (s *soak) waitsFor(ctx context.Context, id, kind string, before int) string {
	if kind != api.NodeMaintenanceType || before > 5 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	status, err := world.Ask[api.Status](ctx, s.stack.Temporal.Client, id, api.QueryStatus)
	if err != nil {
		return ": " + err.Error()
	}
	return fmt.Sprintf(": %s, waiting for %s", status.Phase, status.WaitingFor)
}

func (s *soak) leftInScheduler(ctx context.Context) (left []leftover) {
	state, err := s.controls.state(ctx)
	if err != nil {
		return []leftover{{what: "the scheduler does not answer: " + err.Error()}}
	}
	if len(state.Freezes) > 0 {
		s.controls.thaw(ctx, true)
		left = append(left, leftover{what: fmt.Sprintf("the scheduler is frozen: %+v", state.Freezes)})
	}
	if state.Rebuilding || state.Trouble != nil {
		left = append(left, leftover{what: fmt.Sprintf("the scheduler is rebuilding %v, its trouble %+v", state.Rebuilding, state.Trouble)})
	}
	for _, h := range state.Holders {
		left = append(left, leftover{h.Node, fmt.Sprintf("slot %s of %s is held since %s", h.RequestID, h.Requestor, h.GrantedAt.Format(time.TimeOnly))})
	}
	for _, p := range state.Pending {
		left = append(left, leftover{p.Node, fmt.Sprintf("request %s of %s waits: %s", p.ID, p.Requestor, p.Reason)})
	}
	for _, stray := range state.Strays {
		left = append(left, leftover{stray.Node, fmt.Sprintf("a stray mark: %+v", stray)})
	}
	if !s.controls.certain() {
		left = append(left, leftover{what: "nobody knows which limits are in force"})
	}
	return left
}

func (s *soak) leftOnNodes(ctx context.Context) (left []leftover) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	nodes, err := s.stack.Cluster.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return []leftover{{what: "the API server does not answer: " + err.Error()}}
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if now, before := witness.Imprint(n), s.imprints[n.Name]; now != before {
			left = append(left, leftover{n.Name, fmt.Sprintf("the node was %s; it is %s", before, now)})
		}
	}
	return left
}

// progressed prints how far it is, now and then.
func (s *soak) progressed(left []leftover) {
	if time.Since(s.said) >= progressEvery {
		s.said = time.Now()
		world.Say("finishing: %d things are left, such as: %s", len(left), short(left[0].what))
	}
}

// judgeObjects judges that no object had two maintenances. One that was deleted before the bridge saw it had none.
func (s *soak) judgeObjects(ctx context.Context) error {
	asked, had := 0, 0
	for _, m := range s.fleet.started {
		if !m.object {
			continue
		}
		asked++
		page, err := s.fleet.list(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("WorkflowId = '%s'", m.id)})
		if err != nil {
			return err
		}
		firsts := map[string]bool{}
		for _, e := range page.Executions {
			described, err := s.stack.Temporal.Client.DescribeWorkflowExecution(ctx, m.id, e.Execution.RunId)
			if err != nil {
				return err
			}
			firsts[described.WorkflowExecutionInfo.FirstRunId] = true
		}
		if len(firsts) > 0 {
			had++
		}
		if len(firsts) > 1 {
			s.journal.violated(Violation{At: time.Now(), Rule: ruleStarted, Node: m.node, What: fmt.Sprintf("object %s had %d maintenances", m.requestor, len(firsts))})
		}
	}
	world.Say("%d of %d objects had a maintenance", had, asked)
	if asked > 0 && had == 0 {
		return errors.New("no object had a maintenance: the bridge has done nothing")
	}
	return nil
}

// judgeRequests judges what the API server has on record of the workers' requests to end pods.
func (s *soak) judgeRequests() (ended int, err error) {
	requests, err := witness.EndedPods(s.stack.Audit, 0, namespace)
	s.watcher.mu.Lock()
	defer s.watcher.mu.Unlock()
	s.watcher.judge.pods.accepted(requests)
	return len(requests), err
}
