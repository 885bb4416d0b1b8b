package lockstep

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
)

// The kinds of the signals to plans.
const (
	sendProgress = "progress"
	sendRefusal  = "refuse"
	askIntent    = "ask"
)

const (
	// maxSent and maxSentText bound what one signal has for a plan, in nodes and about in bytes.
	maxSent     = 500
	maxSentText = 192 << 10
	// sendAtOnce bounds the signals to plans under way: each may be that long, and a server takes 4 MB in one go.
	sendAtOnce = 6
	// maxRefusals bounds the refusals that wait to be sent: plans repeat what they intend.
	maxRefusals = 50
	// refreshEvery is how often a plan is sent nothing but whom its nodes wait for, which changes with every node.
	refreshEvery = 30 * time.Second
	// askAgain is the first pause before a plan is asked again for its intent; it doubles: of very many plans, not all answer at once.
	askAgain = 5 * time.Second
	// maxCompared bounds how many nodes of plans are compared in one turn.
	maxCompared = 250_000
)

// outbox is what a plan was sent, and what it has to be sent.
type outbox struct {
	// sent are the sums of what it was sent of each of its nodes, in their order; 0 is nothing.
	sent []uint64
	// pending are the places of nodes of which something is to be sent. compared: they were found since the last decision.
	pending  []int
	compared bool
	// sentAt is when it was last sent something.
	sentAt time.Time
}

// restart has a plan be sent everything.
func (v *inventory) restart(p *planEntry) {
	p.All, p.compared = true, false
	v.changed = true
}

// compare finds what plans have to be sent since the last decision, and reports whether some are left for the next turn.
func (v *inventory) compare(t controller.Turn) (more bool) {
	if v.ungrouped {
		return false // it is decided anew first
	}
	compared := 0
	for _, p := range v.plans {
		switch {
		case p.compared:
			continue
		case p.All && t.UnderWay(keyOf(sendProgress, p.Name)):
			continue // what is sent now may come before what made it be sent everything
		case compared > 0 && compared+len(p.Nodes) > maxCompared:
			return true
		case p.All:
			p.outbox, p.Header, p.All = outbox{sent: make([]uint64, len(p.Nodes))}, api.PlanProgress{}, false
		}
		if p.compared = true; len(p.pending) > 0 {
			continue
		}
		if compared == 0 {
			v.sumNodes()
		}
		p.pending = p.differences(v.sums(p))
		compared += 1 + len(p.Nodes)
	}
	return false
}

// differences are the places of nodes of which something is to be sent.
func (p *planEntry) differences(now []uint64) (changed []int) {
	for i := range now {
		if now[i] != p.sent[i] {
			changed = append(changed, i)
		}
	}
	return changed
}

// sumNodes has all nodes stand for how they are now.
func (v *inventory) sumNodes() {
	for _, n := range v.nodes {
		n.sum = hashOf(fmt.Sprint(n.shared()))
	}
}

// sums stand for what there is to send of a plan's nodes.
func (v *inventory) sums(p *planEntry) []uint64 {
	all := make([]uint64, len(p.Nodes))
	last, hashed := "", hashOf("")
	for i := range p.Nodes {
		n := p.member(i)
		if n == nil || !p.isActive() || len(p.Left) > 0 {
			all[i] = sumOf(v.progressOf(p, i))
			continue
		}
		if message := v.messageOf(p, n); message != last {
			last, hashed = message, hashOf(message) // it is the same for thousands
		}
		all[i] = mix(n.sum, hashed)
	}
	return all
}

func sumOf(one api.SharedProgress) uint64 {
	message := one.Message
	one.Message = ""
	return mix(hashOf(fmt.Sprint(one)), hashOf(message))
}

func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}

// mix combines the hashes of a node and of its message. It is never 0.
func mix(node, message uint64) uint64 {
	const prime = 1099511628211
	return cmp.Or((message^node)*prime, 1)
}

// assumeSent takes as sent what the run before sent: all but what is pending.
func (v *inventory) assumeSent() {
	v.look()
	for _, p := range v.plans {
		if p.All {
			continue
		}
		p.compared, p.sent = true, v.sums(p)
		for _, i := range p.pending {
			p.sent[i] = 0
		}
	}
}

// headerOf is what there is to send of a plan beside its nodes.
func (v *inventory) headerOf(p *planEntry) api.PlanProgress {
	header := api.PlanProgress{RunID: p.RunID, Revision: p.Revision, Tier: p.Tier, Complete: p.isComplete(), Forwarded: p.Forwarded}
	if place, drains := v.now.party[p]; drains {
		header.WaitsFor = bounds.Cut(v.now.messages.WaitsFor(place), bounds.Text)
	}
	return header
}

// reports signal plans how far they are, each one at a time: what is sent later has to arrive later.
func (l *lockstep) reports(t controller.Turn, d *controller.Decision) {
	v, room := &l.Inventory, sendAtOnce
	for _, p := range v.plans {
		if t.UnderWay(keyOf(sendProgress, p.Name)) {
			room--
		}
	}
	for _, p := range v.plans {
		if room <= 0 {
			return
		}
		if t.UnderWay(keyOf(sendProgress, p.Name)) || !p.compared {
			continue
		}
		header, sent := v.headerOf(p), p.Header
		if header.Complete { // it ends with that: how its nodes are given back has to be in it, be it decided about or not
			p.pending = p.differences(v.sums(p))
		}
		if sent.WaitsFor = header.WaitsFor; len(p.pending) == 0 && reflect.DeepEqual(header, sent) {
			if header.WaitsFor == p.Header.WaitsFor {
				continue
			}
			if due := p.sentAt.Add(refreshEvery); t.Now.Before(due) {
				d.WakeAt(due, "send plan "+p.Name+" which nodes it waits for")
				continue
			}
		}
		d.Effects = append(d.Effects, l.signal(sendProgress, "send its progress to", p.Name, v.part(p, header), 0))
		room--
	}
}

// part is as much for a plan as goes into one signal.
func (v *inventory) part(p *planEntry, progress api.PlanProgress) api.PlanProgress {
	n := 0
	for size := 0; n < len(p.pending) && n < maxSent && size < maxSentText; n++ {
		one := v.progressOf(p, p.pending[n])
		progress.Nodes = append(progress.Nodes, one)
		size += nodeBytes + drainplan.Size(one.Targets) + len(one.Node) + len(one.Message)
	}
	progress.Complete = progress.Complete && n == len(p.pending)
	return progress
}

func (l *lockstep) signal(kind, what, name string, progress api.PlanProgress, repeat time.Duration) controller.Effect {
	return controller.Signal{
		Meta: controller.Meta{Key: keyOf(kind, name), Summary: what + " plan " + name, Repeat: repeat, AtOnce: sendAtOnce},
		To:   api.PlanID(l.Info.Cluster, name), Name: api.SignalPlanProgress, Payload: progress,
	}
}

func (l *lockstep) reported(o controller.Outcome, now time.Time) {
	v, sent := &l.Inventory, o.Begun.(controller.Signal).Payload.(api.PlanProgress)
	p := v.planOf(sent.RunID)
	switch {
	case p == nil:
	case o.Err != nil:
		p.Missing = call.IsNobody(o.Err)
		l.Note(now, "could not send its progress to plan "+p.Name, call.Cause(o.Err))
		v.restart(p)
	case sent.Complete && p.Revision == sent.Revision:
		v.drop(p)
	case !p.All:
		p.take(sent, now)
	}
}

// take notes what a plan was sent.
func (p *planEntry) take(progress api.PlanProgress, now time.Time) {
	for _, one := range progress.Nodes {
		i, _ := slices.BinarySearch(p.Nodes, one.Node)
		p.sent[i] = sumOf(one)
		if len(p.pending) > 0 && p.pending[0] == i {
			p.pending = p.pending[1:]
		}
	}
	p.compared = p.compared && len(p.pending) > 0 // what has changed while that was sent is compared now
	p.Header, p.sentAt = progress, now
	p.Header.Nodes = nil
}

type refusal struct {
	Plan     string           `json:"plan"`
	Progress api.PlanProgress `json:"progress"`
}

// refuse has the reason sent to a plan whose intent is not taken.
func (l *lockstep) refuse(in api.PlanIntent, why error) {
	l.Refusals = slices.DeleteFunc(l.Refusals, func(r refusal) bool { return r.Plan == in.Name && r.Progress.RunID == in.RunID })
	if len(l.Refusals) < maxRefusals {
		progress := api.PlanProgress{RunID: in.RunID, Revision: in.Revision, Refused: bounds.Cut(why.Error(), 2*bounds.Text)}
		l.Refusals = append(l.Refusals, refusal{Plan: in.Name, Progress: progress})
	}
}

func (l *lockstep) refusals() (all []controller.Effect) {
	for _, r := range l.Refusals {
		all = append(all, l.signal(sendRefusal, "refuse the intent of", r.Plan, r.Progress, 0))
	}
	return all
}

// refused forgets a refusal that was sent, or cannot be: a plan without an answer repeats its intent.
func (l *lockstep) refused(o controller.Outcome) {
	sent := o.Begun.(controller.Signal).Payload.(api.PlanProgress)
	l.Refusals = slices.DeleteFunc(l.Refusals, func(r refusal) bool {
		return r.Progress.RunID == sent.RunID && r.Progress.Revision == sent.Revision && r.Progress.Refused == sent.Refused
	})
}

func (l *lockstep) asks() (all []controller.Effect) {
	for _, p := range l.Inventory.silent {
		all = append(all, l.signal(askIntent, "ask for the intent of", p.Name, api.PlanProgress{RunID: p.RunID, Repeat: true}, askAgain))
	}
	return all
}
