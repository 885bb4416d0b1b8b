// Package doctor looks for what is inconsistent between the cluster, the scheduler and the maintenances, and heals it.
package doctor

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/activities/nodeevent"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/clusterapi"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/rules/doctor"
)

// Activities look for what is inconsistent between the cluster, the scheduler and the maintenances, and heal it.
type Activities struct {
	Client kube.Interface
	// Events are recorded on the nodes that are healed.
	Events    nodeevent.Recorder
	Temporal  client.Client
	Namespace string
	// Home is the namespace of that name, which the marks of its maintenances name.
	Home execution.Namespace
	// Jobs ends what a dead run has left running on its node, before that is released; nil if the configuration has no Jobs.
	Jobs Jobs
	// ClusterAPI: Machines of Cluster API are marked for maintenances, and looked at.
	ClusterAPI bool
}

// Jobs ends the Jobs of a maintenance that has ended without them.
type Jobs interface {
	// End returns once nothing of them runs any more.
	End(ctx context.Context, workflowID, runID string) error
}

// Names are the IDs and names that a doctor uses.
type Names struct {
	// Maintenances begins the workflow IDs of maintenances, Scheduler is the scheduler's.
	Maintenances string `json:"maintenances"`
	// Transitions begins those of transitions of profiles.
	Transitions string                   `json:"transitions,omitempty"`
	Scheduler   string                   `json:"scheduler"`
	Listed      execution.InventoryInput `json:"listed"`
	QueryState  string                   `json:"queryState"`
	QuerySlot   string                   `json:"querySlot"`
	QueryStatus string                   `json:"queryStatus"`
	// Deliveries are the types of workflows that notify channels and keep audit records.
	Deliveries []string `json:"deliveries,omitempty"`
	// Lost are IDs of Temporal namespaces whose histories are lost.
	Lost []string `json:"lost,omitempty"`
}

// lost reports whether the histories of a namespace are lost.
func (n Names) lost(namespace string) bool { return slices.Contains(n.Lost, namespace) }

// EvaluateInput asks for one look.
type EvaluateInput struct {
	Names
	// Nodes are those that the report is about; empty is all.
	Nodes []string `json:"nodes,omitempty"`
	// Runs are those to ask; nil asks all that run. It is for a second look at what the first one found.
	Runs []string `json:"runs,omitempty"`
}

// Look finds what is inconsistent at one moment. It changes nothing.
func (d *Activities) Look(ctx context.Context, in EvaluateInput) (doctor.Evaluation, error) {
	ctx, stop := heartbeat.UntilWorkerStops(ctx)
	defer stop()
	facts, err := d.facts(ctx, in)
	if err != nil {
		return doctor.Evaluation{}, failure.OrCause(ctx, failure.Translate(ctx, d.Client, err))
	}
	look := doctor.Examine(facts, in.Nodes)
	// What visibility says of a run is late: of those that seem to be wrong it has to be known exactly.
	if err := d.describe(ctx, &facts, runsOf(look.Findings)); err != nil {
		return doctor.Evaluation{}, failure.OrCause(ctx, err)
	}
	look = doctor.Examine(facts, in.Nodes)
	suggest(look.Missing, facts.Nodes)
	return look, nil
}

// suggest adds which nodes may be meant.
func suggest(missing []doctor.Missing, nodes []doctor.Node) {
	if len(missing) == 0 {
		return
	}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	for i := range missing {
		missing[i].Suggestion = strings.Join(k8s.Similar(missing[i].Node, names), ", ")
	}
}

func runsOf(findings []doctor.Finding) []doctor.Holder {
	var runs []doctor.Holder
	for _, f := range findings {
		if f.RunID != "" {
			runs = append(runs, doctor.Holder{WorkflowID: f.WorkflowID, RunID: f.RunID})
		}
	}
	return runs
}

func (d *Activities) facts(ctx context.Context, in EvaluateInput) (doctor.Facts, error) {
	facts := doctor.Facts{At: time.Now().UTC(), Prefix: in.Maintenances, Transitions: in.Transitions, Executions: map[string]doctor.Execution{}}
	traces, err := k8s.MarkingsOf(ctx, d.Client)
	if err != nil {
		return facts, err
	}
	for _, t := range traces {
		facts.Nodes = append(facts.Nodes, d.nodeFacts(t, in.Names))
	}
	if err := d.requests(ctx, &facts); err != nil {
		return facts, err
	}
	if d.ClusterAPI {
		if err := machines(ctx, d.Client, &facts); err != nil {
			return facts, err
		}
	}
	if facts.Scheduler, err = d.runs().scheduler(ctx, in.Names); err != nil {
		return facts, err
	}
	if err := d.maintenances(ctx, in, &facts); err != nil {
		return facts, err
	}
	if err := d.deliveries(ctx, in, &facts); err != nil {
		return facts, err
	}
	if err := d.troubles(ctx, in, &facts); err != nil {
		return facts, err
	}
	if err := d.describe(ctx, &facts, doctor.Referred(facts)); err != nil {
		return facts, err
	}
	giveUp(&facts, in.Names)
	return facts, nil
}

// giveUp takes for ended what marks of lost namespaces name and Temporal does not know.
func giveUp(facts *doctor.Facts, names Names) {
	for _, n := range facts.Nodes {
		for _, h := range slices.Concat(n.Holders, n.Claims) {
			if known := facts.Executions[h.RunID]; known.Unknown && names.lost(h.Namespace) {
				known.Unknown, known.Status = false, "not found, and its Temporal namespace is lost"
				facts.Executions[h.RunID] = known
			}
		}
	}
}

// markedBy is a holder as a mark names it.
func markedBy(home execution.Namespace, h k8s.Holder, names Names) doctor.Holder {
	marked := doctor.Holder{WorkflowID: h.WorkflowID, RunID: h.RunID, Requestor: h.Requestor, Since: h.Since}
	if doctor.NamespaceID(h.Namespace) == nil {
		marked.Namespace = h.Namespace
	}
	marked.Foreign = !home.Owns(h) && !names.lost(marked.Namespace)
	return marked
}

func (d *Activities) nodeFacts(t k8s.Markings, names Names) doctor.Node {
	n := doctor.Node{
		Name: t.Name, UID: string(t.UID), Mark: t.Text, Marked: t.Marked, Tainted: t.Tainted,
		Unschedulable: t.Unschedulable, Protections: t.Protections, Excluded: t.Excluded, OutOfService: t.OutOfService, Owned: t.Owned,
	}
	if t.Phase != nil {
		n.Labelled, n.Phase = true, *t.Phase
	}
	for _, c := range t.Claims {
		n.Claims = append(n.Claims, markedBy(d.Home, k8s.Holder{WorkflowID: c.WorkflowID, RunID: c.RunID, Since: c.Since, Namespace: c.Namespace}, names))
	}
	if t.Unreadable != nil {
		n.Unreadable = t.Unreadable.Error()
		return n
	}
	for _, h := range t.Mark.Holders {
		n.Holders = append(n.Holders, markedBy(d.Home, h, names))
	}
	return n
}

// requests looks for EvictionRequests. That a worker may not list them says that it never filed any.
func (d *Activities) requests(ctx context.Context, facts *doctor.Facts) error {
	filed, err := k8s.FiledByAll(ctx, d.Client)
	switch {
	case k8s.NotServed(err):
		return nil
	case err != nil && k8s.Denied(ctx, d.Client, err):
		facts.Unchecked = append(facts.Unchecked, "the worker's account may not list EvictionRequests, so it has filed none")
		return nil
	case err != nil:
		return err
	}
	for _, f := range filed {
		facts.Requests = append(facts.Requests, doctor.Requests{
			Node: nodeOf(facts.Prefix, f.WorkflowID), WorkflowID: f.WorkflowID, RunID: f.RunID, Count: f.Count,
		})
	}
	return nil
}

// machines looks for Machines of Cluster API that Drydock has had left alone.
func machines(ctx context.Context, client kube.Interface, facts *doctor.Facts) error {
	skipped, err := clusterapi.Machines{Client: client}.Skipped(ctx)
	if err != nil && k8s.Denied(ctx, client, err) {
		facts.Unchecked = append(facts.Unchecked, "the worker's account may not list the machines of Cluster API (kubernetes.marks.clusterAPI)")
		return nil
	}
	for _, m := range skipped {
		facts.Machines = append(facts.Machines, doctor.Machine{Name: m.Machine, Node: m.Node})
	}
	return err
}

// nodeOf is the node in a maintenance's workflow ID, empty if there is none.
func nodeOf(prefix, workflowID string) string {
	rest, ours := strings.CutPrefix(workflowID, prefix)
	if !ours {
		return ""
	}
	node, _, _ := strings.Cut(rest, "/")
	return node
}

func (d *Activities) maintenances(ctx context.Context, in EvaluateInput, facts *doctor.Facts) error {
	running, err := execution.ListRunning(ctx, d.Temporal, d.Namespace, in.Listed)
	if err != nil {
		return err
	}
	facts.Maintenances = make([]doctor.Maintenance, len(running))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(execution.QueriesAtOnce)
	for i, run := range running {
		m := &facts.Maintenances[i]
		m.WorkflowID, m.RunID, m.Node = run.WorkflowID, run.RunID, nodeOf(in.Maintenances, run.WorkflowID)
		// A run under another ID only starts the maintenance that was meant.
		if m.Node != "" && (in.Runs == nil || slices.Contains(in.Runs, run.RunID)) {
			group.Go(func() error { return d.runs().askMaintenance(ctx, in.Names, run.RunID, m) })
		}
	}
	return group.Wait()
}

// describe adds what Temporal says of some chains of runs. A waiting request has no mark that could be too young to say by
// itself that its workflow ended.
func (d *Activities) describe(ctx context.Context, facts *doctor.Facts, chains []doctor.Holder) error {
	chains = slices.DeleteFunc(slices.Clone(chains), func(chain doctor.Holder) bool {
		_, known := facts.Executions[chain.RunID]
		return known || chain.Foreign || chain.RunID == facts.Scheduler.RunID
	})
	executions := make([]doctor.Execution, len(chains))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(execution.QueriesAtOnce)
	for i, chain := range chains {
		group.Go(func() (err error) {
			executions[i], err = d.chain(ctx, chain)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, chain := range chains {
		facts.Executions[chain.RunID] = executions[i]
	}
	return nil
}

// chain describes what became of a chain of runs.
func (d *Activities) chain(ctx context.Context, h doctor.Holder) (doctor.Execution, error) {
	described, err := d.runs().execution(ctx, h.WorkflowID, "")
	if err != nil {
		return described, err
	}
	found, err := d.Home.FateOf(ctx, d.Temporal, execution.HolderRef{WorkflowID: h.WorkflowID, RunID: h.RunID, Since: h.Since})
	described.RunID, described.Running, described.Unknown = h.RunID, found.Fate == execution.Alive, found.Fate == execution.Unknown
	if !described.Running {
		described.Status = found.Status
	}
	if latest := found.Described.GetWorkflowExecutionInfo(); latest.GetFirstRunId() != h.RunID && latest.GetFirstRunId() != "" {
		described.EndedBy = described.StartedAt // the chain that follows has begun after it
	}
	return described, err
}
