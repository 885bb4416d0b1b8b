package health

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock/rules/bounds"
	rules "drydock/rules/health"
)

// sight is what a watch sees of the nodes for one check, kept up to date node by node.
type sight struct {
	lens
	lookout
	in WatchedCheck
	// bad says why the check cannot be watched.
	bad string
	// named are the nodes that the intent names: they are told of whatever they are.
	named map[string]bool
	// selected are the nodes that the check selects, counts those of each group, and of all under "".
	selected map[string]selectedNode
	counts   map[string]rules.GroupCount
	// news are the nodes that are not as the workflow knows them.
	news map[string]nodeNews
	// ignoreTerminating: see Activities.facts.
	ignoreTerminating bool
}

type selectedNode struct {
	group    string
	matching bool
	node     *corev1.Node
}

type nodeNews struct {
	facts rules.Facts
	hash  string
}

func (l lookout) newSight(c WatchedCheck) *sight {
	s := &sight{lookout: l, in: c, named: map[string]bool{}}
	by, err := newLens(c)
	if s.lens = by; err != nil {
		s.bad = bounds.Cut(err.Error(), bounds.Text)
	}
	for _, names := range [][]string{c.Intent.Remediating, c.Intent.WantPermit, c.Intent.HoldPermit} {
		for _, name := range names {
			s.named[name] = true
		}
	}
	return s
}

// all looks at every node there is, and at those that were there.
func (s *sight) all(nodes []*corev1.Node) {
	s.selected, s.counts, s.news = map[string]selectedNode{}, map[string]rules.GroupCount{"": {}}, map[string]nodeNews{}
	there := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		there[node.Name] = true
		s.look(node.Name, node)
	}
	for _, names := range []map[string]bool{s.named, keys(s.in.Known.Nodes)} {
		for name := range names {
			if !there[name] {
				s.look(name, nil)
			}
		}
	}
}

func keys(m map[string]string) map[string]bool {
	all := make(map[string]bool, len(m))
	for key := range m {
		all[key] = true
	}
	return all
}

// look takes in how a node is now; nil is gone.
func (s *sight) look(name string, node *corev1.Node) {
	if before, was := s.selected[name]; was {
		s.count(before, -1)
		delete(s.selected, name)
	}
	known := s.in.Known.Nodes[name]
	told := known != "" || s.named[name]
	selects := node != nil && s.selector.Matches(labelsOf(node))
	if !selects && !told {
		delete(s.news, name)
		return
	}
	facts := rules.Facts{Name: name, Gone: true}
	if node != nil {
		facts = s.facts(s.lens, node, s.ignoreTerminating)
	}
	facts.Left = !selects
	if selects {
		now := selectedNode{group: facts.Group, matching: len(facts.Matches) > 0, node: node}
		s.selected[name] = now
		s.count(now, 1)
	}
	hash := ""
	if s.named[name] || selects && len(facts.Matches) > 0 {
		hash = hashOf(facts)
	}
	if hash == known {
		delete(s.news, name)
		return
	}
	s.news[name] = nodeNews{facts, hash}
}

func (s *sight) count(n selectedNode, by int) {
	groups := []string{""}
	if n.group != "" {
		groups = append(groups, n.group)
	}
	for _, group := range groups {
		c := s.counts[group]
		c.Group, c.Nodes = group, c.Nodes+by
		if n.matching {
			c.Matching += by
		}
		if s.counts[group] = c; c.Nodes == 0 && group != "" {
			delete(s.counts, group)
		}
	}
}

// groups are the counts, of all nodes first.
func (s *sight) groups() []rules.GroupCount {
	return slices.SortedFunc(maps.Values(s.counts), func(a, b rules.GroupCount) int { return cmp.Compare(a.Group, b.Group) })
}

// report is what is new for the check; room is how many nodes may be told of. ok is false where nothing is.
func (s *sight) report(around surroundings, room int, now time.Time) (seen CheckSeen, ok bool) {
	o := rules.Observation{At: now.UTC(), Full: !s.in.Known.All, Groups: s.groups(), Upgrading: around.upgrading}
	o.DisabledReason, o.Disabled = s.disabled(around)
	seen = CheckSeen{Name: s.in.Name, Refused: s.bad, Digest: hashOf([]any{o.Groups, o.Upgrading, o.DisabledReason, o.Disabled, s.bad})}
	if !o.Full && len(s.news) == 0 && seen.Digest == s.in.Known.Digest {
		return seen, false
	}
	names := slices.Sorted(maps.Keys(s.news))
	o.More = len(names) > room
	for _, name := range names[:min(len(names), room)] {
		o.Nodes = append(o.Nodes, s.news[name].facts)
		seen.Hashes = append(seen.Hashes, s.news[name].hash)
	}
	seen.Observation = o
	return seen, true
}

// disabled says why the check may begin nothing, the first reason that there is.
func (s *sight) disabled(around surroundings) (reason, why string) {
	if why := around.machines.conflict(s.selected); why != "" && !s.Settings.IgnoreMachineHealthChecks {
		return rules.DisabledMachineHealthCheck, why
	}
	for _, template := range s.in.Intent.Templates {
		if problem := around.templates[template].problem; problem.Reason != "" {
			return problem.Reason, problem.Why
		}
	}
	return "", ""
}
