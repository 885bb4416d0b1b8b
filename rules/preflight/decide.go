package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/spec"
)

// Facts are what the cluster says of a node before a drain.
type Facts struct {
	At      time.Time
	Node    Node
	Pods    []PodFacts
	Budgets []Budget
	Room    *Room
	// Denied are the permissions that the worker's account lacks.
	Denied []Need
	// Unchecked says what could not be looked at, and why.
	Unchecked []string
}

// Node is what a drain depends on in its node.
type Node struct {
	Name string
	// Missing: there is no such node; Similar are names that may be meant.
	Missing bool
	Similar []string
	Ready   bool
}

// PodFacts is what a drain depends on in a pod.
type PodFacts struct {
	// Name is "namespace/name".
	Name     string
	Type     drainplan.PodType
	Priority int32
	Labels   map[string]string
	// Selected: the drain is about this pod.
	Selected bool
	// NotDrained: the drain leaves the pods of its namespace alone.
	NotDrained            bool
	Terminating, Finished bool
	// Refusal is the reason for which the pod is refused without consent, and Message says which consent; both are
	// empty for a pod that can go.
	Refusal, Message string
	// Wish is the annotation by which the pod asks not to be disrupted, if it does.
	Wish string
	// Returns: the pod's DaemonSet would put it back in spite of the maintenance taint.
	Returns bool
	// Budgets are those that select the pod and would be asked about its eviction.
	Budgets []Asked
}

// Asked is a budget that would be asked about the eviction of a pod.
type Asked struct {
	Budget string
	// Refuses: it would refuse the pod's eviction now.
	Refuses bool
}

// reasons of rows that the facts do not give.
const (
	reasonMode        = "Mode"
	reasonNotSelected = "NotSelected"
	reasonNotPlanned  = "NotPlanned"
	reasonNamespace   = "Namespace"
	reasonDaemonSet   = "DaemonSet"
	reasonStatic      = "StaticPod"
	reasonTerminating = "Terminating"
	reasonFinished    = "Finished"
	reasonReturns     = "ToleratesMaintenance"
)

// decision is a report that comes into being.
type decision struct {
	drain  spec.Drain
	plan   drainplan.Plan
	facts  Facts
	report Report
	// bypass is the rung by which budgets stop mattering, if there is one, and bypassedBy whose rung it is.
	bypass     *spec.Rung
	bypassedBy string
}

// Decide returns what a drain would do with each pod and what would stop it. The drain's escalation is the whole ladder,
// including the SLA.
func Decide(drain spec.Drain, facts Facts) (Report, error) {
	plan, err := drain.Tiers()
	if err != nil {
		return Report{}, err
	}
	d := decision{drain: drain, plan: plan, facts: facts, report: Report{
		Node: facts.Node.Name, At: facts.At, Mode: drain.Mode, Counts: map[Action]int{}, Room: facts.Room,
		Pods: []Pod{}, Problems: []Finding{}, Escalation: drain.Escalation,
	}}
	if plan.Len() > 1 {
		d.report.Tiers = plan.Entries()
	}
	d.findBypass()
	d.node()
	d.permissions()
	d.pods()
	d.budgets()
	d.room()
	for _, what := range facts.Unchecked {
		d.report.warn(Finding{NotChecked, "preflight", what})
	}
	return d.report, nil
}

// findBypass finds the first rung that asks no budget.
func (d *decision) findBypass() {
	rungs := d.drain.Escalation
	i := slices.IndexFunc(rungs, func(r spec.Rung) bool { return r.Do == spec.BypassBudget || r.Do == spec.Kill })
	if i < 0 {
		return
	}
	d.bypass, d.bypassedBy = &rungs[i], "the escalation"
	if i > 0 && rungs[i-1].Do == spec.ExpireSLA && rungs[i-1].After == rungs[i].After {
		d.bypassedBy = "the SLA"
	}
}

// Leaving reports for each pod whether a successful drain makes it leave its node, so that it needs a place elsewhere. A
// pod that is terminating already has been replaced.
func Leaving(drain spec.Drain, pods []PodFacts) ([]bool, error) {
	plan, err := drain.Tiers()
	if err != nil {
		return nil, err
	}
	d := decision{drain: drain, plan: plan}
	leaving := make([]bool, len(pods))
	for i, p := range pods {
		row := d.pod(p)
		leaving[i] = p.Type == drainplan.Default && !p.Finished &&
			(row.Action == Evict || row.Action == Refuse || row.Action == Wait && row.Reason == reasonMode)
	}
	return leaving, nil
}

func (d *decision) node() {
	n := d.facts.Node
	switch {
	case n.Missing:
		text := "there is no such node"
		if len(n.Similar) > 0 {
			text += "; there is " + strings.Join(n.Similar, ", ")
		}
		d.report.problem(Finding{NodeMissing, "node " + n.Name, text})
	case !n.Ready:
		d.report.warn(Finding{NodeNotReady, "node " + n.Name,
			"it is not Ready: pods that are told to end may never be seen to (drain.onNodeNotReady says what then)"})
	}
}

func (d *decision) permissions() {
	for _, need := range d.facts.Denied {
		f := need.missing()
		switch {
		case need.Optional:
			f.Message += "; a drain can do without"
			d.report.warn(f)
		case need.deletesPods() && !d.deletes():
			f.Message += "; no pod that is on the node now would be deleted"
			d.report.warn(f)
		default:
			d.report.problem(f)
		}
	}
}

// deletes reports whether the drain deletes a pod, or may, as far as the pods could be checked.
func (d *decision) deletes() bool {
	return d.bypass != nil || len(d.facts.Unchecked) > 0 || slices.ContainsFunc(d.facts.Pods, func(p PodFacts) bool {
		action := d.pod(p).Action
		return action == Delete || action == Refuse && p.Type == drainplan.DaemonSet // deleted once somebody consents
	})
}

// row is a pod with what was decided of it.
type row struct {
	Pod
	facts PodFacts
}

func (d *decision) pods() {
	rows := make([]row, 0, len(d.facts.Pods))
	for _, p := range d.facts.Pods {
		rows = append(rows, row{d.pod(p), p})
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(cmp.Or(a.Tier, len(d.report.Tiers)+2), cmp.Or(b.Tier, len(d.report.Tiers)+2)), cmp.Compare(a.Pod.Pod, b.Pod.Pod))
	})
	for _, r := range rows {
		d.report.Counts[r.Action]++
		d.findings(r)
		if len(d.report.Pods) == MaxPods {
			d.report.MorePods++
			continue
		}
		d.report.Pods = append(d.report.Pods, r.Pod)
	}
}

// pod decides what becomes of one pod.
func (d *decision) pod(p PodFacts) Pod {
	r := Pod{Pod: p.Name, Action: Skip}
	if d.drain.Mode == spec.ModeNone {
		r.Reason, r.Message = reasonMode, "drain.mode none leaves all pods alone"
		return r
	}
	if !p.Selected {
		r.Reason, r.Message = reasonNotSelected, "the drain is not about this pod"
		return r
	}
	tier, planned := d.plan.TierOf(drainplan.Pod{Type: p.Type, Priority: p.Priority, Labels: p.Labels})
	if planned {
		r.Tier = tier + 1
	}
	if planned && p.NotDrained {
		r.Reason, r.Message = reasonNamespace, "its namespace is not drained (drain.namespaces): it stays"
		return r
	}
	d.judge(p, planned, &r)
	return r
}

// judge decides what becomes of a pod that the drain is about.
func (d *decision) judge(p PodFacts, planned bool, r *Pod) {
	switch {
	case p.Type == drainplan.Static && planned && d.drain.WaitsForStatic():
		r.Action, r.Reason, r.Message = Wait, reasonStatic, "is a static pod, which cannot be evicted: somebody has to take it off the node"
	case p.Type == drainplan.Static:
		r.Reason, r.Message = reasonStatic, "is a static pod of the kubelet"
	case p.Type == drainplan.DaemonSet && !planned:
		r.Reason, r.Message = reasonDaemonSet, "belongs to a DaemonSet"
	case p.Type == drainplan.DaemonSet && p.Returns:
		r.Reason, r.Message = reasonReturns, "tolerates the maintenance taint, so its DaemonSet would put it back"
	case !planned:
		r.Reason, r.Message = reasonNotPlanned, "no tier of the plan selects it"
	case p.Terminating:
		r.Action, r.Reason, r.Message = Wait, reasonTerminating, "is on its way out already"
	case d.drain.Mode != spec.ModeEvict:
		r.Action, r.Reason, r.Message = Wait, reasonMode, "drain.mode "+d.drain.Mode+" evicts no pods"
	case p.Refusal != "":
		r.Action, r.Reason, r.Message = Refuse, p.Refusal, bounds.Cut(p.Message, maxText)
		if p.Type != drainplan.DaemonSet {
			r.Budgets = p.asked() // once somebody consents, the eviction depends on these budgets
		}
	case p.Type == drainplan.DaemonSet:
		r.Action, r.Reason, r.Message = Delete, reasonDaemonSet, "is deleted; the maintenance taint keeps it away"
	default:
		r.Action = Evict
		if p.Finished {
			r.Reason, r.Message = reasonFinished, "has finished"
		}
		r.Budgets = p.asked()
	}
}

// asked are the names of the budgets that would be asked about the eviction of the pod.
func (p PodFacts) asked() []string {
	var names []string
	for _, b := range p.Budgets {
		names = append(names, b.Budget)
	}
	return names
}

// findings are what one pod adds to problems and warnings.
func (d *decision) findings(r row) {
	about := "pod " + r.Pod.Pod
	if r.Action == Refuse {
		d.report.problem(Finding{MissingConsent, about, r.Message})
	}
	switch r.Action {
	case Wait:
		if r.Reason == reasonStatic {
			d.report.warn(Finding{StaticPodWaited, about, r.Message})
		}
	case Skip:
		if r.Reason == reasonReturns {
			d.report.warn(Finding{ToleratesAll, about, r.Message + ": it stays"})
		}
	case Evict, Delete, Refuse:
		if len(r.Budgets) > 1 {
			d.stops(Finding{OverlappingBudget, about,
				"several budgets select it (" + strings.Join(r.Budgets, ", ") + "), and the API server evicts no such pod: leave it one"})
		}
		if r.facts.Wish != "" && !r.facts.Finished {
			d.report.warn(Finding{Protected, about, d.wish(r.facts.Wish)})
		}
	}
}

func (d *decision) wish(annotation string) string {
	if d.drain.ProtectedFor == 0 {
		return "asks not to be disrupted (" + annotation + "), which drain.protectedFor 0s ignores"
	}
	return fmt.Sprintf("asks not to be disrupted (%s): it is left alone for %s after the cordon", annotation, period.Text(d.drain.ProtectedFor.Std()))
}

// stops is for what only budgets forbid: a problem, unless the escalation bypasses them.
func (d *decision) stops(f Finding) {
	if d.bypass == nil {
		d.report.problem(f)
		return
	}
	f.Message += fmt.Sprintf(" (or %s does %s after %s)", d.bypassedBy, d.bypass.Do, period.Text(d.bypass.After.Std()))
	d.report.warn(f)
}

// budgets checks the disruption budgets of pods that the drain evicts, with or without consent.
func (d *decision) budgets() {
	asked, refused := map[string]int{}, map[string]int{}
	for _, p := range d.facts.Pods {
		if len(d.pod(p).Budgets) == 0 {
			continue
		}
		for _, b := range p.Budgets {
			asked[b.Budget]++
			if b.Refuses {
				refused[b.Budget]++
			}
		}
	}
	budgets := slices.Clone(d.facts.Budgets)
	slices.SortFunc(budgets, func(a, b Budget) int { return cmp.Compare(a.Budget, b.Budget) })
	for _, b := range budgets {
		if b.OnNode = asked[b.Budget]; b.OnNode == 0 {
			continue
		}
		b.Message = bounds.Cut(b.Message, maxText)
		switch {
		case refused[b.Budget] == 0:
		case b.Impossible:
			d.stops(Finding{ImpossibleBudget, "budget " + b.Budget, b.Message})
		default:
			d.report.warn(Finding{BudgetRefuses, "budget " + b.Budget, b.Message})
		}
		if len(d.report.Budgets) == MaxBudgets {
			d.report.MoreBudgets++
			continue
		}
		d.report.Budgets = append(d.report.Budgets, b)
	}
}

func (d *decision) room() {
	if d.facts.Room == nil {
		return
	}
	room := *d.facts.Room
	for _, u := range room.Unplaced {
		f := Finding{NoRoom, "pod " + u.Pod, u.Message}
		if u.Bound {
			f.Code = BoundToNode
			d.report.warn(f)
		} else {
			d.report.problem(f)
		}
	}
	room.Unplaced = slices.Clone(room.Unplaced[:min(len(room.Unplaced), MaxFindings)])
	for i := range room.Unplaced {
		room.Unplaced[i].Message = bounds.Cut(room.Unplaced[i].Message, maxText)
	}
	d.report.Room = &room
}
