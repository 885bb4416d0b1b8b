package lockstep

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"drydock.dev/drydock/activities/heartbeat"
	activity "drydock.dev/drydock/activities/lockstep"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
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

// nodeBytes is about how long a node is in JSON, without its targets and texts.
const nodeBytes = 70

func keyOf(kind, of string) controller.Key { return controller.Key{Kind: kind, Of: of} }

func (n *node) postpone(now time.Time) {
	n.RetryAt = now.Add(period.Doubled(retryFirst, retryMost, n.Tries)).Unix()
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
		all = append(all, act(key, batch))
	}
	return all
}

func (v *inventory) batch(kind string, now time.Time) (batch []*node) {
	size := 0
	for _, n := range v.nodes {
		if n.isBusy() || !n.wants(kind, now) || kind == beginNodes && len(batch) > 0 && n.group.plans[0] != batch[0].group.plans[0] {
			continue
		}
		batch = append(batch, n)
		if size += nodeBytes + drainplan.Size(n.target.Targets); len(batch) == maxBatch || kind == steerNodes && size >= maxBatchText {
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
		isDue = isDue && !now.Before(n.readyBy())
		return n.Stand == asked && n.Tries > 0 && !n.isWanted() || isDue && (n.Stand == ending && n.Unsent || n.Stand == held && n.isToEnd())
	}
}

func act(key controller.Key, nodes []*node) controller.Effect {
	var in activity.Batch
	for _, n := range nodes {
		n.batch = key
		r := activity.Request{Node: n.name, RunID: n.Run}
		switch {
		case key.Kind == steerNodes && n.Stand == asked:
			r.Target = &api.NodeTarget{Report: true}
		case key.Kind == steerNodes:
			r.Target = new(n.target)
		case key.Kind == endNodes && n.Stand != ending:
			n.Stand, n.Unsent, n.Tries, n.RetryAt = ending, true, 0, 0
		}
		in.Requests = append(in.Requests, r)
	}
	a := controller.Activity{Meta: controller.Meta{Key: key}, Call: controller.Call{Within: actWithin, Heartbeat: beat}}
	switch key.Kind {
	case beginNodes:
		in.Input = nodes[0].group.plans[0].input()
		a.Summary, a.Call.Func = "begin the maintenances of "+number.Of(len(nodes), "node"), call.Lockstep.BeginShared
	case steerNodes:
		a.Summary, a.Call.Func = "send "+number.Of(len(nodes), "maintenance")+" how far to go", call.Lockstep.SteerShared
	case endNodes:
		a.Summary, a.Call.Func = "end "+number.Of(len(nodes), "maintenance"), call.Lockstep.EndShared
	}
	a.Input = in
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

// acted takes what became of a batch. Where it failed, its key is free: its nodes are left alone for a while, and others are not.
func (l *lockstep) acted(o controller.Outcome, now time.Time) {
	var results []activity.Result
	err := o.Get(&results)
	if err != nil {
		l.Warn(now, "could not "+o.Key.Kind+" maintenances", call.Cause(err))
		l.ClearBackoff(o.Key)
	}
	v, begins := &l.Inventory, o.Key.Kind == beginNodes
	v.changed, v.ready = v.changed || begins, v.ready || begins // those that were begun have no target yet
	for i, r := range o.Begun.(controller.Activity).Input.(activity.Batch).Requests {
		n := v.byName[r.Node]
		switch {
		case n == nil, begins && n.Stand != wanted: // it was found to run, when everything was found out anew
		case i >= len(results):
			n.postpone(now)
		case results[i].Failed != "":
			l.Note(now, "could not "+o.Key.Kind+" the maintenance of "+n.name, results[i].Failed)
			n.postpone(now)
		case results[i].Ended:
			v.ended(results[i])
		case begins:
			l.begun(n, results[i], now)
		case n.Stand == asked && r.Target != nil && r.Target.Report:
			n.postpone(now) // it is asked again where it does not answer
		case n.Stand == ending && o.Key.Kind == endNodes, n.Stand == held && r.Target != nil && r.Target.Revision == n.target.Revision:
			n.Unsent, n.Tries = false, 0
		}
	}
}

func (l *lockstep) begun(n *node, how activity.Result, now time.Time) {
	n.Run, n.Tries, n.RetryAt = how.RunID, 0, 0
	switch {
	case how.Refused != "":
		l.Note(now, "node "+n.name+" cannot be held", how.Refused)
		l.Inventory.end(n, api.Failed, how.Refused)
	case how.Adopted:
		n.Stand, n.made, n.of = asked, "", nil
		l.Inventory.ungrouped = true // regroup notes for whom it goes on
	default:
		n.Stand = held
	}
}

// watch sees maintenances and plans that end without a signal.
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

func (l *lockstep) seen(o controller.Outcome, now time.Time) {
	var seen activity.Seen
	if o.Get(&seen) != nil {
		return // it rests
	}
	for _, one := range seen.Maintenances {
		l.Inventory.ended(one)
	}
	for _, p := range seen.Plans {
		l.Inventory.silent = slices.DeleteFunc(l.Inventory.silent, func(silent api.HeldPlan) bool { return silent == p })
		l.Inventory.changed = true
		l.dropPlan(p, now)
	}
}
