package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	planactivity "drydock.dev/drydock/activities/plan"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
)

const (
	// startsAtOnce and startBytes bound the inputs of maintenances that are made in one turn.
	startsAtOnce = 100
	startBytes   = 1 << 20
	// skippedWhy is why a node is left out, where who has skipped it is not known any more.
	skippedWhy = "skipped"
)

func (p *maintenancePlan) roll(t controller.Turn, d *controller.Decision) {
	if p.Known {
		p.withdraw(t)
	}
	maps.DeleteFunc(p.Orders, func(name string, _ order) bool { // to maintenances that have ended, and to nodes that are none of the plan's any more
		n := p.node(name)
		return n == nil || n.State != plan.Running && n.State != plan.Held
	})
	switch {
	case p.Stop != "" && (p.Known || !p.MayRun):
		p.WaitingFor, p.Until = fmt.Sprintf("its last nodes: it ends %s then", p.Stop), time.Time{}
		p.endRolling(t.Now)
	case p.Digest == "" && p.Stop == "":
		d.Effects = append(d.Effects, p.list())
	case !p.Known:
		p.WaitingFor, p.Until = "a look at which of its maintenances run", time.Time{}
		d.Effects = append(d.Effects, p.find(t.Now))
	default:
		p.decide(t, d)
	}
	if p.Phase.Ended() {
		return
	}
	if p.Known && len(p.Sought) > 0 {
		d.Effects = append(d.Effects, p.find(t.Now))
	}
	d.Effects = slices.Concat(d.Effects, p.sendOrders(), p.starts(t))
	d.Watches = append(d.Watches, p.awaitEnds(t)...)
}

// decide has the rules say which nodes go next, until they say nothing new.
func (p *maintenancePlan) decide(t controller.Turn, d *controller.Decision) {
	for now := t.Now; ; {
		progress := p.Progress
		progress.CreatedAt = p.CreatedAt
		next := plan.Decide(p.spec.Strategy, p.Nodes, progress, now)
		if next.CanaryPassed {
			p.Progress.CanaryPassed = true
			p.note(plan.Count(p.Nodes).AfterCanary(), now)
		}
		p.WaitingFor, p.Until = next.Waits, next.Until
		if next.WaitsForApproval && !p.AskedApproval {
			p.AskedApproval = true
			p.announce(notices.PlanCanaryWaits, "the canary is done: approve, or cancel", now)
		}
		switch {
		case next.Pause != "":
			if !p.Progress.CanaryPassed {
				p.Progress.Approved, p.AskedApproval = false, false // it was for a canary that goes well
			}
			p.pause(next.Pause, now)
			p.withdraw(t)
			continue
		case (len(next.Start) > 0 || next.End) && p.isStale(now):
			d.Effects = append(d.Effects, p.list())
		case len(next.Start) > 0:
			p.choose(next.Start, now)
			continue
		case next.End:
			p.endRolling(now)
		}
		d.WakeAt(p.Until, p.WaitingFor)
		d.WakeAt(next.Over, "beginWithin")
		return
	}
}

// choose marks nodes to be started from now on. What makes one input impossible makes all of them so, and the nodes fail.
func (p *maintenancePlan) choose(places []int, now time.Time) {
	_, err := p.spec.InputOf("any", now)
	for _, i := range places {
		n := &p.Nodes[i]
		setState(n, plan.Running, "", now)
		n.RunID, n.NotBefore = "", 0
		n.Tries++
		p.MayRun = true
		if err != nil {
			p.nodeEnded(n.Name, planactivity.Ended{Phase: api.Failed, Message: "its maintenance has no input: " + err.Error()}, now)
		}
	}
}

// isBegun reports whether the maintenance of a chosen node has begun, or may have.
func (p *maintenancePlan) isBegun(n *plan.Node) bool { return n.RunID != "" || p.Sought[n.Name] }

// withdraw gives up nodes whose maintenances have not begun, and are not to begin any more: where the pace was lowered, the last ones.
func (p *maintenancePlan) withdraw(t controller.Turn) {
	surplus := -p.Progress.Places(p.spec.Strategy, plan.Count(p.Nodes))
	if !p.beginsNothing(t.Now) && len(p.Skipping) == 0 && surplus <= 0 {
		return
	}
	for i := range slices.Backward(p.Nodes) {
		n := &p.Nodes[i]
		skipped := p.Skipping[n.Name]
		chosen := n.State == plan.Running && !p.isBegun(n) && !t.UnderWay(controller.Key{Kind: beginNode, Of: n.Name})
		switch {
		case chosen && (skipped || surplus > 0 || p.beginsNothing(t.Now)):
			setState(n, plan.Waiting, "", t.Now)
			n.Tries--
			surplus--
		case n.State != plan.Waiting || !skipped:
			continue
		}
		if skipped {
			setState(n, plan.Skipped, cmp.Or(p.Orders[n.Name].Why, skippedWhy), t.Now)
		}
		delete(p.Skipping, n.Name)
		delete(p.Orders, n.Name)
	}
}

func (p *maintenancePlan) beginsNothing(now time.Time) bool {
	return p.Stop != "" || p.Progress.Paused || p.isLate(now)
}

func (p *maintenancePlan) isLate(now time.Time) bool {
	within := p.spec.Strategy.BeginWithin.Std()
	return within > 0 && !p.CreatedAt.Add(within).After(now)
}

func (p *maintenancePlan) starts(t controller.Turn) (all []controller.Effect) {
	if !p.Known || p.beginsNothing(t.Now) || t.Room() == 0 {
		return nil
	}
	shared := p.spec
	shared.ReportTo = p.ReportsTo
	sample, err := shared.InputOf("any", t.Now)
	if err != nil {
		return nil // choose has failed the nodes
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(sample, &fields) // it is an object
	for i, size := 0, 0; i < len(p.Nodes) && len(all) < startsAtOnce && size < startBytes; i++ {
		n := &p.Nodes[i]
		key := controller.Key{Kind: beginNode, Of: n.Name}
		if n.State != plan.Running || p.isBegun(n) || p.Skipping[n.Name] || t.UnderWay(key) {
			continue
		}
		fields["node"], _ = json.Marshal(n.Name) // a text
		input, _ := json.Marshal(fields)         // which were read from JSON
		size += len(input)
		all = append(all, controller.Start{
			Meta: controller.Meta{Key: key, Summary: fmt.Sprintf("maintenance of %s by plan %s", n.Name, p.name)},
			Type: api.NodeMaintenanceType, ID: p.maintenanceID(n.Name), Input: json.RawMessage(input),
			Memo: map[string]any{api.MemoPlanBegan: p.CreatedAt},
		})
	}
	return all
}

// takeBack has the maintenance of a node cancelled that is to be taken back, unless its node is Ready.
func (p *maintenancePlan) takeBack(n *plan.Node) {
	switch {
	case n.State != plan.Running || p.Refused[n.Name]:
	case p.Stop != "":
		p.Orders[n.Name] = order{api.MsgCancel, p.StoppedWhy}
	case p.Skipping[n.Name]:
		p.Orders[n.Name] = order{api.MsgCancel, skippedWhy}
	}
}

// sendOrders sends maintenances their messages, once their runs are known.
func (p *maintenancePlan) sendOrders() (all []controller.Effect) {
	for i := 0; i < len(p.Nodes) && len(p.Orders) > 0; i++ {
		n := &p.Nodes[i]
		o, there := p.Orders[n.Name]
		if !there || n.RunID == "" {
			continue
		}
		said := api.Message{By: "plan " + p.name, Comment: bounds.Cut(o.Why, bounds.Text)}
		var payload any = api.Cancel{Message: said, Run: n.RunID, BeforeReady: true}
		if o.Message == api.MsgRetry {
			payload = api.Simple{Message: said, Run: n.RunID}
		}
		all = append(all, controller.Signal{
			Meta: controller.Meta{Key: controller.Key{Kind: sendOrder, Of: n.Name}, Summary: o.Message + " to the maintenance of " + n.Name},
			To:   p.maintenanceID(n.Name), Name: o.Message, Payload: payload,
		})
	}
	return all
}

// orderSent takes whether a maintenance received a message. One that does not run has ended, which the plan learns by other ways.
func (p *maintenancePlan) orderSent(o controller.Outcome) {
	sent := o.Begun.(controller.Signal)
	if (o.Err == nil || call.IsNobody(o.Err)) && p.Orders[o.Key.Of].Message == sent.Name {
		delete(p.Orders, o.Key.Of)
	}
}

func (p *maintenancePlan) pause(why string, now time.Time) {
	p.Progress.Paused = true
	p.enter(api.PlanPaused, why, now)
	p.announce(notices.PlanPaused, why, now)
}

// stop has the plan end. A rolling one begins nothing more, and takes back the maintenances whose nodes are not Ready yet.
func (p *maintenancePlan) stop(phase api.PlanPhase, why string, now time.Time) {
	if p.Stop != "" {
		return
	}
	p.Stop, p.StoppedWhy = phase, why
	if p.Staged != nil {
		if p.Staged.Stage.Holds() || p.Staged.Stage == plan.Idle && holding(p.Nodes) {
			p.enterStage(plan.Complete, api.Message{Comment: why}, now)
		}
		return
	}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; p.Refused[n.Name] {
			p.release(n, now)
		} else {
			p.takeBack(n)
		}
	}
}

// endRolling ends a plan of which no maintenance runs. Those that wait for somebody's decision are not the plan's to wait for.
func (p *maintenancePlan) endRolling(now time.Time) {
	if len(p.Orders) > 0 || slices.ContainsFunc(p.Nodes, func(n plan.Node) bool { return n.State == plan.Running || n.Ending() }) {
		return
	}
	switch counts := plan.Count(p.Nodes); {
	case p.Stop == "" && counts.Total == 0 && len(p.spec.Nodes) > 0:
		p.end(api.PlanIncomplete, "none of its nodes exists", now)
	case counts.Total == 0:
		p.finish("no node matches it", now)
	case p.Stop == "" && counts.Waiting > 0:
		why := fmt.Sprintf("%d of %d nodes were left when the time of beginWithin, %s, was over", counts.Waiting, counts.Total, p.spec.Strategy.BeginWithin)
		if failed := counts.Failures(); failed > 0 {
			why += fmt.Sprintf("; %d failed", failed)
		}
		p.end(api.PlanIncomplete, why, now)
	default:
		p.finish("", now)
	}
}
