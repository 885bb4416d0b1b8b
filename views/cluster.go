package views

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/schedule"
)

// Cluster is what goes on in a cluster.
func Cluster(c api.ClusterStatus, r Reader) document.Document {
	d := document.Document{Title: strings.TrimSpace("Cluster " + c.Cluster)}
	d.Fact("Cluster", c.Cluster)
	if c.Slots != nil {
		slotFacts(&d, *c.Slots, r)
	}
	if c.Maintenances != nil {
		d.Fact("Maintenances", maintenanceCounts(*c.Maintenances))
	}
	if p := c.Profiles; p != nil && len(p.Counts) == 0 && p.Stopped == "" {
		d.Fact("Profiles", "no node has one")
	}
	d.Table(attention(c, r))
	if m := c.Maintenances; m != nil {
		t := maintenancesTable(m.First, false, r)
		t.Title, t.More = "Maintenances", document.AndMore(m.More)
		d.Table(t)
	}
	if s := c.Slots; s != nil {
		t := Pending(s.Waiting, s.WaitingAll, r)
		t.OneLine = true
		d.Table(t)
	}
	if c.Plans != nil {
		d.Table(clusterPlans(*c.Plans, r))
	}
	if c.HealthChecks != nil {
		d.Table(clusterChecks(*c.HealthChecks, r))
	}
	if p := c.Profiles; p != nil {
		t := profileCounts(p.Counts)
		t.More = document.AndMore(p.MoreCounts)
		d.Table(t)
		d.Table(heldByProfiles(p.InMaintenance, r))
	}
	d.Table(unread(c.Unread))
	d.Paragraph("%s", nextInCluster(c))
	return d
}

func slotFacts(d *document.Document, s api.ClusterSlots, r Reader) {
	if s.ObservedAt != nil {
		d.Fact("Nodes", nodesText(s.Nodes, s.Unavailable, s.HeldNodes, s.UnavailableOthers)+" (seen "+r.ago(*s.ObservedAt)+")")
	}
	d.Fact("Limits", limitsText(s.Limits, r))
	d.Fact("Slots", slotsText(s.InUse, s.WaitingAll))
}

// limitsText is what the limits of the cluster are, in a line.
func limitsText(l api.LimitsInForce, r Reader) string {
	parts := []string{cmp.Or(l.MaxParallel.String(), "-") + " in parallel"}
	if most := l.MaxUnavailable.String(); most != "" {
		parts = append(parts, most+" unavailable")
	}
	if n := len(l.Groups); n > 0 {
		parts = append(parts, number.Of(n, "group"))
	}
	if len(l.Windows) > 0 {
		parts = append(parts, "windows "+strings.Join(l.Windows, ", "))
	}
	text := strings.Join(parts, ", ")
	if l.SetBy != "" && !l.SetAt.IsZero() {
		text += fmt.Sprintf(" (set by %s, %s)", l.SetBy, r.ago(l.SetAt))
	}
	return text
}

// namedOthers is how many nodes are named that are out of service for another reason than a maintenance.
const namedOthers = 5

// Unavailable says which nodes are unavailable: of held nodes how many, of the others the first by name.
func Unavailable(all, held int, others []schedule.UnavailableNode) string {
	var parts []string
	named := min(len(others), namedOthers)
	for _, other := range others[:named] {
		parts = append(parts, other.Node+" "+other.Why)
	}
	// What was down before its slot was granted is in maintenance too.
	if n := min(held, all); n > 0 {
		parts = append([]string{fmt.Sprintf("%d in maintenance", n)}, parts...)
		named += n
	}
	if more := all - named; more > 0 && len(parts) > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}

// maintenanceCounts are the maintenances that run, by their phases.
func maintenanceCounts(m api.ClusterMaintenances) string {
	text := strconv.Itoa(m.Running) + " running"
	if m.AtLeast {
		text = "more than " + text
	}
	var phases []string
	for _, phase := range api.Phases {
		if n := m.Phases[phase]; n > 0 {
			phases = append(phases, fmt.Sprintf("%d %s", n, phase))
		}
	}
	return text + colon(strings.Join(phases, ", "))
}

func attention(c api.ClusterStatus, r Reader) document.Table {
	t := document.Table{Title: "Needs attention", Header: []string{"what", "since", "why", "next"}, More: document.AndMore(c.MoreAttention)}
	for _, a := range c.Attention {
		since := ""
		if a.Since != nil {
			since = r.age(*a.Since)
		}
		t.AddPainted(0, document.Bad, a.About, since, r.words(a.What), strings.Join(a.Next, " | "))
	}
	return t
}

func clusterPlans(plans api.ClusterPlans, r Reader) document.Table {
	t := document.Table{
		Title: "Plans", Header: []string{"plan", "phase", "since", "done", "running", "failed", "waiting", "waiting for"},
		OneLine: true, More: document.AndMore(plans.More),
	}
	for _, p := range plans.First {
		cells := []string{p.Name, cmp.Or(string(p.Phase), "?"), "", "", "", "", ""}
		if p.Since != nil {
			cells[2] = r.age(*p.Since)
		}
		if c := p.Counts; c != nil {
			copy(cells[3:], countCells(*c))
		}
		t.AddPainted(1, PlanStyle(p.Phase), append(cells, planWaits(p, r))...)
	}
	return t
}

func countCells(c plan.Counts) []string {
	return []string{fmt.Sprintf("%d/%d", c.Done, c.Total), strconv.Itoa(c.Running), strconv.Itoa(c.Failures()), strconv.Itoa(c.Waiting)}
}

func planWaits(p api.PlanSummary, r Reader) string {
	return cmp.Or(r.words(p.Message), waitText(p, r, r.at))
}

func clusterChecks(checks api.ClusterHealthChecks, r Reader) document.Table {
	t := document.Table{
		Title: "Health checks", Header: []string{"check", "phase", "healthy", "unhealthy", "remediating", "reason"},
		OneLine: true, More: document.AndMore(checks.More),
	}
	for _, c := range checks.First {
		cells := []string{c.Name, cmp.Or(c.Phase, "?"), "", "", ""}
		if c.Phase != "" {
			cells[2], cells[3], cells[4] = fmt.Sprintf("%d/%d", c.Healthy, c.Observed), strconv.Itoa(c.Unhealthy), strconv.Itoa(c.Remediating)
		}
		t.Add(append(cells, r.words(c.Message))...)
	}
	return t
}

// unread has a line for each reason for which parts could not be read.
func unread(parts []api.UnreadPart) document.Table {
	t := document.Table{Title: "Could not be read", Header: []string{"part", "why"}}
	var reasons []string
	names := map[string][]string{}
	for _, p := range parts {
		if names[p.Why] == nil {
			reasons = append(reasons, p.Why)
		}
		names[p.Why] = append(names[p.Why], p.Part)
	}
	for _, why := range reasons {
		t.AddPainted(0, document.Bad, strings.Join(names[why], ", "), why)
	}
	return t
}

// nextInCluster says which command comes next.
func nextInCluster(c api.ClusterStatus) string {
	m := c.Maintenances
	switch {
	case c.NoWorker:
		return "Next: start drydock-worker, or see the log of the one that runs: until it answers, nothing goes on."
	case len(c.Unread) > 0:
		return `Next: "drydock setup" says what is missing.`
	case len(c.Attention) > 0:
		return `Next: the commands above; "drydock doctor" says what is inconsistent besides.`
	case m != nil && m.Running > 0:
		return `Nothing needs attention. Next: "drydock watch" follows what runs, "drydock status NODE" shows one of them.`
	default:
		return `Nothing needs attention. Next: "drydock start NODE --reason WHY --wait" begins a maintenance.`
	}
}
