package execution

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
)

// Inventory is what can be found out about maintenances without the scheduler.
type Inventory struct {
	// Marked are the holders written on nodes that still run, Ended those that do not.
	Marked api.List[MarkedHolder] `json:"marked,omitempty"`
	Ended  api.List[MarkedHolder] `json:"ended,omitempty"`
	// Strays are marks that are no holder's, at most MaxStrays of them, and StraysAll counts them.
	Strays    api.List[api.StrayMark] `json:"strays,omitempty"`
	StraysAll int                     `json:"straysAll,omitempty"`
	// Running are those that run, marked or not, More where the next of them begin.
	Running []Run  `json:"running,omitempty"`
	More    []byte `json:"more,omitempty"`
}

// MaxStrays bounds the stray marks that are reported.
const MaxStrays = 500

// stray adds a mark that is no holder's.
func (i *Inventory) stray(mark api.StrayMark) {
	if i.StraysAll++; len(i.Strays) < MaxStrays {
		i.Strays = append(i.Strays, mark)
	}
}

// MarkedHolder is a holder as its node's mark names it; its RunID is the first of its chain.
type MarkedHolder struct {
	Run
	Node      string    `json:"node"`
	Requestor string    `json:"requestor"`
	Since     time.Time `json:"since"`
}

// InventoryInput names the workflow type and the task queue of maintenances.
type InventoryInput struct {
	WorkflowType string `json:"workflowType"`
	// OtherTypes are those of others that may hold slots: they are among the Running.
	OtherTypes []string `json:"otherTypes,omitempty"`
	TaskQueue  string   `json:"taskQueue"`
	// From is the More of the inventory before, which has the marks.
	From []byte `json:"from,omitempty"`
}

// runningAtOnce is about how many running maintenances one inventory lists: it has to fit into a payload.
const runningAtOnce = 2000

// TakeInventory finds the holders by their marks on nodes, and the running maintenances by visibility. The marks are
// the truth, and so are the leases of nodes that are remediated; visibility lags, and only adds those that hold or want a slot and have
// neither yet.
func (e *Activities) TakeInventory(ctx context.Context, in InventoryInput) (Inventory, error) {
	var found Inventory
	var err error
	var shown []Run
	if len(in.From) == 0 {
		shown, err = e.marks(ctx, api.ClusterOf(in.TaskQueue), &found)
		if err == nil && len(in.OtherTypes) > 0 {
			err = e.leased(ctx, api.ClusterOf(in.TaskQueue), &shown)
		}
	}
	if err == nil {
		found.Running, found.More, err = runningPage(ctx, e.Temporal, e.Namespace, in)
	}
	for _, run := range shown {
		if len(in.OtherTypes) > 0 && !slices.ContainsFunc(found.Running, func(r Run) bool { return r.WorkflowID == run.WorkflowID }) {
			found.Running = append(found.Running, run)
		}
	}
	return found, err
}

// leased adds the remediations that the leases of nodes name.
func (e *Activities) leased(ctx context.Context, cluster string, into *[]Run) error {
	if e.Leases == nil {
		return nil
	}
	all, err := e.Leases.Holders(ctx)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil // a worker that may not read them has remediated nothing
	}
	if err != nil {
		return failure.Translate(ctx, e.Nodes.Client(), err)
	}
	for _, one := range all {
		if check, ours := strings.CutPrefix(one.Holder, api.LeaseHolderPrefix); ours {
			id := api.RemediationID(cluster, check, one.Node)
			if _, _, _, err := api.ParseRemediationID(id); err == nil {
				*into = append(*into, Run{WorkflowID: id})
			}
		}
	}
	return nil
}

// marks returns which holders in the marks of nodes run, which do not, and which are none. Transitions are those of profiles that nodes
// show besides.
func (e *Activities) marks(ctx context.Context, cluster string, into *Inventory) (transitions []Run, err error) {
	view, err := e.Nodes.View(ctx)
	if err != nil {
		return nil, failure.Translate(ctx, e.Nodes.Client(), err)
	}
	defer view.Close()
	var ours []MarkedHolder
	for _, name := range k8s.NodeNames(view.List()) {
		node, ok := view.Get(name)
		if !ok {
			continue
		}
		mark, err := k8s.MarkOf(node)
		if err != nil {
			into.stray(Unreadable(name))
			continue
		}
		for _, h := range mark.Holders {
			if e.Home.IsOfProfile(cluster, name, h) {
				transitions = append(transitions, Run{WorkflowID: h.WorkflowID})
				continue
			}
			if stray := e.Home.Classify(cluster, name, h); stray.Kind != "" {
				into.stray(stray)
				continue
			}
			ours = append(ours, MarkedHolder{
				Run: Run{WorkflowID: h.WorkflowID, RunID: h.RunID}, Node: name, Requestor: h.Requestor, Since: h.Since,
			})
		}
	}
	return transitions, e.sort(ctx, ours, into)
}

// sort asks what became of holders.
func (e *Activities) sort(ctx context.Context, ours []MarkedHolder, into *Inventory) error {
	refs := make([]HolderRef, len(ours))
	for i, h := range ours {
		refs[i] = HolderRef{WorkflowID: h.WorkflowID, RunID: h.RunID, Since: h.Since}
	}
	found := make([]Found, len(ours))
	err := e.Home.Fates(ctx, e.Temporal, refs, func(i int, f Found) {
		found[i] = f
		activity.RecordHeartbeat(ctx)
	})
	if err != nil {
		return err
	}
	for i, h := range ours {
		switch found[i].Fate {
		case Alive:
			into.Marked = append(into.Marked, h)
		case Ended:
			into.Ended = append(into.Ended, h)
		default:
			into.stray(api.StrayMark{
				Node: h.Node, Kind: api.StrayUnknown, WorkflowID: h.WorkflowID, RunID: h.RunID, Requestor: h.Requestor,
				Namespace: e.Home.ID, Since: h.Since,
			})
		}
	}
	return nil
}

// ListRunning lists all maintenances that run.
func ListRunning(ctx context.Context, temporal client.Client, namespace string, in InventoryInput) ([]Run, error) {
	var all []Run
	for {
		found, more, err := runningPage(ctx, temporal, namespace, in)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
		if in.From = more; len(more) == 0 {
			return all, nil
		}
	}
}

// runningPage are about runningAtOnce of them, and where the next begin.
func runningPage(ctx context.Context, temporal client.Client, namespace string, in InventoryInput) (found []Run, more []byte, err error) {
	request := &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: namespace,
		Query: fmt.Sprintf("WorkflowType IN ('%s') AND TaskQueue = '%s' AND ExecutionStatus = 'Running'",
			strings.Join(append([]string{in.WorkflowType}, in.OtherTypes...), "', '"), in.TaskQueue),
		NextPageToken: in.From,
	}
	for {
		page, err := temporal.ListWorkflow(ctx, request)
		if err != nil {
			return nil, nil, fmt.Errorf("listing running maintenances: %w", err)
		}
		for _, info := range page.Executions {
			found = append(found, runOf(info))
		}
		activity.RecordHeartbeat(ctx)
		if request.NextPageToken = page.NextPageToken; len(request.NextPageToken) == 0 || len(found) >= runningAtOnce {
			return found, request.NextPageToken, nil
		}
	}
}

func runOf(info *workflowpb.WorkflowExecutionInfo) Run {
	return Run{WorkflowID: info.Execution.WorkflowId, RunID: info.Execution.RunId}
}
