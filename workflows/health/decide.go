package health

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	activity "drydock.dev/drydock/activities/health"
	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
	"drydock.dev/drydock/workflows/inbox"
)

// The kinds of effects.
const (
	judgeSpec        = "judge"
	findRemediations = "find"
	recount          = "recount"
	beginRemediation = "begin"
	sendOrder        = "order"
	recordEvents     = "events"
	watchNodes       = "nodes"
)

const (
	// atOnce bounds the children that are being started, and the orders under way: each takes the lock of the check, and of many that
	// wait for it the first is not the first to get it.
	atOnce = 16
	// answerWithin is how long a remediation has to report before it is asked.
	answerWithin = 30 * time.Second
	// patience is how long remediations have, when a check begins anew, to say how far they are before it decides without.
	patience = 30 * time.Second
	// recountEvery is how often what runs is counted because a remediation speaks of which nothing is known: anybody may say so.
	recountEvery = 10 * time.Minute
	// leaveWithin is how long a check that was removed waits for channels.
	leaveWithin = time.Minute
	// actWithin bounds an activity that is called again where it does not succeed in time: none may keep a check from continuing as new.
	actWithin = time.Minute
	// firstRevision is that of the order by which a remediation is started.
	firstRevision = 1
)

func (c *check) Decide(t controller.Turn) (d controller.Decision) {
	switch spec := c.unjudged(); {
	case c.Invalid != "":
		d.End = &controller.End{Err: inbox.InvalidSpec(errors.New(c.Invalid))}
	case c.Removed:
		c.leave(t, &d)
	default:
		if spec != nil {
			d.Effects = append(d.Effects, c.judge(*spec))
		}
		if c.Prepared != nil {
			c.act(t, &d)
			d.Watches = append(d.Watches, c.watch(t))
		}
	}
	if record := c.record(); record != nil {
		d.Effects = append(d.Effects, record)
	}
	d.Watches = append(d.Watches, c.Deliver(t.Now)...)
	return d
}

func (c *check) nodesKey() controller.Key {
	return controller.Key{Kind: watchNodes, Of: strconv.Itoa(c.View)}
}

// watch is the watch of the nodes. It is begun anew with other templates, and where it is to report nodes or ends of remediations that it
// knows nothing of; until the pace allows that it goes on.
func (c *check) watch(t controller.Turn) controller.Watch {
	in := activity.WatchInput{
		Check: c.name, RunID: c.Info.Run, CreatedAt: c.CreatedAt, Intent: health.IntentOf(c.Spec, c.Health), Runs: c.runsToWatch(t),
	}
	want := in
	for i := range c.Health.Nodes {
		if n := &c.Health.Nodes[i]; n.Remediation != nil {
			in.Remediating = append(in.Remediating, n.Name)
		}
	}
	in.Known = c.Reported
	return controller.Watch{
		Key: c.nodesKey(), Summary: "watch the nodes of check " + c.name, Want: want, Input: in, Lasts: true,
		Call: controller.Call{Func: call.Health.WatchHealth, Heartbeat: activity.HeartbeatTimeout},
	}
}

// runsToWatch are the remediations whose end the frame does not report: those that an earlier run has started, or another check of this name.
func (c *check) runsToWatch(t controller.Turn) (all []activity.RunningRemediation) {
	for _, n := range c.Health.Nodes {
		r, one := n.Remediation, c.Children[n.Name]
		if r == nil || isOver(r) || one.Ask || one.Lost {
			continue
		}
		if run := c.presentRun(n.Name); run != "" && !t.Follows(run) {
			all = append(all, activity.RunningRemediation{Node: n.Name, RunID: run})
		}
	}
	return all
}

// act decides about nodes once it is known which remediations run.
func (c *check) act(t controller.Turn, d *controller.Decision) {
	if !c.Known {
		// What was decided on before a reset follows from what was seen before.
		c.withdraw(c.Health.Withdraw(c.waiting(t)), "it is decided anew once it is known what runs", t.Now)
		d.Effects = append(d.Effects, c.find(findRemediations, 0))
		return
	}
	if c.Suspected {
		if !t.UnderWay(controller.Key{Kind: recount}) {
			c.RecountAt = t.Now
		}
		d.Effects = append(d.Effects, c.find(recount, recountEvery))
	}
	if c.waitsForReports(t.Now) {
		d.WakeAt(c.Patience, "wait for the reports of remediations")
	} else {
		c.decide(t, d)
	}
	d.Effects = append(d.Effects, c.starts(t)...)
	d.Effects = append(d.Effects, c.orders(t.Now, d)...)
}

// waitsForReports reports whether remediations that run have still time to say how far they are.
func (c *check) waitsForReports(now time.Time) bool {
	return len(c.Silent) > 0 && now.Before(c.Patience)
}

func (c *check) decide(t controller.Turn, d *controller.Decision) {
	next := health.Decide(health.Input{Spec: c.Spec, State: c.Health, Now: t.Now, Waiting: c.waiting(t)})
	c.Health = next.State
	c.withdraw(next.Withdrawn, "nothing may begin any more, or the nodes are not ill any more", t.Now)
	c.Queue = append(c.Queue, next.Begin...)
	maps.DeleteFunc(c.Children, func(node string, _ child) bool { return c.remediation(node) == nil })
	c.announce(next.Events, t.Now)
	if next.Anew {
		c.seeAnew()
	}
	d.WakeAt(next.Wake, "decide again: a duration is over, a step's time, or a delay")
}

// waiting are the nodes whose remediation was decided on and is not being started: it can be withdrawn.
func (c *check) waiting(t controller.Turn) (nodes []string) {
	for i := range c.Queue {
		if node := c.Queue[i].Node; !t.UnderWay(controller.Key{Kind: beginRemediation, Of: node}) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func (c *check) withdraw(nodes []string, why string, now time.Time) {
	if len(nodes) == 0 {
		return
	}
	c.Queue = slices.DeleteFunc(c.Queue, func(b health.Begin) bool { return slices.Contains(nodes, b.Node) })
	c.Note(now, "not begun after all: "+number.Of(len(nodes), "remediation"), why)
}

func (c *check) find(kind string, repeat time.Duration) controller.Effect {
	return controller.Activity{
		Meta:  controller.Meta{Key: controller.Key{Kind: kind}, Summary: "find the remediations of check " + c.name, Repeat: repeat},
		Call:  controller.Call{Func: call.Health.FindRemediations, Within: actWithin},
		Input: activity.RemediationsInput{Check: c.name, TaskQueue: c.Info.TaskQueue},
	}
}

// starts are those of remediations that were decided on, and of those that have ended without a report. What was ordered since it was
// decided on is sent once they run. None begins of a node of which nothing is known at present.
func (c *check) starts(t controller.Turn) (all []controller.Effect) {
	isUnderWay := func(b health.Begin) bool { return t.UnderWay(controller.Key{Kind: beginRemediation, Of: b.Node}) }
	c.Queue = slices.DeleteFunc(c.Queue, func(b health.Begin) bool { return c.remediation(b.Node) == nil && !isUnderWay(b) })
	for _, b := range c.Queue {
		if n, _ := c.Health.Node(b.Node); isUnderWay(b) || c.Health.Seen.Known && !n.Unseen && n.Remediation != nil && !n.Remediation.Order.Healthy {
			all = append(all, c.start(c.inputOf(b, firstRevision)))
		}
	}
	for _, n := range c.Health.Nodes {
		if n.Remediation != nil && c.Children[n.Name].Lost {
			all = append(all, c.start(c.resumed(n)))
		}
	}
	return all
}

// start starts the remediation of a node in this workflow task.
func (c *check) start(in api.RemediationInput) controller.Effect {
	return controller.Start{
		Meta: controller.Meta{
			Key: controller.Key{Kind: beginRemediation, Of: in.Node}, Summary: "remediation of " + in.Node + " by " + c.name + ": " + in.Why, AtOnce: atOnce,
		},
		Type: api.NodeRemediationType, ID: c.remediationID(in.Node), Input: in,
		Attributes: c.attributes(api.KindRemediation, in.Node),
	}
}

func (c *check) remediationID(node string) string {
	return api.RemediationID(c.Info.Cluster, c.name, node)
}

func (c *check) inputOf(b health.Begin, revision int) api.RemediationInput {
	return api.RemediationInput{
		Check: c.name, CheckRunID: c.Info.Run, Node: b.Node, UID: b.UID, ControlPlane: b.ControlPlane, Steps: c.Spec.Steps(),
		Step: b.Step, Since: b.Since, Why: b.Why, Revision: revision, Conditions: c.Spec.UnhealthyConditions, Etcd: c.Spec.AskEtcd(),
		Audited: c.Prepared.Audited,
	}
}

// resumed is the input of a remediation that takes up what one has left that has ended without a report. It makes nothing before it has an
// order.
func (c *check) resumed(n health.Node) api.RemediationInput {
	r := n.Remediation
	in := c.inputOf(health.Begin{
		Node: n.Name, UID: n.UID, ControlPlane: n.ControlPlane, Step: min(r.Order.Step, len(c.Spec.Steps())-1), Since: r.BeganAt, Why: r.Order.Why,
	}, 0)
	in.Resume = true
	if r.Progress != nil {
		in.Left = r.Progress.Steps
	}
	return in
}

// orders are those that remediations have not acknowledged, and questions to those of which it is not known whether they run. They are
// repeated until a report.
func (c *check) orders(now time.Time, d *controller.Decision) (all []controller.Effect) {
	queued := make(map[string]bool, len(c.Queue))
	for _, b := range c.Queue {
		queued[b.Node] = true
	}
	for _, n := range c.Health.Nodes {
		r := n.Remediation
		if r == nil || isOver(r) || queued[n.Name] {
			continue
		}
		one := c.Children[n.Name]
		switch due := one.BegunAt.Add(answerWithin); {
		case one.Lost, isAcknowledged(r) && !one.Ask:
		case !one.Ask && r.Order.Revision <= one.Revision && now.Before(due): // it was started with this order
			d.WakeAt(due, "send orders to remediations again")
		default:
			all = append(all, c.order(n.Name, r))
		}
	}
	return all
}

func isAcknowledged(r *health.Running) bool {
	return r.Progress != nil && r.Progress.Revision >= r.Order.Revision
}

func isOver(r *health.Running) bool { return r.Progress != nil && r.Progress.Ended }

func (c *check) order(node string, r *health.Running) controller.Effect {
	order := api.RemediationOrder{RunID: c.presentRun(node), Check: c.name, CheckRunID: c.Info.Run, Report: true, Order: r.Order}
	if isAcknowledged(r) {
		order.Order = health.Order{Node: node} // it only asks
	}
	return controller.Signal{
		Meta: controller.Meta{Key: orderOf(node), Summary: "order to the remediation of " + node, Repeat: answerWithin, AtOnce: atOnce},
		To:   c.remediationID(node), Name: api.SignalRemediationOrder, Payload: order,
	}
}

func orderOf(node string) controller.Key { return controller.Key{Kind: sendOrder, Of: node} }

func (c *check) leave(t controller.Turn, d *controller.Decision) {
	switch {
	case len(c.Unrecorded) > 0:
	case !c.Delivered() && t.Now.Before(c.RemovedAt.Add(leaveWithin)):
		d.WakeAt(c.RemovedAt.Add(leaveWithin), "end without the channels")
	default:
		d.End = &controller.End{}
	}
}

func (c *check) record() controller.Effect {
	if len(c.Unrecorded) == 0 {
		return nil
	}
	batch := slices.Clone(c.Unrecorded[:min(len(c.Unrecorded), maxRecorded)])
	return controller.Activity{
		Meta: controller.Meta{Key: controller.Key{Kind: recordEvents}, Summary: fmt.Sprintf("record %d Events", len(batch))},
		Call: controller.Call{Func: call.Nodes.RecordNodeEvents, Within: actWithin}, Input: node.EventsInput{Events: batch},
	}
}
