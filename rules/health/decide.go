package health

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// oldAfter is how old a remediation object is that people are told of (medik8s, old-remediation-cr-flag).
	oldAfter = 48 * time.Hour
	// retryAfter is when a remediation is tried again that stood back for somebody else's, and the first time for one that
	// failed; each failure doubles it up to maxRetry.
	retryAfter = time.Minute
	maxRetry   = 30 * time.Minute
	// keepPast is how long a remediation is remembered at least: what it says late has to be known for late.
	keepPast = 10 * time.Minute
	// maxWants bounds the control-plane nodes that a permit is asked for at a time.
	maxWants = 20
)

// deciding is one decision in the making.
type deciding struct {
	*view
	// wants are control-plane nodes that only a permit is missing for, gaveUp: a permit that was used is over.
	wants  []string
	gaveUp bool
	events *events
	out    *Decision
}

// Decide says what is to be done with what is known. The state of the input stays as it is.
func Decide(in Input) Decision {
	d := &deciding{view: viewOf(in), events: &events{}, out: &Decision{}}
	d.end()
	d.created()
	d.disabled()
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
	d.intent()
	d.out.Events = d.events.told()
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
			n.WellSince, n.ConfirmedBy, n.Told.Confirm = time.Time{}, "", false
			if found := d.spec.illnessOf(n.Facts, d.now); found.class == soon {
				d.wake(found.at)
			}
		default:
			n.Told.Unhealthy, n.Told.Label, n.Told.Skipped = false, false, ""
			if n.Remediation != nil && n.WellSince.IsZero() {
				n.WellSince = d.now
			}
			if n.Remediation == nil && n.Past != nil && n.Past.Failed > 0 {
				past := *n.Past
				past.Failed, past.RetryAt, past.Failure = 0, time.Time{}, ""
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
		seen.Dropped, d.state.Ask = false, true
	}
}

// withdraw takes back what has not begun yet where nothing may begin any more, such as after somebody has paused the check.
func (d *deciding) withdraw(waiting []string) {
	if len(d.blocks) == 0 {
		return
	}
	for _, name := range waiting {
		i, found := d.state.find(name)
		if !found || d.state.Nodes[i].Remediation == nil || d.state.Nodes[i].Remediation.Progress != nil {
			continue
		}
		n := &d.state.Nodes[i]
		n.Remediation = nil
		if n.ControlPlane {
			d.giveUpTurn(n.Name)
		}
		d.out.Withdrawn = append(d.out.Withdrawn, name)
	}
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
	told := ""
	if len(candidates) > 0 && len(d.blocks) > 0 {
		b := d.blocks[0]
		if told = b.kind; told != d.state.Told && b.kind != blockDisabled {
			d.events.add(Event{Reason: EventRemediationSkipped, Text: "no remediation begins: " + b.text, Warning: b.warning})
		}
	}
	d.state.Told = told
}

// candidate is a node whose remediation is due.
type candidate struct {
	node *Node
	ill  illness
}

func (d *deciding) consider(c candidate) {
	n := c.node
	if !n.Told.Unhealthy {
		n.Told.Unhealthy = true
		d.events.add(Event{Reason: EventDetectedUnhealthy, Node: n.Name, Text: d.spec.words(c.ill)})
	}
	if n.Excluded && n.Exclude == "" && !n.Told.Label {
		n.Told.Label = true
		d.events.add(Event{Reason: EventInvalidNodeLabel, Node: n.Name, Text: "the label " + excludeLabel + " has no value, and is ignored: want true", Warning: true})
	}
	if n.Past != nil {
		d.wake(n.Past.RetryAt)
	}
	own := d.nodeBlocks(*n, true)
	if len(d.blocks) == 0 && len(own) > 0 && onlyPermit(own) {
		d.wants = append(d.wants, n.Name)
	}
	if len(d.blocks) > 0 || len(own) > 0 {
		d.skipped(n, own)
		return
	}
	from := d.firstStep(*n, c.ill)
	why := d.spec.words(c.ill)
	n.Remediation = &Running{BeganAt: d.now, From: from, Order: Order{Node: n.Name, Revision: 1, Step: from, Why: why}}
	d.out.Begin = append(d.out.Begin, Begin{Node: n.Name, UID: n.UID, ControlPlane: n.ControlPlane, Step: from, Since: c.ill.since, Why: why})
}

func onlyPermit(blocks []block) bool {
	return !slices.ContainsFunc(blocks, func(b block) bool { return b.kind != blockPermit })
}

// skipped tells once why a node is not remediated. What goes for all nodes is told for all at once.
func (d *deciding) skipped(n *Node, own []block) {
	if len(own) == 0 || own[0].kind == blockRetry || own[0].kind == n.Told.Skipped {
		return
	}
	if own[0].kind == blockPermit && own[0].text == waitsForTurn {
		return // it has only just been asked for
	}
	n.Told.Skipped = own[0].kind
	d.events.add(Event{Reason: EventRemediationSkipped, Node: n.Name, Text: own[0].text, Warning: own[0].warning})
}

// intent makes what the check wants to be told of.
func (d *deciding) intent() {
	intent := Intent{Conditions: d.spec.UnhealthyConditions, GroupBy: groupBy(d.spec), Templates: d.spec.templates(), Etcd: d.spec.AskEtcd()}
	if selector, err := metav1.LabelSelectorAsSelector(&d.spec.Selector); err == nil {
		intent.Selector = selector.String() // Decode refuses what cannot be converted
	}
	var holds []Node
	for _, n := range d.state.Nodes {
		if n.Remediation != nil {
			intent.Remediating = append(intent.Remediating, n.Name)
			if n.holdsPermit() {
				holds = append(holds, n)
			}
		}
	}
	slices.SortStableFunc(holds, func(a, b Node) int { return a.Remediation.BeganAt.Compare(b.Remediation.BeganAt) })
	for _, n := range holds {
		intent.HoldPermit = append(intent.HoldPermit, n.Name)
	}
	intent.WantPermit = d.wants[:min(len(d.wants), maxWants)]
	d.permit(intent)
	digest := digestOf(intent)
	if digest != d.state.Digest || d.gaveUp {
		d.state.Digest = digest
		d.state.Revision++
		d.out.Changed = true
	}
	d.state.Wants = intent.WantPermit
	d.out.Intent, d.out.Ask = intent, d.state.Ask
	d.state.Ask = false
}

// permit gives back what is not needed any more: from the next revision on, a permit that is on its way does not count, so
// that whoever hears that it is given back can give it to another node.
func (d *deciding) permit(intent Intent) {
	needed := func(node string) bool {
		return slices.Contains(intent.WantPermit, node) || slices.Contains(intent.HoldPermit, node)
	}
	seen := &d.state.Seen
	if seen.Permit != "" && !needed(seen.Permit) {
		seen.Permit, d.gaveUp = "", true
	}
	if slices.ContainsFunc(d.state.Wants, func(node string) bool { return !needed(node) }) {
		d.gaveUp = true
	}
	if d.gaveUp {
		seen.PermitFrom = d.state.Revision + 1
	}
}

func digestOf(intent Intent) string {
	text, err := json.Marshal(intent)
	if err != nil {
		panic(fmt.Sprintf("an intent is not JSON: %v", err)) // of plain values only
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}
