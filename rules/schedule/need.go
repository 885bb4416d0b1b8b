package schedule

import (
	"fmt"
	"strings"

	"drydock.dev/drydock/rules/number"
)

// need is what a gang takes of every limit that counts one of its nodes.
type need struct {
	// parts are the cluster's, then those of groups as its members name them.
	parts []*part
	// quota are its nodes by requestor, whose names are in requestors.
	quota      map[string]int
	requestors []string
}

// part is what it takes of the limits of the cluster or of one group.
type part struct {
	// key is that of the group, empty for the cluster.
	key   string
	gauge gauge
	// now is what it takes beside what is held, alone what it takes by itself, later once all maintenances have ended.
	now, alone, later amounts
}

// amounts count nodes: all, and those that become unavailable.
type amounts struct{ slots, unavailable int }

func (a *amounts) add(cost int) {
	a.slots++
	a.unavailable += cost
}

// needOf adds up what the members need. Of a node in maintenance it is known that it is in use, and not what it will be:
// by itself it is taken to cost nothing where it is unavailable, later to cost what it may.
func (r *round) needOf(members []member) *need {
	n := &need{quota: map[string]int{}}
	byKey := map[string]*part{}
	partOf := func(key string, g gauge) *part {
		if byKey[key] == nil {
			byKey[key] = &part{key: key, gauge: g}
			n.parts = append(n.parts, byKey[key])
		}
		return byKey[key]
	}
	partOf("", r.cluster)
	for _, m := range members {
		if n.quota[m.Requestor]++; n.quota[m.Requestor] == 1 {
			n.requestors = append(n.requestors, m.Requestor)
		}
		_, busy := r.holders[m.Node]
		busy = busy || r.best[m.Node].granted
		repaired := r.remediations.nodes[m.Node]
		cost := 1
		if r.isUnavailable(m.Node, m.facts) {
			cost = 0
		}
		count := func(p *part) {
			p.alone.add(cost)
			if busy {
				p.later.add(1)
				if repaired {
					p.now.slots++ // its slot is no other's, and falls to no gang
				}
				return
			}
			p.later.add(cost)
			p.now.add(cost)
		}
		count(n.parts[0])
		for _, key := range m.facts.Groups {
			count(partOf(key, r.group(key)))
		}
	}
	return n
}

// binding is the first limit that has no room for the gang, and why; no code where all have.
func (n *need) binding(g *gang, r *round) (Code, string) {
	for _, p := range n.parts {
		if b := p.gauge.parallel; p.now.slots > 0 && !b.fits(p.now.slots, true) {
			code, reason := b.refusal(p.now.slots, r.kept.gang)
			return code, fmt.Sprintf("gang %s needs %s at once: %s", g.name, number.Of(p.now.slots, "slot"), reason)
		}
		if b := p.gauge.unavailable; p.now.unavailable > 0 && !b.fits(p.now.unavailable, true) {
			code, reason := b.refusal(p.now.unavailable, r.kept.gang)
			return code, fmt.Sprintf("gang %s makes %s unavailable at once: %s", g.name, number.Of(p.now.unavailable, "node"), reason)
		}
	}
	for _, requestor := range n.requestors {
		if code, reason := r.overHeld(requestor, n.quota[requestor], true); code != "" {
			return code, fmt.Sprintf("gang %s has %s of %s: %s", g.name, number.Of(n.quota[requestor], "node"), requestor, reason)
		}
	}
	return "", ""
}

// fitsLater reports whether the gang may fit once all maintenances have ended, with the nodes that are unavailable otherwise.
func (n *need) fitsLater() bool {
	for _, p := range n.parts {
		if b := p.gauge.unavailable; p.alone.unavailable > 0 && b.standing+p.later.unavailable > b.limit {
			return false
		}
	}
	return true
}

// tooLarge says which limits are smaller than what the gang needs by itself, and the commands that raise them; empty if
// none is.
func (n *need) tooLarge(g *gang, limits Limits) string {
	var exceeded, commands []string
	over := func(b *bound, needs int) bool {
		if needs <= b.limit {
			return false
		}
		exceeded = append(exceeded, b.describe())
		return true
	}
	// Parts of a group share its limits: one command raises them for all.
	raised := make(map[string]*raise)
	for _, p := range n.parts {
		name := GroupName(p.key)
		to := raised[name]
		if to == nil {
			to = &raise{}
			raised[name] = to
		}
		if b := p.gauge.parallel; over(b, p.alone.slots) {
			to.parallel = larger(to.parallel, b.amount.atLeast(p.alone.slots, b.nodes))
		}
		if b := p.gauge.unavailable; p.alone.unavailable > 0 && over(b, p.alone.unavailable) {
			to.unavailable = larger(to.unavailable, b.amount.atLeast(p.alone.unavailable, b.nodes))
		}
	}
	commands = appendCommand(commands, "", raised[""])
	for _, group := range limits.Groups {
		commands = appendCommand(commands, " --group "+group.Name, raised[group.Name])
	}
	for _, requestor := range n.requestors {
		if most := limits.Quotas.Of(requestor).Held; most != nil && n.quota[requestor] > *most {
			exceeded = append(exceeded, fmt.Sprintf("the quota of %s (%d)", requestor, *most))
			commands = append(commands, fmt.Sprintf("%s --held %s=%d", setLimits, requestor, n.quota[requestor]))
		}
	}
	if len(exceeded) == 0 {
		return ""
	}
	return fmt.Sprintf("gang %s of %s%s%s (%s)",
		g.name, number.Of(n.parts[0].alone.slots, "node"), largerThan, strings.Join(commands[:min(len(commands), maxNamed)], "; "), list(exceeded))
}

// largerThan comes before the commands in what a gang is told that is too large.
const largerThan = " goes once limits are raised that it is larger than by itself: "

// Raises are the commands, and the limits, that the reason of a refusal names whose code is GangTooLarge; empty if it names none.
func Raises(reason string) (commands, limits string) {
	_, named, _ := strings.Cut(reason, largerThan)
	commands, limits, _ = strings.Cut(named, " (")
	return commands, strings.TrimSuffix(limits, ")")
}

// setLimits is the command that changes limits.
const setLimits = "drydock limits set"

// raise is what limits have to be raised to.
type raise struct{ parallel, unavailable Amount }

func appendCommand(commands []string, scope string, to *raise) []string {
	if to == nil || to.parallel.IsZero() && to.unavailable.IsZero() {
		return commands
	}
	command := setLimits + scope
	if !to.parallel.IsZero() {
		command += " --max-parallel " + to.parallel.String()
	}
	if !to.unavailable.IsZero() {
		command += " --max-unavailable " + to.unavailable.String()
	}
	return append(commands, command)
}

func larger(a, b Amount) Amount {
	if b.value > a.value {
		return b
	}
	return a
}
