package health

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	rules "drydock/rules/health"
)

// sight is what a watch sees of the nodes for one check, kept up to date node by node.
type sight struct {
	lens
	lookout
	in WatchInput
	// named are the nodes under remediation: they are told of whatever they are. known are the hashes of what was told.
	named map[string]bool
	known Hashes
	// selected are the nodes that the check selects, counts those of each group, and of all under "".
	selected map[string]selectedNode
	counts   map[string]rules.GroupCount
	// news are the nodes that are not as the workflow knows them.
	news map[string]nodeNews
	// ignoreTerminating: see Activities.facts.
	ignoreTerminating bool
	// overlaps is what overlap has found with the peers of version overlapped, nil where that is to be found anew.
	overlaps   *rules.Overlap
	overlapped int
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

func (l lookout) newSight(in WatchInput) (*sight, error) {
	by, err := newLens(in)
	s := &sight{lens: by, lookout: l, in: in, named: map[string]bool{}, known: maps.Clone(in.Known.Nodes)}
	for _, name := range in.Remediating {
		s.named[name] = true
	}
	for _, name := range in.Intent.Unseen {
		s.named[name] = true
		delete(s.known, name) // told before, and forgotten
	}
	return s, err
}

// all looks at every node there is, and at those that were there.
func (s *sight) all(nodes []*corev1.Node) {
	s.selected, s.counts, s.news = map[string]selectedNode{}, map[string]rules.GroupCount{"": {}}, map[string]nodeNews{}
	there := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		there[node.Name] = true
		s.look(node.Name, node)
	}
	for name := range s.named {
		if !there[name] {
			s.look(name, nil)
		}
	}
	for name := range s.known {
		if !there[name] {
			s.look(name, nil)
		}
	}
}

// look takes in how a node is now; nil is gone.
func (s *sight) look(name string, node *corev1.Node) {
	before, was := s.selected[name]
	if was {
		s.count(before, -1)
		delete(s.selected, name)
	}
	known := s.known[name]
	told := known != "" || s.named[name]
	selects := node != nil && s.selector.Matches(labelsOf(node))
	if was != selects || was && !maps.Equal(before.node.Labels, node.Labels) {
		s.overlaps = nil
	}
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

// report is what is not as the workflow knows it.
func (s *sight) report(around snapshot, now time.Time) (result WatchResult) {
	o := rules.Observation{At: now.UTC(), Full: !s.in.Known.All, Groups: s.groups(), Upgrading: s.upgrading(around, now), Overlap: s.overlapWith(around, now)}
	o.DisabledReason, o.Disabled = s.disabled(around, now)
	machines := s.hasMachineChecks(around, now)
	if denied := around.deniedText(); denied != s.in.Known.Denied {
		result.Denied = &denied
	}
	digest := hashOf([]any{o.Groups, o.Upgrading, o.DisabledReason, o.Disabled, o.Overlap, machines})
	if !o.Full && len(s.news) == 0 && digest == s.in.Known.Digest {
		return result
	}
	names := slices.Sorted(maps.Keys(s.news))
	o.More = len(names) > maxTold
	for _, name := range names[:min(len(names), maxTold)] {
		o.Nodes = append(o.Nodes, s.news[name].facts)
		result.Hashes = append(result.Hashes, s.news[name].hash)
	}
	result.Observation, result.Digest, result.MachineChecks = &o, digest, machines
	return result
}

// upgrading says in words that the cluster is being upgraded.
func (s *sight) upgrading(around snapshot, now time.Time) string {
	if !around.knows(upgradeLook, now) {
		return s.in.Known.Around.Upgrading
	}
	return around.upgrading
}

// hasMachineChecks reports whether there is a MachineHealthCheck that counts.
func (s *sight) hasMachineChecks(around snapshot, now time.Time) bool {
	switch {
	case s.Settings.IgnoreMachineHealthChecks:
		return false
	case !around.knows(machinesLook, now):
		return s.in.Known.Around.MachineChecks
	}
	return around.machines.there
}

// overlapWith is overlap, which takes a look at every node, where something has changed since.
func (s *sight) overlapWith(around snapshot, now time.Time) rules.Overlap {
	if !around.knows(peersLook, now) {
		return s.in.Known.Around.Overlap
	}
	if s.overlaps == nil || s.overlapped != around.peersVersion {
		found := s.overlap(around.peers)
		s.overlaps, s.overlapped = &found, around.peersVersion
	}
	return *s.overlaps
}

// disabled says why the check may begin nothing, the first reason that there is.
func (s *sight) disabled(around snapshot, now time.Time) (reason, why string) {
	before := s.in.Known.Around
	if !s.Settings.IgnoreMachineHealthChecks {
		why := around.machines.conflict(s.selected)
		if !around.knows(machinesLook, now) {
			if why = ""; before.DisabledReason == rules.DisabledMachineHealthCheck {
				why = before.Disabled
			}
		}
		if why != "" {
			return rules.DisabledMachineHealthCheck, why
		}
	}
	for _, ref := range s.in.Intent.Templates {
		template := around.templates[ref]
		if !template.isKnown(now) {
			template.problem = problem{}
			if before.DisabledReason == rules.DisabledTemplateNotFound || before.DisabledReason == rules.DisabledTemplateInvalid {
				template.problem = problem{before.DisabledReason, before.Disabled}
			}
		}
		if template.problem.Reason != "" {
			return template.problem.Reason, template.problem.Why
		}
	}
	return "", ""
}
