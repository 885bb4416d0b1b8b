package profile

import (
	"context"
	"fmt"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/profile/state"
)

// visibilityLag is how long visibility may not know what has begun.
const visibilityLag = 2 * time.Second

// FindTransitions finds the transitions that run, which a Profiles that begins has to know before it decides anything. Visibility
// lags: it is asked twice, and then the scheduler, which knows all that take a node out of service. One that asks for its slot later is
// refused by itself: its Profiles does not know of it.
func (a *Activities) FindTransitions(ctx context.Context) (api.List[UnderWay], error) {
	var found api.List[UnderWay]
	seen, known := map[string]bool{}, map[Ref]bool{}
	for range 2 {
		select {
		case <-time.After(visibilityLag):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if err := a.listTransitions(ctx, func(u UnderWay) {
			if !seen[u.RunID] {
				seen[u.RunID], known[u.Ref] = true, true
				found = append(found, u)
			}
		}); err != nil {
			return nil, err
		}
	}
	err := newGate(ctx, a.Temporal).holders(ctx, func(u UnderWay) {
		if u.Profile != "" && !known[u.Ref] {
			known[u.Ref] = true
			found = append(found, u)
		}
	})
	return found, err
}

func (a *Activities) listTransitions(ctx context.Context, take func(UnderWay)) error {
	info := activity.GetInfo(ctx)
	request := &workflowservice.ListWorkflowExecutionsRequest{Namespace: a.Namespace, Query: fmt.Sprintf(
		`WorkflowType="%s" AND TaskQueue="%s" AND ExecutionStatus="Running"`, api.ProfileTransitionType, info.TaskQueue)}
	for {
		page, err := a.Temporal.ListWorkflow(ctx, request)
		if err != nil {
			return fmt.Errorf("listing the transitions of profiles: %w", err)
		}
		for _, found := range page.GetExecutions() {
			if u, is := underWay(info.WorkflowExecution.ID, found); is {
				take(u)
			}
		}
		activity.RecordHeartbeat(ctx)
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil
		}
	}
}

// underWay is a transition as its memo describes it. One without a memo counts as on its way into maintenance.
func underWay(parent string, info *workflowpb.WorkflowExecutionInfo) (UnderWay, bool) {
	_, profile, node, err := api.ParseProfileTransitionID(info.GetExecution().GetWorkflowId())
	if err != nil || info.GetParentExecution().GetWorkflowId() != parent {
		return UnderWay{}, false // it refuses by itself to do anything
	}
	u := UnderWay{Ref: Ref{profile, node}, RunID: info.GetExecution().GetRunId(), To: state.Maintenance, Began: info.GetStartTime().AsTime()}
	var memo TransitionMemo
	payload := info.GetMemo().GetFields()[MemoTransition]
	if payload != nil && converter.GetDefaultDataConverter().FromPayload(payload, &memo) == nil {
		u.UID, u.To, u.Enter = memo.UID, memo.To, memo.Enter
	}
	return u, true
}

// MemoTransition is where the memo of a ProfileTransition has a TransitionMemo.
const MemoTransition = "drydockTransition"

// TransitionMemo is what a list of transitions has of each.
type TransitionMemo struct {
	UID   string      `json:"uid"`
	To    state.State `json:"to"`
	Enter bool        `json:"enter,omitempty"`
}
