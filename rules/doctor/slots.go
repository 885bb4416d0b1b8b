package doctor

import (
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/rules/schedule"
)

// comparable reports whether the scheduler's state of slots can be compared with the nodes.
func (e *examination) comparable() bool {
	return e.Scheduler.Running && e.Scheduler.Unanswered == "" && !e.Scheduler.Rebuilding
}

// slots looks for slots and requests that nobody has any more.
func (e *examination) slots() {
	if !e.comparable() {
		return
	}
	for _, s := range e.Scheduler.Holders {
		f := Finding{Node: s.Node, WorkflowID: e.idOf(s), RunID: s.RunID, RequestID: s.RequestID, Since: &s.GrantedAt, Fix: ReleaseSlot}
		m, listed := e.maintenances[s.RunID]
		switch {
		case !e.runs(s.RunID) && e.isBeingShown(s):
			continue
		case !e.runs(s.RunID):
			f.Kind = SlotDead
			f.Text = fmt.Sprintf("its slot is held by a %s by %s that does not run (%s)", s.who(), s.Requestor, e.status(s.RunID))
			if e.Executions[s.RunID].Unknown {
				f.Fix, f.NextStep = "", "its scheduler takes the slot back where the node does not carry its mark; otherwise see the mark"
			}
		case listed && m.Asked && m.Unanswered == "" && !m.Wants:
			f.Kind = SlotStale
			f.Text = fmt.Sprintf("the scheduler counts its slot, and the maintenance by %s has none", s.Requestor)
		default:
			continue
		}
		e.find(f)
	}
	for _, s := range e.Scheduler.Pending {
		if e.runs(s.RunID) {
			continue
		}
		e.find(Finding{
			Kind: PendingDead, Node: s.Node, WorkflowID: e.idOf(s), RunID: s.RunID, RequestID: s.ID, Since: &s.Created, Fix: ReleaseSlot,
			Text: fmt.Sprintf("a request for its slot waits, of a %s by %s that does not run (%s)", s.who(), s.Requestor, e.status(s.RunID)),
		})
	}
}

// shownWithin is how long a profile's slot may be held after the end of its transition: the scheduler keeps it until every watch shows what
// the transition has made of the node.
const shownWithin = 2 * time.Minute

func (e *examination) isBeingShown(s Slot) bool {
	ended := e.Executions[s.RunID].EndedBy
	return s.Kind == string(schedule.KindProfile) && !ended.IsZero() && e.At.Sub(ended) < shownWithin
}

// who says what holds the slot, or asks for it.
func (s Slot) who() string {
	switch s.Kind {
	case "":
		return "maintenance"
	case string(schedule.KindProfile):
		return "profile's transition"
	default:
		return s.Kind + " remediation"
	}
}

// Phases of a maintenance that matter here.
var (
	marks     = []string{"Cordoned", "WaitingForPods", "Draining", "Ready", "RequestorFailed", "Validating"}
	releasing = "Releasing"
)

// unmarked reports whether a maintenance has marked its node, and the node does not carry the mark.
func (e *examination) unmarked(m Maintenance) bool {
	n, exists := e.nodes[m.Node]
	return exists && m.Granted != nil && slices.Contains(marks, m.Phase) && n.Unreadable == "" && !n.heldBy(m.RunID) && e.runs(m.RunID)
}

// maintenance looks at what a running maintenance believes.
func (e *examination) maintenance(m Maintenance) {
	if !m.Asked || m.Ended || !e.runs(m.RunID) {
		return
	}
	about := Finding{Node: m.Node, WorkflowID: m.WorkflowID, RunID: m.RunID, RequestID: m.RequestID, Seen: m.Phase}
	if !m.Since.IsZero() {
		about.Since = &m.Since
		about.Seen += m.Since.String()
	}
	if m.Unanswered != "" {
		about.Kind, about.Text = MaintenanceUnanswered, "its maintenance does not answer: "+m.Unanswered+taskFails(e.Executions[m.RunID])
		about.NextStep = "look at its last workflow task in the Temporal UI. If a new worker build breaks it, put the old one back; terminated by hand " +
			"(temporal workflow terminate -w " + m.WorkflowID + "), its slot is reclaimed and its node released within 30 s"
		e.find(about)
		return
	}
	if m.Phase == releasing {
		return // it releases its slot, and signals the scheduler before its own state shows it
	}
	if _, exists := e.nodes[m.Node]; !exists {
		e.gone(m, about)
		return
	}
	if e.unmarked(m) {
		about := about
		about.Kind, about.Fix = SlotUnmarked, RestoreMark
		about.Text = fmt.Sprintf("the maintenance holds its slot and is %s, and the node does not carry its mark", m.Phase)
		e.find(about)
	}
	if e.comparable() && m.Wants {
		e.wanted(m, about)
	}
}

func (e *examination) gone(m Maintenance, about Finding) {
	if m.AwaitsNode {
		about.Kind, about.Text = NodeAwaited, "the node does not exist; its maintenance waits for a node of the name and holds that"
		e.note(about)
		return
	}
	about.Kind, about.Text = NodeGone, "a maintenance runs, and the node does not exist"
	if m.Phase != "" {
		about.Text = fmt.Sprintf("a maintenance runs (%s), and the node does not exist", m.Phase)
	}
	about.NextStep = fmt.Sprintf("if it will not come back: drydock cancel %s --release", m.Node)
	e.find(about)
}

// wanted compares the slot of which a maintenance knows with the scheduler's.
func (e *examination) wanted(m Maintenance, about Finding) {
	held := slices.ContainsFunc(e.Scheduler.Holders, func(s Slot) bool { return s.RequestID == m.RequestID })
	waits := slices.ContainsFunc(e.Scheduler.Pending, func(s Slot) bool { return s.ID == m.RequestID })
	about.Fix = RequestSlot
	switch {
	case m.Granted == nil && held:
		about.Kind, about.Text = SlotUntold, "the scheduler has granted its slot, and the maintenance does not know"
	case m.Granted == nil && !waits:
		about.Kind, about.Text = SlotUnrequested, "the maintenance waits for a slot, and the scheduler knows of no request"
	case m.Granted != nil && !held && waits:
		about.Kind = SlotUnknown
		about.Text = "the maintenance has a slot, and the scheduler counts it as one that waits for it: the limits or a freeze do not allow it now"
		about.Fix, about.NextStep = "", "it is counted as soon as the limits allow it (drydock limits); until then another node may go instead"
	case m.Granted != nil && !held:
		about.Kind, about.Text = SlotUnknown, "the maintenance has a slot, and the scheduler knows nothing of it"
	default:
		return
	}
	e.find(about)
}
