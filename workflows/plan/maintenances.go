package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"

	planactivity "drydock.dev/drydock/activities/plan"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
)

const (
	// triesOfBusy is how often a node is tried that somebody else's maintenance has, where the strategy does not say, and busyComeBack the
	// pause between.
	triesOfBusy  = 3
	busyComeBack = 10 * time.Minute
)

// nodeBegan takes whether the maintenance of a node was started, and its end.
func (p *maintenancePlan) nodeBegan(o controller.Outcome, now time.Time) {
	name := o.Key.Of
	n := p.node(name)
	switch {
	case n == nil:
	case o.What == controller.Ended:
		var result api.Result
		err := o.Get(&result)
		p.nodeEnded(name, planactivity.EndOf(planactivity.Execution{RunID: o.Run}, result, err), now)
	case o.What == controller.Terminated: // a reset terminates too, and what goes on may know nothing of its cancellation
		if n.RunID == o.Run {
			p.takeBack(n)
		}
	case n.State != plan.Running || n.RunID != "":
	case o.Err == nil:
		n.RunID = o.Run
		if _, there := p.Orders[name]; !there {
			p.takeBack(n)
		}
	case temporal.IsWorkflowExecutionAlreadyStartedError(o.Err):
		p.Sought[name] = true
	default:
		p.ClearBackoff(o.Key)
		p.nodeEnded(name, planactivity.Ended{Phase: api.Failed, Message: "it could not be started: " + call.Cause(o.Err)}, now)
	}
}

func (p *maintenancePlan) found(o controller.Outcome, now time.Time) {
	var found api.List[planactivity.Begun]
	asked := o.Begun.(controller.Activity).Input.(planactivity.FindInput).Nodes
	if err := o.Get(&found); err != nil {
		p.Fails(o.Key, "the maintenances that run cannot be found", call.Cause(err), now)
		return
	}
	if o.Stale {
		return
	}
	for _, node := range asked {
		delete(p.Sought, node)
	}
	p.takeFound(found, now)
	if !p.Known && len(asked) == 0 {
		p.Known = true
		maps.DeleteFunc(p.LateRetries, func(node, _ string) bool {
			n := p.node(node)
			return n == nil || n.State != plan.Running || !slices.ContainsFunc(found, func(one planactivity.Begun) bool { return one.Node == node && one.Ended })
		})
	}
}

// takeFound takes the maintenances that were found: the plan's own, and those of an earlier plan of its name that it adopts, or whose end it
// waits for because it refuses them. The others it leaves alone, as a staged plan does all: the lockstep maintains its nodes.
func (p *maintenancePlan) takeFound(all []planactivity.Begun, now time.Time) {
	var adopted, refused, left []string
	for _, found := range all {
		if p.Staged != nil {
			left = append(left, found.Node)
			continue
		}
		n := p.node(found.Node)
		if n == nil && !found.Earlier && !found.Foreign {
			p.Nodes, p.places = append(p.Nodes, plan.Node{Facts: plan.Facts{Name: found.Node}}), nil
			n = p.node(found.Node)
		}
		switch {
		case found.Requestor != "" || n == nil:
			left = append(left, found.Node)
			continue
		case n.State != plan.Waiting && n.State != plan.Running:
			continue
		case found.Foreign:
			n.RunID = ""
			p.blocked(n, "a maintenance that no plan of this name has begun has its workflow ID", now)
			p.Progress.LastEnd = now
			continue
		}
		if n.State == plan.Waiting || n.RunID != found.RunID {
			setState(n, plan.Running, "", now)
			n.RunID, n.NotBefore, n.Tries, p.MayRun = found.RunID, 0, max(n.Tries, 1), true
		}
		switch {
		case found.Refused != "":
			p.Refused[n.Name] = true
			n.Note = bounds.Words("an earlier plan of this name has begun its maintenance, and "+found.Refused+": it is begun anew when that has ended", maxNote)
			refused = append(refused, n.Name)
			if p.Stop != "" {
				p.release(n, now)
			}
			continue
		case found.Earlier:
			n.Note = "its maintenance is adopted: an earlier plan of this name has begun it"
			adopted = append(adopted, n.Name)
		}
		p.takeBack(n)
		p.takeNews(api.NodeNews{Node: n.Name, RunID: n.RunID, Held: found.Held, Why: found.Why}, now)
		p.takeNews(p.Early[n.Name], now) // which may be none
		delete(p.Early, n.Name)
		if n.State == plan.Held {
			p.retryLate(n, now)
		}
	}
	p.noteFound("adopted from an earlier plan of this name, because the settings are the same", adopted, now)
	p.noteFound("not adopted from an earlier plan of this name, because the settings differ: their end is waited for", refused, now)
	leftAlone := "left alone, because an earlier plan of this name has begun them"
	if p.Staged == nil {
		leftAlone += " for other nodes, or another requestor"
	}
	p.noteFound(leftAlone, left, now)
}

// maxNamed bounds the nodes that a text names.
const maxNamed = 20

func (p *maintenancePlan) noteFound(what string, nodes []string, now time.Time) {
	if len(nodes) == 0 {
		return
	}
	text := what + ": the maintenances of " + strings.Join(nodes[:min(len(nodes), maxNamed)], ", ")
	if more := len(nodes) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	p.note(text, now)
}

// release gives up the maintenance of an earlier plan whose end is waited for.
func (p *maintenancePlan) release(n *plan.Node, now time.Time) {
	delete(p.Refused, n.Name)
	setState(n, plan.Waiting, "", now)
	n.RunID, n.Tries = "", n.Tries-1
	p.Digest = matchAgain
}

// awaitEnds waits for the ends of the maintenances that are no children of this run. Those that run come first: of very many, the activity
// reports the ends of the first at once.
func (p *maintenancePlan) awaitEnds(t controller.Turn) []controller.Watch {
	var awaited api.List[planactivity.Execution]
	for _, first := range []bool{true, false} {
		for i := range p.Nodes {
			n := &p.Nodes[i]
			runs := n.State == plan.Running
			if (runs || n.State == plan.Held || n.Ending()) && runs == first && n.RunID != "" && !t.Follows(n.RunID) {
				awaited = append(awaited, planactivity.Execution{WorkflowID: p.maintenanceID(n.Name), RunID: n.RunID})
			}
		}
	}
	if len(awaited) == 0 {
		return nil
	}
	return []controller.Watch{{
		Key: controller.Key{Kind: awaitEnds}, Summary: "wait for the ends of " + number.Of(len(awaited), "maintenance"), Lasts: true,
		Call: controller.Call{Func: call.Plans.AwaitEnds, Heartbeat: 10 * time.Second}, Input: awaited,
	}}
}

func (p *maintenancePlan) sawEnds(o controller.Outcome, now time.Time) {
	var ended []planactivity.Ended
	if o.Get(&ended) != nil {
		return
	}
	for _, one := range ended {
		if _, node, _, err := api.ParseMaintenanceID(one.WorkflowID); err == nil {
			p.nodeEnded(node, one, now)
		}
	}
}

func (p *maintenancePlan) nodeEnded(name string, how planactivity.Ended, now time.Time) {
	n := p.node(name)
	switch {
	case n == nil || n.State != plan.Running && n.State != plan.Held && !n.Ending():
		return
	case n.RunID != "" && how.RunID != "" && n.RunID != how.RunID:
		return
	case p.Refused[name]:
		p.release(n, now)
		p.note("the maintenance of "+name+" by an earlier plan has ended: it is begun anew in its turn", now)
		return
	}
	p.Moves = p.Moves.Plus(how.Moves)
	if n.Ending() && how.Phase == api.Completed {
		n.RunID = ""
		return // since the node was back, it is over
	}
	if n.State != plan.Held && how.Phase != api.Cancelled {
		n.Forgiven = false // what somebody forgave was repaired meanwhile: this is another failure
	}
	n.RunID = ""
	if how.Phase == api.Failed && how.Kind == api.ErrorNotDrained && p.spec.Strategy.OnBlocked != plan.WaitBlocked {
		p.blocked(n, how.Message, now)
	} else {
		state, note := p.after(*n, how)
		setState(n, state, note, now)
	}
	delete(p.Skipping, name)
	p.Progress.LastEnd = now
	p.retryLate(n, now)
}

// retryLate gives effect to a retry that came before the plan knew that the node had failed.
func (p *maintenancePlan) retryLate(n *plan.Node, now time.Time) {
	why, there := p.LateRetries[n.Name]
	if delete(p.LateRetries, n.Name); there && canRetry(n) && (n.State == plan.Held || !p.isLate(now)) {
		p.note(p.retry(n, why, now), now)
	}
}

func canRetry(n *plan.Node) bool {
	return n.State == plan.Failed || n.State == plan.Skipped || n.State == plan.Held
}

func (p *maintenancePlan) retry(n *plan.Node, why string, now time.Time) (effect string) {
	if n.State == plan.Held {
		p.Orders[n.Name] = order{api.MsgRetry, why}
		return "the maintenance of " + n.Name + " is to try again"
	}
	setState(n, plan.Waiting, "", now)
	n.Tries, n.NotBefore, n.Forgiven = 0, 0, false
	p.Digest = matchAgain
	return n.Name + " is begun anew in its turn"
}

// after is the state of a node that follows from the end of its maintenance, and why.
func (p *maintenancePlan) after(n plan.Node, how planactivity.Ended) (plan.State, string) {
	switch {
	case how.Unknown:
		return plan.Failed, "nothing is known of its maintenance"
	case how.Phase == api.Completed:
		return plan.Done, ""
	case how.Phase == api.NodeGone, how.Kind == api.ErrorNodeNotFound:
		return plan.Gone, how.Message
	case how.Phase == api.Cancelled && (p.Stop != "" || p.Skipping[n.Name] || n.State != plan.Held && !n.Forgiven):
		// Nothing has failed on a node that somebody cancels before it waits for a decision. A forgiven failure was one.
		return plan.Skipped, how.Message
	default:
		return plan.Failed, how.Message
	}
}

// blocked is what becomes of a node that could not be emptied, or is somebody else's. One that somebody skips does not come back.
func (p *maintenancePlan) blocked(n *plan.Node, why string, now time.Time) {
	s := p.spec.Strategy
	if p.Skipping[n.Name] {
		delete(p.Skipping, n.Name)
		setState(n, plan.Skipped, why, now)
		return
	}
	setState(n, plan.Failed, why, now)
	if s.OnBlocked == plan.AbortBlocked {
		p.stop(api.PlanAborted, bounds.Cut(fmt.Sprintf("node %s was blocked: %s", n.Name, n.Note), bounds.Text), now)
		return
	}
	tries, pause := s.Tries, s.ComeBackAfter.Std()
	if s.OnBlocked == plan.WaitBlocked {
		tries, pause = triesOfBusy, busyComeBack
	}
	if n.Tries < tries {
		n.State, n.NotBefore, n.Forgiven = plan.Waiting, now.Add(pause).Unix(), false
		p.Digest = matchAgain
	}
}

func (p *maintenancePlan) takeNews(news api.NodeNews, now time.Time) {
	n := p.node(news.Node)
	switch {
	case n == nil || n.RunID == "" || n.RunID != news.RunID || p.Refused[news.Node]:
	case news.Back && n.State == plan.Running:
		setState(n, plan.Done, "", now)
		p.Progress.LastEnd = now
	case news.Held && n.State == plan.Running:
		setState(n, plan.Held, news.Why, now)
		n.Forgiven = false
		p.Progress.LastEnd = now
	case !news.Held && n.State == plan.Held:
		// It stays forgiven: who releases it, or has it cancelled, gives up what has failed already.
		setState(n, plan.Running, "", now)
	}
}
