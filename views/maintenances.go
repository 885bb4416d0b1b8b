package views

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/schedule"
)

// Maintenances has a line for each maintenance; wide has more of each.
func Maintenances(all api.Maintenances, wide bool, r Reader) document.Document {
	return listed(maintenancesTable(all, wide, r))
}

func maintenancesTable(all api.Maintenances, wide bool, r Reader) document.Table {
	t := document.Table{Header: []string{"node", "requestor", "phase", "since"}, OneLine: true}
	if wide {
		t.Header = append(t.Header, "attempt", "created", "ticket", "reason", "workflow")
	}
	t.Header = append(t.Header, lastColumn(slices.ContainsFunc(all, func(m api.MaintenanceSummary) bool { return m.EndedAt != nil })))
	for _, m := range all {
		since, waiting, attempts := m.CreatedAt, m.WaitingFor, ""
		if m.Since != nil {
			since = *m.Since
		}
		if m.EndedAt != nil {
			waiting = m.Message
		} else if m.Attempt > 0 {
			attempts = strconv.Itoa(m.Attempt)
		}
		cells := []string{m.Node, m.Requestor, cmp.Or(string(m.Phase), "?"), r.age(since)}
		if wide {
			cells = append(cells, attempts, r.at(m.CreatedAt), m.Ticket, m.Reason, m.WorkflowID)
		}
		t.AddPainted(2, PhaseStyle(m.Phase), append(cells, r.words(waiting))...)
	}
	return t
}

// lastColumn is the head of what those that run wait for, and of how those that ended did.
func lastColumn(ended bool) string {
	if ended {
		return "message"
	}
	return "waiting for"
}

// listed is a table alone.
func listed(t document.Table) (d document.Document) {
	d.Table(t)
	return d
}

// namedHolders is how many holders of slots are named below the list of maintenances.
const namedHolders = 5

// OtherHolders says in one line who holds slots of nodes without a maintenance: transitions of profiles, and remediations of control-plane
// nodes.
func OtherHolders(all []api.Holder) document.Document {
	var named []string
	for _, h := range all {
		switch h.Kind {
		case schedule.KindMaintenance:
			continue
		case schedule.KindProfile:
			named = append(named, h.Node+" (profile "+strings.TrimPrefix(h.Requestor, api.ProfileRequestorPrefix)+")")
		default:
			named = append(named, h.Node+" ("+string(h.Kind)+" remediation by "+h.Requestor+")")
		}
	}
	var d document.Document
	if len(named) > 0 {
		shown := min(namedHolders, len(named))
		more := ""
		if n := len(named) - shown; n > 0 {
			more = ", " + strconv.Itoa(n) + " more"
		}
		d.Line("Slots of no maintenance: %s%s", strings.Join(named[:shown], ", "), more)
	}
	return d
}
