package drainplan

import (
	"fmt"
	"slices"
	"strings"
)

// Messages say how the drains of nodes stand, in the words of KEP-4212's drainMessage.
type Messages struct {
	l *lockstep
	// undrained are the nodes of each party that are not drained to their present targets.
	undrained [][]int
	// waits are what the drained nodes of each party wait for: the same for all of them. Empty is not made yet.
	waits []string
}

// NewMessages takes parties and nodes as Resolve left them.
func NewMessages(parties []Party, nodes []Shared) Messages {
	return newLockstep(parties, nodes).messages()
}

func (l *lockstep) messages() Messages {
	m := Messages{l: l, undrained: make([][]int, len(l.parties)), waits: make([]string, len(l.parties))}
	for p, of := range l.of {
		for _, n := range of {
			if !l.nodes[n].Drained {
				m.undrained[p] = append(m.undrained[p], n)
			}
		}
	}
	return m
}

// Of is the message of a party about one of its nodes, both by their indexes.
func (m Messages) Of(party, node int) string {
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
	}
	if m.waits[party] == "" {
		m.waits[party] = m.waiting(party)
	}
	if m.waits[party] == nobody {
		return "Waiting" + m.limited(party, node)
	}
	return m.waits[party]
}

// nobody is what a party waits for whose nodes, and those of all that it meets, are drained.
const nobody = "nobody"

// waiting is what the drained nodes of a party wait for.
func (m Messages) waiting(party int) string {
	if own := m.undrained[party]; len(own) > 0 {
		return fmt.Sprintf("Waiting for %s.", nodesOf(m.names(own)))
	}
	if others := m.others(party); len(others) > 0 {
		return fmt.Sprintf("Waiting for %s.", nodesOf(others))
	}
	return nobody
}

// Forwarders are those who brought a node further than the entry that a party is at, empty where nobody is known to have.
func (m Messages) Forwarders(party, node int) string {
	present, going := m.l.present(party)
	if by := m.l.nodes[node].By; going && m.l.at[node] > present && len(by) > 0 {
		return few(by)
	}
	return ""
}

// forwarders are not known of a node that was found as it is.
func (m Messages) forwarders(n Shared) string {
	if len(n.By) == 0 {
		return "plans"
	}
	return few(n.By)
}

// limited says who holds a node back from a party's entry.
func (m Messages) limited(party, node int) string {
	least, by := m.l.least(node)
	if present, _ := m.l.present(party); len(by) == 0 || least >= present {
		return "" // it is catching up: nobody holds it back
	}
	return fmt.Sprintf(" (limited by %s)", few(m.l.names(by)))
}

// others are the undrained nodes of the parties that a party meets, each with the first of them.
func (m Messages) others(party int) []string {
	var all []string
	told := map[int]bool{}
	for _, q := range m.l.meets[party] {
		for _, n := range m.undrained[q] {
			if !told[n] {
				told[n] = true
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

func nodesOf(names []string) string {
	if len(names) == 1 {
		return "node " + names[0]
	}
	return "nodes " + few(names)
}

// told is how many names a message has.
const told = 3

func few(names []string) string {
	if len(names) <= told {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(slices.Clone(names[:told]), ", "), len(names)-told)
}
