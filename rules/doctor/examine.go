package doctor

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/rules/bounds"
)

// rebuildsWithin is how long a scheduler may take to find out who holds what before that is a finding.
const rebuildsWithin = 2 * time.Minute

// failsFrom is the attempt from which on a workflow task is said to fail.
const failsFrom = 3

// examination is one look's findings as they come into being.
type examination struct {
	Facts
	nodes        map[string]Node
	maintenances map[string]Maintenance
	findings     []Finding
	notes        []Finding
}

// Examine finds what is inconsistent. If nodes are named, it reports only findings about one of them, or about no
// node.
func Examine(facts Facts, only []string) Evaluation {
	e := &examination{Facts: facts, nodes: map[string]Node{}, maintenances: map[string]Maintenance{}}
	look := Evaluation{At: facts.At, Looked: Looked{
		Nodes: len(facts.Nodes), Maintenances: len(facts.Maintenances),
		Holders: len(facts.Scheduler.Holders), Pending: len(facts.Scheduler.Pending),
	}}
	for _, n := range facts.Nodes {
		e.nodes[n.Name] = n
		if n.Marked {
			look.Looked.Marked++
		}
	}
	for _, m := range facts.Maintenances {
		e.maintenances[m.RunID] = m
	}
	e.scheduler()
	for _, n := range facts.Nodes {
		e.node(n)
	}
	for _, r := range facts.Requests {
		e.requests(r)
	}
	for _, m := range facts.Machines {
		e.machine(m)
	}
	e.slots()
	for _, m := range facts.Maintenances {
		e.maintenance(m)
	}
	for _, d := range facts.Deliveries {
		e.delivery(d)
	}
	for _, t := range facts.Troubles {
		e.findings = append(e.findings, Finding{
			Kind: WorkflowTroubled, WorkflowID: t.WorkflowID, RunID: t.RunID, Since: &t.Since, Seen: t.What,
			Text: t.WorkflowID + ": " + t.What + "; it is tried again until it can be", NextStep: t.Why,
		})
	}
	for _, what := range facts.Unchecked {
		e.note(Finding{Kind: NotChecked, Text: what})
	}
	concerned := func(f Finding) bool { return len(only) == 0 || f.Node == "" || slices.Contains(only, f.Node) }
	look.Findings, look.More = bounded(e.findings, concerned, MaxFindings)
	look.Notes, look.MoreNotes = bounded(e.notes, concerned, MaxNotes)
	look.Missing = e.missing(only)
	return look
}

// missing are the nodes that nothing is known of: neither the cluster, nor a maintenance, nor the scheduler names them.
func (e *examination) missing(asked []string) (missing []Missing) {
	named := map[string]bool{}
	for _, n := range e.Nodes {
		named[n.Name] = true
	}
	for _, m := range e.Maintenances {
		named[m.Node] = true
	}
	for _, slot := range slices.Concat(e.Scheduler.Holders, e.Scheduler.Pending) {
		named[slot.Node] = true
	}
	for _, r := range e.Requests {
		named[r.Node] = true
	}
	for _, name := range asked {
		if !named[name] {
			missing = append(missing, Missing{Node: name})
		}
	}
	return missing
}

// delivery reports messages that do not arrive. Nothing that is done to a node waits for them.
func (e *examination) delivery(d Delivery) {
	f := Finding{WorkflowID: d.WorkflowID, RunID: d.RunID, Since: &d.Since}
	switch {
	case d.GivenUp:
		f.Kind = DeliveryGivenUp
		f.Text = "undelivered messages were given up: " + d.WorkflowID
		f.NextStep = "the workflow's failure says what and why; mend the channel (channels), or the audit sink (audit), in the worker's configuration"
	case d.Attempts >= failsFrom && d.Error != "":
		f.Kind = DeliveryFailing
		f.Text = fmt.Sprintf("%s was tried %d times: %s", d.WorkflowID, d.Attempts, d.Error)
		f.NextStep = "mend the receiver, or its part of the worker's configuration: it is tried again until then"
	default:
		return
	}
	e.findings = append(e.findings, f)
}

// bounded are the first of the findings that concern somebody, in their order, and the number of the rest.
func bounded(findings []Finding, concerned func(Finding) bool, most int) (first []Finding, more int) {
	kept := slices.DeleteFunc(findings, func(f Finding) bool { return !concerned(f) })
	kept = sorted(kept)
	shown := kept[:min(most, len(kept))]
	for i := range shown {
		shown[i].Text, shown[i].NextStep = bounds.Cut(shown[i].Text, maxText), bounds.Cut(shown[i].NextStep, bounds.Text)
	}
	return shown, len(kept) - len(shown)
}

// Referred are the runs that marks, slots and EvictionRequests name and of which it has to be known exactly whether they
// run. Requests that wait are many, and those that are listed as running are believed.
func Referred(f Facts) []Holder {
	listed, seen := map[string]bool{}, map[string]bool{}
	for _, m := range f.Maintenances {
		listed[m.RunID] = true
	}
	var runs []Holder
	add := func(h Holder) {
		if !seen[h.RunID] && !h.Foreign {
			seen[h.RunID] = true
			runs = append(runs, h)
		}
	}
	for _, n := range f.Nodes {
		for _, h := range slices.Concat(n.Holders, n.Claims) {
			add(h)
		}
	}
	for _, s := range f.Scheduler.Holders {
		add(Holder{WorkflowID: f.idOf(s), RunID: s.RunID, Since: s.GrantedAt})
	}
	for _, s := range f.Scheduler.Pending {
		if !listed[s.RunID] {
			add(Holder{WorkflowID: f.idOf(s), RunID: s.RunID, Since: s.Created})
		}
	}
	for _, r := range f.Requests {
		add(Holder{WorkflowID: r.WorkflowID, RunID: r.RunID})
	}
	return runs
}

func (f Facts) idOf(s Slot) string {
	return cmp.Or(s.WorkflowID, f.Prefix+s.Node+"/"+s.Requestor)
}

// ours reports whether a workflow ID is one of this cluster's maintenances.
func (f Facts) ours(workflowID string) bool {
	return strings.HasPrefix(workflowID, f.Prefix) || f.Transitions != "" && strings.HasPrefix(workflowID, f.Transitions)
}

// runs reports whether a run is running, as far as Temporal's answers say.
func (e *examination) runs(run string) bool {
	if execution, known := e.Executions[run]; known {
		return execution.Running
	}
	_, listed := e.maintenances[run]
	return listed
}

func (e *examination) status(run string) string {
	if s := e.Executions[run].Status; s != "" {
		return s
	}
	return "gone"
}

func (e *examination) find(f Finding) { e.findings = append(e.findings, f) }

func (e *examination) note(f Finding) { e.notes = append(e.notes, f) }

func (e *examination) scheduler() {
	s := e.Scheduler
	about := Finding{WorkflowID: s.WorkflowID, RunID: s.RunID}
	if !s.StartedAt.IsZero() {
		about.Since = &s.StartedAt
	}
	switch {
	case !s.Running:
		about.Kind, about.Since, about.Fix = SchedulerMissing, nil, AwaitScheduler
		about.Text = fmt.Sprintf("the scheduler is not running (%s), so no slot is granted; a worker starts it within 30s", s.Status)
	case s.Unanswered != "":
		about.Kind = SchedulerUnanswered
		about.Text = "the scheduler does not answer: " + s.Unanswered + taskFails(s.Execution)
		about.NextStep = "look at its last workflow task in the Temporal UI. If a new worker build breaks it, put the old one back; " +
			"terminated by hand it starts anew and finds out who holds what (temporal workflow terminate -w " + s.WorkflowID + ")"
	case s.Rebuilding && e.At.Sub(s.StartedAt) > rebuildsWithin:
		about.Kind = SchedulerRebuilding
		about.Text = "the scheduler grants nothing until it knows who holds what"
		about.NextStep = "see in the Temporal UI which activity of " + s.WorkflowID + " fails, and why"
	case s.Rebuilding:
		e.note(Finding{Kind: RebuildingSoon, Text: "the scheduler has just begun; slots were not compared"})
		return
	default:
		return
	}
	e.find(about)
}

func taskFails(x Execution) string {
	if x.Attempt < failsFrom {
		return ""
	}
	return fmt.Sprintf("; its workflow task fails (attempt %d)", x.Attempt)
}

// node looks at what is written on a node.
func (e *examination) node(n Node) {
	for _, h := range n.Claims {
		e.claim(n, h)
	}
	if n.Unreadable != "" {
		e.find(Finding{
			Kind: MarkUnreadable, Node: n.Name, Seen: digest(n.Mark), Text: "its mark cannot be read: " + n.Unreadable,
			NextStep: fmt.Sprintf("find out from the maintenances of the node (drydock list --all) whether it was cordoned before; then remove the mark "+
				"(kubectl annotate node %[1]s drydock.dev/holders-), uncordon it if nobody needs it out of service, and look again: a maintenance "+
				"that runs marks it anew", n.Name),
		})
		return
	}
	for _, h := range n.Holders {
		e.holder(n, h)
	}
	if n.OutOfService && !n.Owned {
		e.note(Finding{Kind: OutOfService, Node: n.Name, Text: "tainted as out of service (node.kubernetes.io/out-of-service), and not by a maintenance that holds it"})
	}
	if !n.Marked {
		e.leftovers(n)
	}
}

// machine checks the annotations that Drydock set on the Machine. A maintenance that runs may be about to hold the node, or have
// just released it.
func (e *examination) machine(m Machine) {
	if e.nodes[m.Node].Marked || slices.ContainsFunc(e.Maintenances, func(one Maintenance) bool { return m.Node != "" && one.Node == m.Node }) {
		return
	}
	e.find(Finding{
		Kind: MachineLeft, Node: m.Node, Seen: m.Name, Fix: ResumeMachine,
		Text: fmt.Sprintf("machine %s is left alone by Cluster API (cluster.x-k8s.io/skip-remediation), and no maintenance holds its node", m.Name),
	})
}

func (e *examination) holder(n Node, h Holder) {
	if e.runs(h.RunID) && !h.Foreign {
		return
	}
	f := Finding{Kind: MarkDead, Node: n.Name, WorkflowID: h.WorkflowID, RunID: h.RunID, Fix: ReleaseMark}
	if !h.Since.IsZero() {
		f.Since = &h.Since
	}
	f.Text = fmt.Sprintf("the node is held by a maintenance by %s that does not run (%s)", h.Requestor, e.status(h.RunID))
	switch {
	case h.Foreign:
		f.Kind, f.Fix = MarkForeign, ""
		f.Text = fmt.Sprintf("the node is held by workflow %s of another Temporal namespace, or of none that the mark names", h.WorkflowID)
		f.NextStep = "let the doctor of that Drydock look: --cluster, --namespace and --address say which. " + givesBack(n, h,
			"If that namespace is no more, and nobody works on the node")
	case !e.ours(h.WorkflowID):
		f.Kind, f.Fix = MarkForeign, ""
		f.Text = fmt.Sprintf("the node is held by workflow %s of another Drydock, which does not run in this namespace (%s)", h.WorkflowID, e.status(h.RunID))
		f.NextStep = "let the doctor of that Drydock look: --cluster, --namespace and --address say which"
	case e.Executions[h.RunID].Unknown:
		f.Kind, f.Fix = MarkUnknown, ""
		f.Text = fmt.Sprintf("the node is held by a maintenance by %s that is not found, and the mark is younger than what the namespace keeps", h.Requestor)
		f.NextStep = "nothing proves that nobody works on the node: look again once the mark is older than the namespace's retention. " + givesBack(n, h,
			"If Temporal was restored to a state from before, or the workflow was deleted, and nobody works on the node")
	}
	e.find(f)
}

// givesBack says how a node is given back whose holder Temporal knows nothing of, where somebody answers for that.
func givesBack(n Node, h Holder, condition string) string {
	if h.Namespace == "" {
		return fmt.Sprintf("%s: kubectl uncordon %[2]s ; kubectl annotate node %[2]s drydock.dev/holders-", condition, n.Name)
	}
	return fmt.Sprintf("%s: drydock doctor --fix --lost %s %s", condition, h.Namespace, n.Name)
}

// claim looks at who shows lifecycle conditions. Those of another Drydock are that one's to heal.
func (e *examination) claim(n Node, h Holder) {
	if e.runs(h.RunID) || h.Foreign || !e.ours(h.WorkflowID) || e.Executions[h.RunID].Unknown {
		return
	}
	e.find(Finding{
		Kind: ConditionsLeft, Node: n.Name, WorkflowID: h.WorkflowID, RunID: h.RunID, Since: &h.Since, Fix: HideConditions,
		Text: fmt.Sprintf("its status shows conditions of a maintenance that does not run (%s)", e.status(h.RunID)),
	})
}

// leftovers are what a mark would explain. Label and taint have names of Drydock's own; a cordon and the annotations
// for autoscalers may be a person's, and without a mark nothing proves the contrary.
func (e *examination) leftovers(n Node) {
	if !n.Labelled && !n.Tainted {
		if n.Unschedulable {
			e.note(Finding{Kind: CordonByHand, Node: n.Name, Text: "cordoned by no maintenance: by hand, by a profile or by another program"})
		}
		return
	}
	if e.handled(n) {
		return
	}
	traces := "label drydock.dev/phase=" + n.Phase
	switch {
	case n.Labelled && n.Tainted:
		traces += " and the maintenance taint"
	case n.Tainted:
		traces = "the maintenance taint"
	}
	f := Finding{Node: n.Name, Seen: fmt.Sprint(n.UID, n.Phase, n.Labelled, n.Tainted, n.Unschedulable, n.Protections, n.Excluded, n.OutOfService)}
	switch {
	case n.Unschedulable:
		f.Kind = CordonUnowned
		f.Text = fmt.Sprintf("cordoned, with %s and no mark that says who holds it or who cordoned it", traces)
		f.NextStep = fmt.Sprintf("if nobody needs it out of service: kubectl uncordon %[1]s, and then drydock doctor --fix; if the cordon is meant: "+
			"kubectl label node %[1]s drydock.dev/phase- ; kubectl taint node %[1]s drydock.dev/maintenance-", n.Name)
	case n.Excluded || n.OutOfService:
		f.Kind = ProtectionLeft
		others, commands := othersMarks(n)
		f.Text = fmt.Sprintf("it shows %s without a mark, and %s may be Drydock's or somebody else's", traces, others)
		f.NextStep = fmt.Sprintf("if nobody wants that: %s ; otherwise, or then, kubectl label node %[2]s drydock.dev/phase- ; "+
			"kubectl taint node %[2]s drydock.dev/maintenance-", commands, n.Name)
	case len(n.Protections) > 0:
		f.Kind = ProtectionLeft
		f.Text = fmt.Sprintf("it shows %s without a mark, and %s may be Drydock's or somebody else's", traces, strings.Join(n.Protections, " and "))
		f.NextStep = fmt.Sprintf("if nobody wants them: kubectl annotate node %s %s- ; otherwise, or then, kubectl label node %s drydock.dev/phase- ; "+
			"kubectl taint node %s drydock.dev/maintenance-", n.Name, strings.Join(n.Protections, "- "), n.Name, n.Name)
	case n.Tainted:
		f.Kind, f.Fix, f.Text = TaintLeft, CleanNode, fmt.Sprintf("it shows %s, and no mark says who holds it", traces)
	default:
		f.Kind, f.Fix, f.Text = LabelLeft, CleanNode, fmt.Sprintf("it shows %s, and no mark says who holds it", traces)
	}
	e.find(f)
}

// othersMarks are those that Drydock sets for others and that nothing proves to be its own, with what takes them off.
func othersMarks(n Node) (which, commands string) {
	var all, off []string
	if n.Excluded {
		all, off = append(all, "label remediation.medik8s.io/exclude-from-remediation"),
			append(off, fmt.Sprintf("kubectl label node %s remediation.medik8s.io/exclude-from-remediation-", n.Name))
	}
	if n.OutOfService {
		all, off = append(all, "taint node.kubernetes.io/out-of-service"),
			append(off, fmt.Sprintf("kubectl taint node %s node.kubernetes.io/out-of-service-", n.Name))
	}
	if len(n.Protections) > 0 {
		all, off = append(all, strings.Join(n.Protections, " and ")),
			append(off, fmt.Sprintf("kubectl annotate node %s %s-", n.Name, strings.Join(n.Protections, "- ")))
	}
	return strings.Join(all, " and "), strings.Join(off, " ; ")
}

// handled reports whether a maintenance counts on holding the node: the finding is then the missing mark.
func (e *examination) handled(n Node) bool {
	return slices.ContainsFunc(e.Maintenances, func(m Maintenance) bool { return m.Node == n.Name && e.unmarked(m) })
}

func (e *examination) requests(r Requests) {
	if e.runs(r.RunID) || !e.ours(r.WorkflowID) {
		return
	}
	e.find(Finding{
		Kind: RequestsLeft, Node: r.Node, WorkflowID: r.WorkflowID, RunID: r.RunID, Fix: WithdrawRequests,
		Text: fmt.Sprintf("%d EvictionRequests of a maintenance that does not run (%s)", r.Count, e.status(r.RunID)),
	})
}

func digest(text string) string {
	h := fnv.New64a()
	h.Write([]byte(text))
	return fmt.Sprintf("%016x", h.Sum64())
}
