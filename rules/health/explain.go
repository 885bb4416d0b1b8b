package health

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The states of a node that is explained.
const (
	NodeHealthy     = "healthy"
	NodeUnknown     = "unknown"
	NodeSoon        = "soon"
	NodeUnhealthy   = "unhealthy"
	NodeRemediating = "remediating"
	NodeRecovered   = "recovered"
	NodeRemoving    = "removing"
	NodeLeft        = "left"
)

// Explain says all that is to be said of a node, after the latest decision.
func Explain(in Input, node string) Explanation {
	w := showingOf(in)
	n, found := in.State.Node(node)
	switch {
	case !found && in.State.Seen.Known:
		return Explanation{Node: node, State: NodeHealthy, Summary: "The check knows of no unhealthy condition of this node: it is healthy, or the check does not select it."}
	case !found:
		return Explanation{Node: node, State: NodeUnknown, Summary: "The nodes have not been looked at yet.", Next: "the check waits for what the watch sees"}
	}
	return w.explain(n)
}

func (w *showing) explain(n Node) Explanation {
	e := Explanation{Node: n.Name, Found: true, Steps: w.explainSteps(n)}
	found := illness{}
	if !n.Unseen && !n.Left {
		found = w.spec.illnessOf(n.Facts, w.now)
		e.Conditions = w.explainConditions(n)
	}
	switch {
	case n.Remediation != nil && n.Remediation.Order.Healthy:
		e.State, e.Next = NodeRemoving, "its remediation is being removed: "+n.Remediation.Order.Why
	case n.Unseen:
		e.State, e.Next = NodeUnknown, "the check waits for what the watch sees"
	case n.Left:
		e.State, e.Next = NodeLeft, "the remediator expects the node's deletion to be for good, and is not done"
	case n.Remediation != nil && found.class == well:
		w.explainRecovered(n, &e)
	case n.Remediation != nil:
		w.explainRemediation(n, found, &e)
	case found.class == well:
		e.State, e.Next = NodeHealthy, "nothing"
	case found.class == soon:
		e.State, e.Next = NodeSoon, "it is unhealthy, if that does not change"
		e.at(found.at)
	default:
		w.explainUnhealthy(n, found, &e)
	}
	e.Summary = w.summary(n, found, e)
	if n.Remediation != nil && n.Remediation.Progress != nil && n.Remediation.Progress.Trouble != "" {
		e.Blocks = slices.Insert(e.Blocks, 0, n.Remediation.Progress.Trouble)
	}
	return e
}

func (e *Explanation) at(at time.Time) { e.At = &at }

func (e *Explanation) blocked(blocks ...[]block) {
	for _, b := range slices.Concat(blocks...) {
		e.Blocks = append(e.Blocks, b.text)
	}
}

// explainRecovered is what a node waits for that has no unhealthy condition any more.
func (w *showing) explainRecovered(n Node, e *Explanation) {
	e.State = NodeRecovered
	delay := w.spec.HealthyDelay.Std()
	switch {
	case delay < 0:
		e.Next = "somebody has to confirm that the node is healthy; then its remediation is removed"
	case delay > 0 && !n.WellSince.IsZero():
		e.Next = "its remediation is removed, if the node stays healthy until then"
		e.at(n.WellSince.Add(delay))
	default:
		e.Next = "its remediation is removed"
	}
}

// explainRemediation is what comes next for a node under remediation that is not healthy.
func (w *showing) explainRemediation(n Node, found illness, e *Explanation) {
	e.State = NodeRemediating
	order := n.Remediation.Order
	step := n.Remediation.Progress.step(order.Step)
	last := order.Step+1 >= len(w.steps)
	switch {
	case step == nil && n.Remediation.Progress != nil && n.Remediation.Progress.Waiting != "":
		e.Next = fmt.Sprintf("step %d begins, which waits for %s", order.Step+1, n.Remediation.Progress.Waiting)
	case step == nil:
		e.Next = fmt.Sprintf("step %d begins", order.Step+1)
	case len(w.spec.EscalatingRemediations) == 0:
		e.Next = "the remediation goes on until the node is healthy: it has no timeout"
	case n.Announced.Exhausted:
		e.Next = "all steps had their time: somebody has to look at the node"
	case found.class == soon:
		e.Next = "the steps go on, which stand still since its condition has changed"
		e.at(found.at)
	default:
		if e.blocked(w.blocks, w.nodeBlocks(n, false)); len(e.Blocks) == 0 && !step.StartedAt.IsZero() {
			e.at(after(step.StartedAt, w.steps[min(order.Step, len(w.steps)-1)].Timeout.Std()))
		}
		e.Next = fmt.Sprintf("step %d begins, if the node is not healthy by then", order.Step+2)
		if last {
			e.Next = "the last step has had its time"
		}
	}
}

// explainUnhealthy is what keeps a node from being remediated.
func (w *showing) explainUnhealthy(n Node, found illness, e *Explanation) {
	e.State = NodeUnhealthy
	if !w.state.Seen.Known {
		e.Blocks = append(e.Blocks, "the nodes have not been looked at anew yet")
	}
	e.blocked(w.blocks, w.nodeBlocks(n, true))
	first := w.firstStep(n, found)
	e.Next = fmt.Sprintf("its remediation begins with step %d", first+1)
	if len(e.Blocks) > 0 {
		e.Next += " once nothing stands in the way"
	}
	if first > 0 && (n.Past == nil || n.Past.Failed == 0) {
		e.Next += ", because it is ill again so soon"
	}
	if n.Past != nil && w.now.Before(n.Past.RetryAt) {
		e.at(n.Past.RetryAt)
	}
}

// summary says all in a few sentences.
func (w *showing) summary(n Node, found illness, e Explanation) string {
	var said []string
	if ill := w.spec.words(found); ill != "" {
		said = append(said, fmt.Sprintf("Its %s (%s allowed).", ill, long(w.spec.UnhealthyConditions[found.index].Duration)))
	}
	if n.Remediation != nil && len(w.steps) > 1 {
		said = append(said, fmt.Sprintf("Step %d of %d is at work.", n.Remediation.Order.Step+1, len(w.steps)))
	}
	if len(e.Blocks) > 0 {
		said = append(said, "Nothing begins: "+e.Blocks[0]+".")
	}
	if e.Next != "" {
		next := strings.ToUpper(e.Next[:1]) + e.Next[1:]
		if e.At != nil {
			next = "At " + stamp(*e.At) + " " + e.Next
		}
		said = append(said, next+".")
	}
	return strings.Join(said, " ")
}

func (w *showing) explainConditions(n Node) []ExplainCondition {
	var found []ExplainCondition
	for _, m := range n.Matches {
		if m.Index < 0 || m.Index >= len(w.spec.UnhealthyConditions) {
			continue
		}
		c := w.spec.UnhealthyConditions[m.Index]
		at := after(m.Since, c.Duration.Std())
		what, how := c.Words()
		found = append(found, ExplainCondition{Type: what, Status: how, Since: m.Since, Duration: long(c.Duration), IllAt: at, Over: !w.now.Before(at)})
	}
	return found
}

func (w *showing) explainSteps(n Node) []ExplainStep {
	steps := make([]ExplainStep, len(w.steps))
	for i, step := range w.steps {
		steps[i] = ExplainStep{Step: i + 1, What: step.what(), State: "not begun"}
		if step.Timeout > 0 {
			steps[i].Timeout = long(step.Timeout)
		}
		if n.Remediation != nil {
			steps[i].State = stepState(n.Remediation, i)
		}
	}
	return steps
}

// what names what a step does.
func (r Remediation) what() string {
	switch {
	case r.Template != nil:
		return r.Template.Kind + " " + r.Template.Name
	default:
		return "NodeMaintenance"
	}
}

// stepState says how a step of a running remediation stands.
func stepState(r *Running, index int) string {
	step := r.Progress.step(index)
	switch {
	case step == nil && index < r.From:
		return "passed over: it was tried before"
	case step == nil && index == r.Order.Step:
		return "about to begin"
	case step == nil:
		return "not begun"
	case step.Gone:
		return "its object was deleted by somebody else"
	case step.succeeded():
		return "succeeded, begun at " + stamp(step.StartedAt)
	case step.failed():
		if step.Failure != "" {
			return "failed: " + step.Failure
		}
		return "failed, begun at " + stamp(step.StartedAt)
	case step.TimedOut != nil || slices.Contains(r.Order.TimedOut, index):
		return "timed out, begun at " + stamp(step.StartedAt)
	case step.StartedAt.IsZero():
		return "about to begin"
	default:
		return "at work since " + stamp(step.StartedAt)
	}
}
