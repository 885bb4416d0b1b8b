package drainplan

import (
	"cmp"
	"fmt"
	"strings"
)

// Messages say how the drains of nodes stand, in the words of KEP-4212's drainMessage.
type Messages struct {
	l *lockstep
	// undrained are the nodes of each party that are not drained to their present targets.
	undrained [][]int
	// waits are what WaitsFor returns for each party, nil before the first call.
	waits []*string
}

// NewMessages takes parties and nodes as Resolve left them.
func NewMessages(parties []Party, nodes []Shared) Messages {
	return newLockstep(parties, nodes).messages()
}

func (l *lockstep) messages() Messages {
	m := Messages{l: l, undrained: make([][]int, len(l.parties)), waits: make([]*string, len(l.parties))}
	for p, of := range l.of {
		for _, n := range of {
			if !l.nodes[n].Drained {
				m.undrained[p] = append(m.undrained[p], n)
			}
		}
	}
	return m
}

// Waiting is the brief message about a node that is drained and waits for others.
const Waiting = "Waiting"

// Of is the message of a party about one of its nodes, both by their indexes.
func (m Messages) Of(party, node int) string {
	brief := m.Brief(party, node)
	if brief == Waiting {
		return cmp.Or(m.WaitsFor(party), brief)
	}
	return brief
}

// Brief is Of, with Waiting in place of WaitsFor.
func (m Messages) Brief(party, node int) string {
	n := m.l.nodes[node]
	present, going := m.l.present(party)
	switch {
	case !n.Drained && going && m.l.at[node] > present:
		return "Evacuating (fast-forwarded by older " + m.forwarders(n) + ")"
	case !n.Drained && going && m.l.at[node] < present:
		return "Evacuating" + m.limited(party, node)
	case !n.Drained:
		return "Evacuating"
	case !going:
		return "Drained"
	case m.WaitsFor(party) == "":
		return Waiting + m.limited(party, node)
	default:
		return Waiting
	}
}

// WaitsFor names the nodes that the drained nodes of a party wait for; empty if those of all that it meets are drained.
func (m Messages) WaitsFor(party int) string {
	if m.waits[party] == nil {
		waits := m.waiting(party)
		m.waits[party] = &waits
	}
	return *m.waits[party]
}

func (m Messages) waiting(party int) string {
	if own := m.undrained[party]; len(own) > 0 {
		return fmt.Sprintf("Waiting for %s.", nodesOf(m.names(own[:min(len(own), maxNames)]), len(own)))
	}
	if others := m.others(party); len(others) > 0 {
		return fmt.Sprintf("Waiting for %s.", nodesOf(others, len(others)))
	}
	return ""
}

// Forwarders are those who brought a node further than the entry that a party is at, empty if nobody is known to have.
func (m Messages) Forwarders(party, node int) string {
	present, going := m.l.present(party)
	if by := m.l.nodes[node].By; going && m.l.at[node] > present && len(by) > 0 {
		return few(by, len(by))
	}
	return ""
}

// forwarders are not known of a node that was found as it is.
func (m Messages) forwarders(n Shared) string {
	if len(n.By) == 0 {
		return "plans"
	}
	return few(n.By, len(n.By))
}

// limited says who holds a node back from a party's entry.
func (m Messages) limited(party, node int) string {
	least, by := m.l.least(node)
	if present, _ := m.l.present(party); len(by) == 0 || least >= present {
		return "" // it is catching up: nobody holds it back
	}
	return fmt.Sprintf(" (limited by %s)", few(m.l.names(by), len(by)))
}

// others are the undrained nodes of the parties that a party meets, each with the first of them.
func (m Messages) others(party int) []string {
	var all []string
	listed := map[int]bool{}
	for _, q := range m.l.meets[party] {
		for _, n := range m.undrained[q] {
			if !listed[n] {
				listed[n] = true
				all = append(all, fmt.Sprintf("%s (%s)", m.l.nodes[n].Name, m.l.parties[q].Name))
			}
		}
	}
	return all
}

func (m Messages) names(nodes []int) []string {
	var names []string
	for _, n := range nodes {
		names = append(names, m.l.nodes[n].Name)
	}
	return names
}

// nodesOf names the first nodes of so many.
func nodesOf(names []string, all int) string {
	if all == 1 {
		return "node " + names[0]
	}
	return "nodes " + few(names, all)
}

// maxNames bounds the names in a message.
const maxNames = 3

func few(names []string, all int) string {
	if all <= maxNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), all-maxNames)
}
