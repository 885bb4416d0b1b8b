package health

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	rules "drydock.dev/drydock/rules/health"
)

// inventory is what a watch sees of the nodes for one check, kept up to date node by node.
type inventory struct {
	criteria
	*Activities
	in WatchInput
	// named are the nodes under remediation, which are reported whatever they are. known are the hashes of what was reported.
	named map[string]bool
	known Hashes
	// selected are the nodes that the check selects, counts those of each group, and of all under "".
	selected map[string]selectedNode
	counts   map[string]rules.GroupCount
	// unreported are the nodes that are not as the workflow knows them.
	unreported map[string]nodeChange
	// ignoreTerminating: see Activities.facts.
	ignoreTerminating bool
	// overlaps is what overlap found with the peers of version overlapped; nil before it has looked at them.
	overlaps   *rules.Overlap
	overlapped int
}

type selectedNode struct {
	group    string
	matching bool
	node     *corev1.Node
}

type nodeChange struct {
	facts rules.Facts
	hash  string
}

func (a *Activities) newInventory(in WatchInput) (*inventory, error) {
	by, err := newCriteria(in)
	s := &inventory{criteria: by, Activities: a, in: in, named: map[string]bool{}, known: maps.Clone(in.Known.Nodes)}
	for _, name := range in.Remediating {
		s.named[name] = true
	}
	for _, name := range in.Intent.Unseen {
		s.named[name] = true
		delete(s.known, name) // reported before, and forgotten
	}
	return s, err
}

// all looks at every node there is, and at those that were there.
func (s *inventory) all(nodes []*corev1.Node) {
	s.selected, s.counts, s.unreported = map[string]selectedNode{}, map[string]rules.GroupCount{"": {}}, map[string]nodeChange{}
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
func (s *inventory) look(name string, node *corev1.Node) {
	before, was := s.selected[name]
	if was {
		s.count(before, -1)
		delete(s.selected, name)
	}
	known := s.known[name]
	reported := known != "" || s.named[name]
	selects := node != nil && s.selector.Matches(labelsOf(node))
	if was != selects || was && !maps.Equal(before.node.Labels, node.Labels) {
		s.overlaps = nil
	}
	if !selects && !reported {
		delete(s.unreported, name)
		return
	}
	facts := rules.Facts{Name: name, Gone: true}
	if node != nil {
		facts = s.facts(s.criteria, node, s.ignoreTerminating)
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
		delete(s.unreported, name)
		return
	}
	s.unreported[name] = nodeChange{facts, hash}
}

func (s *inventory) count(n selectedNode, by int) {
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
func (s *inventory) groups() []rules.GroupCount {
	return slices.SortedFunc(maps.Values(s.counts), func(a, b rules.GroupCount) int { return cmp.Compare(a.Group, b.Group) })
}

// report is what is not as the workflow knows it.
func (s *inventory) report(around snapshot, now time.Time) (result WatchResult) {
	o := rules.Observation{At: now.UTC(), Full: !s.in.Known.All, Groups: s.groups(), Upgrading: s.upgrading(around, now), Overlap: s.overlapWith(around, now)}
	o.DisabledReason, o.Disabled = s.disabled(around, now)
	machines := s.hasMachineChecks(around, now)
	if denied := around.deniedText(); denied != s.in.Known.Denied {
		result.Denied = &denied
	}
	digest := hashOf([]any{o.Groups, o.Upgrading, o.DisabledReason, o.Disabled, o.Overlap, machines})
	if !o.Full && len(s.unreported) == 0 && digest == s.in.Known.Digest {
		return result
	}
	names := slices.Sorted(maps.Keys(s.unreported))
	o.More = len(names) > maxReported
	for _, name := range names[:min(len(names), maxReported)] {
		o.Nodes = append(o.Nodes, s.unreported[name].facts)
		result.Hashes = append(result.Hashes, s.unreported[name].hash)
	}
	result.Observation, result.Digest, result.MachineChecks = &o, digest, machines
	return result
}

// upgrading says in words that the cluster is being upgraded.
func (s *inventory) upgrading(around snapshot, now time.Time) string {
	if !around.knows(upgradeLook, now) {
		return s.in.Known.Around.Upgrading
	}
	return around.upgrading
}

// hasMachineChecks reports whether there is a MachineHealthCheck that counts.
func (s *inventory) hasMachineChecks(around snapshot, now time.Time) bool {
	switch {
	case s.Settings.IgnoreMachineHealthChecks:
		return false
	case !around.knows(machinesLook, now):
		return s.in.Known.Around.MachineChecks
	}
	return around.machines.there
}

// overlapWith is overlap, which takes a look at every node, where something has changed since.
func (s *inventory) overlapWith(around snapshot, now time.Time) rules.Overlap {
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
func (s *inventory) disabled(around snapshot, now time.Time) (reason, why string) {
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
