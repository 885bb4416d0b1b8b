package health

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// end takes in the remediations that are over.
func (d *deciding) end() {
	for i := range d.state.Nodes {
		n := &d.state.Nodes[i]
		if n.Remediation == nil || !ended(n.Remediation) {
			continue
		}
		p := n.Remediation.Progress
		past := Past{EndedAt: d.now, RunID: p.RunID, Step: p.Step}
		if n.Remediation.Order.Healthy || p.Recovered {
			if n.Announced.Steps > 0 {
				d.events.add(Event{Reason: EventRemediationRemoved, Node: n.Name, Text: "its remediation is over and removed"})
			}
		} else {
			d.endedAlone(n, &past)
		}
		n.Past, n.Remediation = &past, nil
		n.WellSince, n.ConfirmedBy = time.Time{}, ""
		n.Announced = Announced{Unhealthy: n.Announced.Unhealthy, Label: n.Announced.Label, Skipped: n.Announced.Skipped}
	}
}

// endedAlone takes in a remediation that ended without an order: it is tried again later.
func (d *deciding) endedAlone(n *Node, past *Past) {
	p := n.Remediation.Progress
	if n.Past != nil {
		past.Failed = n.Past.Failed
	}
	past.Failed++
	var kind string
	wait, reason := retryAfter, EventRemediationSkipped
	switch {
	case p.LeaseHeldBy != "":
		kind, past.Failure = endLease, fmt.Sprintf("the node's lease is held by %s", p.LeaseHeldBy)
	case p.NotOwned != "":
		kind, past.Failure = endNotOwned, fmt.Sprintf("there is a remediation of somebody else: %s", p.NotOwned)
	case p.Indispensable != "":
		kind, past.Failure = blockTurn, p.Indispensable
	default:
		kind, reason = endFailed, EventRemediationFailed
		past.Failure = cmp.Or(p.Failure, "the remediation was removed by somebody else")
		wait = min(retryAfter<<min(past.Failed-1, 10), maxRetry)
	}
	past.RetryAt = d.now.Add(wait)
	if n.Announced.Skipped != kind {
		n.Announced.Skipped = kind
		d.events.add(Event{Reason: reason, Node: n.Name, Text: past.Failure, Warning: true})
	}
}

// created announces the remediation objects that are new.
func (d *deciding) created() {
	for i := range d.state.Nodes {
		n := &d.state.Nodes[i]
		if n.Remediation == nil || n.Remediation.Progress.begun() <= n.Announced.Steps {
			continue
		}
		begun := 0
		for _, step := range n.Remediation.Progress.Steps {
			if step.StartedAt.IsZero() {
				continue
			}
			if begun++; begun > n.Announced.Steps {
				d.events.add(Event{Reason: EventRemediationCreated, Node: n.Name, Text: step.what()})
			}
		}
		n.Announced.Steps, n.Announced.Skipped = begun, ""
	}
}

// disabled announces that the check is disabled, and that this is over.
func (d *deciding) disabled() {
	if !d.state.Seen.Known {
		return
	}
	reason, text := d.state.Seen.disabled()
	if reason == d.state.Disabled && !d.state.DisabledAt.IsZero() {
		return
	}
	if (reason == "") != (d.state.Disabled == "") || d.state.DisabledAt.IsZero() {
		d.state.DisabledAt = d.now
	}
	d.state.Disabled = reason
	if reason == "" {
		d.events.add(Event{Reason: EventEnabled, Text: "the check is in force"})
		return
	}
	d.events.add(Event{Reason: EventDisabled, Text: fmt.Sprintf("%s: %s", reason, text), Warning: true})
}

// overlap announces an older check that selects nodes of this check, once. Whichever takes a node's lease first remediates it.
func (d *deciding) overlap() {
	other := d.state.Seen.Overlap
	if other.Check == d.state.Overlap {
		return
	}
	if d.state.Overlap = other.Check; other.Check != "" {
		d.events.add(Event{Reason: EventOverlap, Text: other.text(), Warning: true})
	}
}

// steer says what a remediation is to do from now on.
func (d *deciding) steer(n *Node) {
	before := n.Remediation.Order
	if before.Healthy {
		return
	}
	order := before
	order.TimedOut = slices.Clone(before.TimedOut)
	if why := d.over(n); why != "" {
		order.Healthy, order.Why = true, why
	} else if p := n.Remediation.Progress; p != nil && p.WaitsForSlot && len(d.blocks) > 0 {
		order.Healthy, order.Why = true, "nothing has begun, and "+d.blocks[0].text
	} else if !n.Left && len(n.Matches) > 0 {
		if d.spec.illnessOf(n.Facts, d.now).class == ill {
			d.escalate(n, &order)
			d.alert(n, &order)
		}
	}
	if order.Healthy == before.Healthy && order.Step == before.Step && order.Old == before.Old && slices.Equal(order.TimedOut, before.TimedOut) {
		return
	}
	order.Revision++
	running := *n.Remediation
	running.Order = order
	n.Remediation = &running
	d.out.Orders = append(d.out.Orders, order)
}

// over says why a remediation is to be removed; empty is not yet.
func (d *deciding) over(n *Node) string {
	p := n.Remediation.Progress
	switch {
	case n.Gone:
		if p != nil && p.PermanentNodeDeletionExpected && !d.succeeded(n) {
			return "" // the remediator has deleted it and is not done
		}
		return "the node was deleted"
	case n.Left:
		return "the check does not select the node any more"
	case len(n.Matches) > 0:
		return ""
	}
	delay := d.spec.HealthyDelay.Std()
	switch due := n.WellSince.Add(delay); {
	case n.ConfirmedBy != "":
		return "the node was confirmed to be healthy by " + n.ConfirmedBy
	case n.Confirmed:
		return "the node is annotated as confirmed to be healthy"
	case delay == 0:
		return "the node is healthy"
	case delay < 0:
		if !n.Announced.Confirm {
			n.Announced.Confirm = true
			d.events.add(Event{Reason: EventConfirmationNeeded, Node: n.Name, Text: "the node is healthy again, and somebody has to confirm it"})
		}
		return ""
	case d.now.Before(due):
		d.wake(due)
		return ""
	default:
		return fmt.Sprintf("the node is healthy since %s", stamp(n.WellSince))
	}
}

// succeeded reports whether the step at work says so.
func (d *deciding) succeeded(n *Node) bool {
	step := n.Remediation.Progress.step(n.Remediation.Order.Step)
	return step != nil && step.succeeded()
}

// escalate goes on with the next step once the one at work has failed or had its time.
func (d *deciding) escalate(n *Node, order *Order) {
	if len(d.spec.EscalatingRemediations) == 0 || order.Step >= len(d.steps) {
		return // a remediation without steps has no timeout
	}
	step := n.Remediation.Progress.step(order.Step)
	if step == nil || n.Announced.Exhausted || len(d.blocks) > 0 || len(d.nodeBlocks(*n, false)) > 0 {
		return
	}
	deadline := after(step.StartedAt, d.steps[order.Step].Timeout.Std())
	if !step.failed() && (step.StartedAt.IsZero() || d.now.Before(deadline)) {
		if !step.StartedAt.IsZero() {
			d.wake(deadline)
		}
		return
	}
	why := fmt.Sprintf("step %d has not helped within %s", order.Step+1, long(d.steps[order.Step].Timeout))
	if step.failed() {
		if why = fmt.Sprintf("step %d has failed", order.Step+1); step.Failure != "" {
			why += " (" + step.Failure + ")"
		}
	}
	if !step.succeeded() && !slices.Contains(order.TimedOut, order.Step) {
		order.TimedOut = append(order.TimedOut, order.Step)
	}
	order.Why = why
	if order.Step+1 >= len(d.steps) {
		n.Announced.Exhausted = true
		d.events.add(Event{Reason: EventNoTemplateLeft, Node: n.Name, Text: why + ", and there is no further one", Warning: true})
		return
	}
	order.Step++
	d.events.add(Event{Reason: EventRemediationEscalated, Node: n.Name, Text: fmt.Sprintf("%s: step %d begins", why, order.Step+1), Warning: true})
}

// alert warns of remediation objects that have been there for two days.
func (d *deciding) alert(n *Node, order *Order) {
	if order.Old || n.Remediation.Progress == nil {
		return
	}
	for _, step := range n.Remediation.Progress.Steps {
		if step.StartedAt.IsZero() || step.Gone {
			continue
		}
		due := step.StartedAt.Add(oldAfter)
		if d.now.Before(due) {
			d.wake(due)
			continue
		}
		order.Old = true
		d.events.add(Event{Reason: EventOldRemediation, Node: n.Name, Text: fmt.Sprintf("%s has been there for more than 48h and the node is still unhealthy", step.what()), Warning: true})
		return
	}
}
