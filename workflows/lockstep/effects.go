package lockstep

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"drydock/activities/heartbeat"
	activity "drydock/activities/lockstep"
	"drydock/api"
	"drydock/rules/drainplan"
	"drydock/rules/number"
	"drydock/workflows/call"
	"drydock/workflows/controller"
)

// The kinds of the effects on maintenances, each on a batch of nodes, and the watch of maintenances and plans.
const (
	beginNodes = "begin"
	steerNodes = "steer"
	endNodes   = "end"
	watchEnds  = "watch"
)

const (
	// maxBatches bounds the batches under way of each kind, maxBatch the nodes and maxBatchText about the bytes of each.
	maxBatches   = 4
	maxBatch     = 100
	maxBatchText = 256 << 10
	// actWithin bounds an activity: none may keep the workflow from continuing as new.
	actWithin = 5 * time.Minute
	// beat is the heartbeat timeout of an activity that does something for each of many.
	beat = 10 * time.Second
	// retryFirst is the pause after something failed for a node, or was not answered, for the first time. It doubles up to retryMost.
	retryFirst = 30 * time.Second
	retryMost  = 10 * time.Minute
)

func keyOf(kind, of string) controller.Key { return controller.Key{Kind: kind, Of: of} }

// backoff is the pause after so many failures in a row.
func backoff(failures int) time.Duration {
	wait := retryFirst
	for range min(failures, 10) {
		wait = min(2*wait, retryMost)
	}
	return wait
}

// postpone leaves a node alone for a while, longer each time.
func (n *node) postpone(now time.Time) {
	n.RetryAt = now.Add(backoff(n.Tries)).Unix()
	n.Tries++
}

func (n *node) isBusy() bool { return n.batch != controller.Key{} }

// free takes nodes out of batches that are not under way: they were not begun, or are over.
func (v *inventory) free(t controller.Turn) {
	for _, n := range v.nodes {
		if n.isBusy() && !t.UnderWay(n.batch) {
			n.batch = controller.Key{}
			if n.Stand == wanted && !n.isWanted() {
				v.changed, v.ungrouped = true, true // it is none of the nodes any more
			}
		}
	}
}

// acts are the effects on maintenances that can begin.
func (v *inventory) acts(t controller.Turn, kind string) (all []controller.Effect) {
	for i := range maxBatches {
		key := keyOf(kind, strconv.Itoa(i))
		if t.UnderWay(key) {
			continue
		}
		batch := v.batch(kind, t.Now)
		if len(batch) == 0 {
			return all
		}
		for _, n := range batch {
			n.batch = key
		}
		all = append(all, act(key, batch))
	}
	return all
}

// batch are nodes for which the same may be done.
func (v *inventory) batch(kind string, now time.Time) (batch []*node) {
	size := 0
	for _, n := range v.nodes {
		if n.isBusy() || !n.wants(kind, now) || kind == beginNodes && len(batch) > 0 && n.group.plans[0] != batch[0].group.plans[0] {
			continue
		}
		batch = append(batch, n)
		if size += sizeOf(n.target.Targets); len(batch) == maxBatch || kind == steerNodes && size >= maxBatchText {
			break
		}
	}
	return batch
}

// wants reports whether something is to be done for a node: to begin its maintenance, to send it its target or to ask how far it is, or to end
// it where no plan wants it any more, or not with its settings.
func (n *node) wants(kind string, now time.Time) bool {
	isDue := now.Unix() >= n.RetryAt
	switch kind {
	case beginNodes:
		return isDue && n.Stand == wanted && n.isWanted()
	case steerNodes:
		return isDue && (n.Stand == asked || n.Stand == held && n.Unsent)
	default:
		return n.Stand == asked && n.Tries > 0 && !n.isWanted() || isDue && (n.Stand == ending && !n.Ended || n.Stand == held && (!n.isWanted() || n.differs()))
	}
}

// act is what is done for a batch of nodes.
func act(key controller.Key, nodes []*node) controller.Effect {
	a := controller.Activity{Meta: controller.Meta{Key: key}, Call: controller.Call{Within: actWithin, Heartbeat: beat}}
	switch key.Kind {
	case beginNodes:
		in := activity.BeginInput{Input: nodes[0].group.plans[0].input()}
		for _, n := range nodes {
			in.Nodes = append(in.Nodes, n.name)
		}
		a.Summary, a.Call.Func, a.Input = "begin the maintenances of "+number.Of(len(nodes), "node"), call.Lockstep.BeginShared, in
	case steerNodes:
		var in activity.SteerInput
		for _, n := range nodes {
			target := n.target
			if n.Stand == asked {
				target = api.NodeTarget{Run: n.Run, Tell: true}
			}
			in.Targets = append(in.Targets, activity.Addressed{Node: n.name, Target: target})
		}
		a.Summary, a.Call.Func, a.Input = "tell "+number.Of(len(nodes), "maintenance")+" how far to go", call.Lockstep.SteerShared, in
	case endNodes:
		var in activity.EndInput
		for _, n := range nodes {
			if n.Stand != ending {
				n.Stand, n.Ended, n.Unsent, n.Tries, n.RetryAt = ending, false, false, 0, 0
			}
			in.Nodes = append(in.Nodes, api.HeldNode{Node: n.name, RunID: n.Run})
		}
		a.Summary, a.Call.Func, a.Input = "end "+number.Of(len(nodes), "maintenance"), call.Lockstep.EndShared, in
	}
	return a
}

// input is that of the maintenances of a plan, but for the node.
func (p *planEntry) input() json.RawMessage {
	fields := map[string]json.RawMessage{}
	fields["reason"], _ = json.Marshal("maintenance plan " + p.Name)
	_ = json.Unmarshal(p.Maintenance, &fields) // it is an object, or nothing
	fields["requestor"], fields["lockstep"] = json.RawMessage(`"`+api.PlansRequestor+`"`), json.RawMessage("true")
	text, _ := json.Marshal(fields) // they were read from JSON
	return text
}

// begun takes what became of the beginning of maintenances.
func (l *lockstep) begun(o controller.Outcome, now time.Time) {
	var begun []activity.Begun
	l.failed(o, "maintenances could not be begun", o.Get(&begun), now)
	v := &l.Inventory
	v.changed, v.ready = true, true // they have no target yet
	for _, name := range o.Begun.(controller.Activity).Input.(activity.BeginInput).Nodes {
		n := v.byName[name]
		if n == nil || n.Stand != wanted {
			continue // it was found to run, when everything was found out anew
		}
		switch i := slices.IndexFunc(begun, func(one activity.Begun) bool { return one.Node == name }); {
		case i < 0:
			n.postpone(now)
		case begun[i].Missed != "":
			l.Note(now, "the maintenance of "+name+" could not be begun", begun[i].Missed)
			n.postpone(now)
		default:
			l.beginsAs(n, begun[i], now)
		}
	}
}

// beginsAs takes what became of the beginning of a maintenance.
func (l *lockstep) beginsAs(n *node, how activity.Begun, now time.Time) {
	n.Run, n.Tries, n.RetryAt = how.RunID, 0, 0
	switch {
	case how.Refused != "":
		l.Note(now, "node "+n.name+" cannot be held", how.Refused)
		l.Inventory.end(n, api.Failed, how.Refused)
	case how.Adopted:
		n.Stand, n.made, n.of = asked, "", nil
	default:
		n.Stand = held
	}
}

// steered takes which maintenances were sent something. One that was asked is asked again where it does not answer.
func (l *lockstep) steered(o controller.Outcome, now time.Time) {
	var came activity.Signalled
	err := o.Get(&came)
	l.failed(o, "maintenances could not be told how far to go", err, now)
	for _, to := range o.Begun.(controller.Activity).Input.(activity.SteerInput).Targets {
		n := l.Inventory.byName[to.Node]
		switch {
		case n == nil:
		case err != nil, l.missed(n, came, now), n.Stand == asked && to.Target.Tell:
			n.postpone(now)
		case n.Stand == held && n.target.Revision == to.Target.Revision:
			n.Unsent, n.Tries = false, 0
		}
	}
	l.Inventory.ended(came.Gone)
}

// missed notes that a maintenance could not be told something.
func (l *lockstep) missed(n *node, came activity.Signalled, now time.Time) bool {
	i := slices.IndexFunc(came.Missed, func(m activity.Missed) bool { return m.Node == n.name })
	if i >= 0 {
		l.Note(now, "the maintenance of "+n.name+" could not be told", came.Missed[i].Why)
	}
	return i >= 0
}

// sizeOf is about how long targets are in JSON.
func sizeOf(targets []drainplan.Entry) int {
	const fixed = 70
	size := fixed
	for _, e := range targets {
		size += fixed + len(e.PodSelector)
	}
	return size
}

// endsCame takes which maintenances were told to end.
func (l *lockstep) endsCame(o controller.Outcome, now time.Time) {
	var came activity.Signalled
	err := o.Get(&came)
	l.failed(o, "maintenances could not be ended", err, now)
	for _, one := range o.Begun.(controller.Activity).Input.(activity.EndInput).Nodes {
		n := l.Inventory.byName[one.Node]
		if n == nil {
			continue
		}
		if n.Ended = err == nil && !l.missed(n, came, now); !n.Ended {
			n.postpone(now)
		}
	}
	l.Inventory.ended(came.Gone)
}

// failed notes that an effect on a batch has failed. Its key is free: its nodes are left alone for a while, and not others.
func (l *lockstep) failed(o controller.Outcome, what string, err error, now time.Time) {
	if err != nil {
		l.Warn(now, what, call.Cause(err))
		l.ClearBackoff(o.Key)
	}
}

// watch looks whether maintenances and plans end without a word, while there are some.
func (l *lockstep) watch() []controller.Watch {
	v := &l.Inventory
	if len(v.plans)+len(v.silent) == 0 && !slices.ContainsFunc(v.nodes, (*node).runs) {
		return nil
	}
	return []controller.Watch{{
		Key: keyOf(watchEnds, ""), Summary: "watch maintenances and plans", Input: activity.QueueInput{TaskQueue: l.Info.TaskQueue},
		Call: controller.Call{Func: call.Lockstep.WatchShared, Heartbeat: heartbeat.WatchTimeout},
	}}
}

// seen takes what has ended without a word.
func (l *lockstep) seen(o controller.Outcome, now time.Time) {
	var seen activity.Seen
	if o.Get(&seen) != nil {
		return // it rests
	}
	l.Inventory.ended(seen.Gone)
	for _, p := range seen.Plans {
		if l.Inventory.silent[p.Name] == p.RunID {
			delete(l.Inventory.silent, p.Name)
			l.Inventory.changed = true
		}
		l.dropPlan(p, now)
	}
}
