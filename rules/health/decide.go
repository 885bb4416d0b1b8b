package health

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// oldAfter is the age from which on people are warned of a remediation object (medik8s, old-remediation-cr-flag).
	oldAfter = 48 * time.Hour
	// retryAfter is when a remediation is tried again that stood back for somebody else's, and the first time for one that
	// failed; each failure doubles it up to maxRetry.
	retryAfter = time.Minute
	maxRetry   = 30 * time.Minute
	// keepPast is how long a remediation is remembered at least: what it says late has to be known for late.
	keepPast = 10 * time.Minute
)

// deciding is one decision in the making.
type deciding struct {
	*view
	events *events
	out    *Decision
}

// Decide says what is to be done with what is known. The state of the input stays as it is.
func Decide(in Input) Decision {
	d := &deciding{view: viewOf(in), events: &events{}, out: &Decision{}}
	d.end()
	d.created()
	d.disabled()
	d.overlap()
	if d.state.Seen.Known {
		d.recoveries()
		d.forget()
		d.count()
		d.storm()
		d.blocks = d.allBlocks()
		d.withdraw(in.Waiting)
		for i := range d.state.Nodes {
			if n := &d.state.Nodes[i]; n.Remediation != nil && !n.Unseen {
				d.steer(n)
			}
		}
		d.begin()
	}
	d.out.Events = d.events.all()
	d.out.State = *d.state
	return *d.out
}

// wake has the check decide again at that time, or before.
func (d *deciding) wake(at time.Time) {
	if at.After(d.now) && (d.out.Wake.IsZero() || at.Before(d.out.Wake)) {
		d.out.Wake = at
	}
}

// recoveries notes which nodes have become healthy, or ill again, and when the next is ill.
func (d *deciding) recoveries() {
	for i := range d.state.Nodes {
		n := &d.state.Nodes[i]
		switch {
		case n.Unseen:
		case len(n.Matches) > 0:
			n.WellSince, n.ConfirmedBy, n.Announced.Confirm = time.Time{}, "", false
			if found := d.spec.illnessOf(n.Facts, d.now); found.class == soon {
				d.wake(found.at)
			}
		default:
			n.Announced.Unhealthy, n.Announced.Label, n.Announced.Skipped = false, false, ""
			if n.Remediation != nil && n.WellSince.IsZero() {
				n.WellSince = d.now
			}
			if n.Remediation == nil && n.Past != nil && n.Past.Failed > 0 {
				past := *n.Past
				past.Failed, past.RetryAt, past.Failure, past.Trouble = 0, time.Time{}, "", ""
				n.Past = &past
			}
		}
	}
}

// forget drops nodes of which nothing has to be remembered.
func (d *deciding) forget() {
	within := keepPast
	if d.spec.Flapping != nil {
		within = max(within, d.spec.Flapping.Within.Std())
	}
	var past []Node
	d.state.Nodes = slices.DeleteFunc(d.state.Nodes, func(n Node) bool {
		if n.Remediation != nil || n.Unseen {
			return false
		}
		if n.Left || len(n.Matches) == 0 && (n.Past == nil || d.now.After(n.Past.EndedAt.Add(within))) {
			return true
		}
		if len(n.Matches) == 0 {
			past = append(past, n)
		}
		return false
	})
	if len(past) > maxPast {
		slices.SortFunc(past, func(a, b Node) int {
			return cmp.Or(a.Past.EndedAt.Compare(b.Past.EndedAt), strings.Compare(a.Name, b.Name))
		})
		dropped := map[string]bool{}
		for _, n := range past[:len(past)-maxPast] {
			dropped[n.Name] = true
		}
		d.state.Nodes = slices.DeleteFunc(d.state.Nodes, func(n Node) bool { return dropped[n.Name] })
	}
	if seen := &d.state.Seen; seen.Dropped && len(d.state.Nodes) < MaxNodes*9/10 {
		seen.Dropped, d.out.Anew = false, true
	}
}

// withdraw takes back what has not begun yet where nothing may begin any more, such as after somebody has paused the check, and of nodes that
// are not ill any more.
func (d *deciding) withdraw(waiting []string) {
	d.out.Withdrawn = d.state.Withdraw(slices.DeleteFunc(slices.Clone(waiting), func(name string) bool {
		n, found := d.state.Node(name)
		if !found || n.Remediation == nil || len(d.blocks) > 0 {
			return false
		}
		return n.Unseen || !n.Left && !n.Remediation.Order.Healthy && d.spec.illnessOf(n.Facts, d.now).class == ill
	}))
	if len(d.out.Withdrawn) > 0 {
		d.forget() // of those that are not ill nothing has to be remembered
	}
}

// Withdraw takes back those remediations of nodes that have not begun, and returns their nodes.
func (s *State) Withdraw(nodes []string) (withdrawn []string) {
	for _, name := range nodes {
		i, found := s.find(name)
		if !found || s.Nodes[i].Remediation == nil || s.Nodes[i].Remediation.Progress != nil {
			continue
		}
		s.Nodes[i].Remediation = nil
		withdrawn = append(withdrawn, name)
	}
	return withdrawn
}

// begin begins the remediations that may begin, of the node that was ill first first.
func (d *deciding) begin() {
	var candidates []candidate
	for i := range d.state.Nodes {
		n := &d.state.Nodes[i]
		if n.Remediation != nil || n.Unseen || n.Left {
			continue
		}
		if found := d.spec.illnessOf(n.Facts, d.now); found.class == ill {
			candidates = append(candidates, candidate{n, found})
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		return cmp.Or(a.ill.at.Compare(b.ill.at), strings.Compare(a.node.Name, b.node.Name))
	})
	for _, c := range candidates {
		d.consider(c)
	}
	announced := ""
	if len(candidates) > 0 && len(d.blocks) > 0 {
		b := d.blocks[0]
		if announced = b.kind; announced != d.state.AnnouncedBlock && b.kind != blockDisabled {
			d.events.add(Event{Reason: EventRemediationSkipped, Text: "no remediation begins: " + b.text, Warning: b.warning})
		}
	}
	d.state.AnnouncedBlock = announced
}

// candidate is a node whose remediation is due.
type candidate struct {
	node *Node
	ill  illness
}

func (d *deciding) consider(c candidate) {
	n := c.node
	if !n.Announced.Unhealthy {
		n.Announced.Unhealthy = true
		d.events.add(Event{Reason: EventDetectedUnhealthy, Node: n.Name, Text: d.spec.words(c.ill)})
	}
	if n.Excluded && n.Exclude == "" && !n.Announced.Label {
		n.Announced.Label = true
		d.events.add(Event{Reason: EventInvalidNodeLabel, Node: n.Name, Text: "the label " + excludeLabel + " has no value, and is ignored: want true", Warning: true})
	}
	if n.Past != nil {
		d.wake(n.Past.RetryAt)
	}
	own := d.nodeBlocks(*n, true)
	if len(d.blocks) > 0 || len(own) > 0 {
		d.skipped(n, own)
		return
	}
	from := d.firstStep(*n, c.ill)
	why := d.spec.words(c.ill)
	n.Remediation = &Running{BeganAt: d.now, From: from, Order: Order{Node: n.Name, Revision: 1, Step: from, Why: why}}
	d.out.Begin = append(d.out.Begin, Begin{Node: n.Name, UID: n.UID, ControlPlane: n.ControlPlane, Step: from, Since: c.ill.since, Why: why})
}

// skipped announces once why a node is not remediated. What blocks all nodes is announced for all of them together.
func (d *deciding) skipped(n *Node, own []block) {
	if len(own) == 0 || own[0].kind == blockRetry || own[0].kind == n.Announced.Skipped {
		return
	}
	n.Announced.Skipped = own[0].kind
	d.events.add(Event{Reason: EventRemediationSkipped, Node: n.Name, Text: own[0].text, Warning: own[0].warning})
}

// IntentOf is what a check has watched.
func IntentOf(spec Spec, state State) Intent {
	intent := Intent{Conditions: spec.UnhealthyConditions, GroupBy: groupBy(spec), Templates: spec.templates(), Selector: spec.SelectorText()}
	for i := range state.Nodes {
		if n := &state.Nodes[i]; n.Remediation != nil && n.Unseen {
			intent.Unseen = append(intent.Unseen, n.Name)
		}
	}
	return intent
}

// SelectorText is the selector as text. Decode refuses one that has none.
func (s Spec) SelectorText() string {
	selector, err := metav1.LabelSelectorAsSelector(&s.Selector)
	if err != nil {
		return ""
	}
	return selector.String()
}
