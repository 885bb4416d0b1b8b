package health

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/api"
	rules "drydock.dev/drydock/rules/health"
)

// maxPeers bounds the checks that are compared for overlaps: the oldest ones.
const maxPeers = 200

// peer is a check that runs.
type peer struct {
	name      string
	createdAt time.Time
	selector  labels.Selector
}

// lookForPeers finds the checks that run, by their memos. One without a memo has not begun yet.
func (a *Activities) lookForPeers(ctx context.Context) error {
	queue := activity.GetInfo(ctx).TaskQueue
	request := &workflowservice.ListWorkflowExecutionsRequest{Namespace: a.Namespace, Query: fmt.Sprintf(
		"WorkflowType = '%s' AND TaskQueue = '%s' AND ExecutionStatus = 'Running'", api.HealthCheckType, queue)}
	var peers []peer
	for {
		page, err := a.Temporal.ListWorkflow(ctx, request)
		if err != nil {
			return fmt.Errorf("listing health checks: %w", err)
		}
		for _, info := range page.GetExecutions() {
			var memo api.HealthCheckMemo
			cluster, name, err := api.ParseHealthCheckID(info.GetExecution().GetWorkflowId())
			payload := info.GetMemo().GetFields()[api.MemoHealthCheck]
			if err != nil || cluster != api.ClusterOf(queue) || payload == nil || converter.GetDefaultDataConverter().FromPayload(payload, &memo) != nil {
				continue
			}
			if selector, err := labels.Parse(memo.Selector); err == nil && !selector.Empty() {
				peers = append(peers, peer{name, memo.CreatedAt, selector})
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			break
		}
	}
	slices.SortFunc(peers, func(a, b peer) int { return compareAge(a.name, a.createdAt, b.name, b.createdAt) })
	peers = peers[:min(len(peers), maxPeers)]
	same := slices.EqualFunc(peers, a.surroundings.latest().peers, func(a, b peer) bool {
		return a.name == b.name && a.createdAt.Equal(b.createdAt) && a.selector.String() == b.selector.String()
	})
	if !same {
		a.surroundings.set(func(s *snapshot) { s.peers, s.peersVersion = peers, s.version })
	}
	return nil
}

// compareAge orders checks by their age, the oldest first.
func compareAge(name string, created time.Time, other string, otherCreated time.Time) int {
	return cmp.Or(created.Compare(otherCreated), strings.Compare(name, other))
}

// overlap is the oldest of the checks, older than this one, that selects a node which this one selects too.
func (s *inventory) overlap(peers []peer) (found rules.Overlap) {
	for _, p := range peers {
		if p.name == s.in.Check || compareAge(p.name, p.createdAt, s.in.Check, s.in.CreatedAt) >= 0 {
			continue
		}
		for name, selected := range s.selected {
			if p.selector.Matches(labelsOf(selected.node)) && (found.Node == "" || name < found.Node) {
				found = rules.Overlap{Check: p.name, Node: name}
			}
		}
		if found.Check != "" {
			break
		}
	}
	return found
}

func labelsOf(node *corev1.Node) labels.Set { return labels.Set(node.Labels) }
