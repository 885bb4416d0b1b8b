package lockstep

import (
	"cmp"
	"errors"
	"hash/fnv"
	"strconv"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/bounds"
	"drydock/workflows/call"
)

const (
	// maxTold and maxToldText bound what one signal tells a plan, in nodes and about in bytes.
	maxTold     = 500
	maxToldText = 192 << 10
	// tellAtOnce bounds the signals to plans under way: each may be as long as that, and a server takes 4 MB in one go.
	tellAtOnce = 6
	// maxRefusals bounds those that tell of refusals.
	maxRefusals = 50
	// refreshEvery is how often words alone are told anew: who is waited for changes with every node.
	refreshEvery = 30 * time.Second
)

// telling is what a plan was told.
type telling struct {
	// told is what was said of each of its nodes, in their order; header the rest.
	told   []sum
	header api.PlanProgress
	// pending are the places of nodes of which something is to be said. all: everything is, nodes or not.
	pending []int
	all     bool
	// busy: a signal is under way. refreshed is when words were told anew, notBefore when it is tried again.
	busy      bool
	refreshed time.Time
	notBefore time.Time
}

// sum stands for what was said of a node: all of it, and all but the names of those who are waited for.
type sum struct{ exact, kind uint64 }

// tellAll has a plan told everything.
func (t *telling) tellAll() { t.told, t.pending, t.all = nil, nil, true }

// bulletin tells plans how far they are.
type bulletin struct {
	*core
	s                  situation
	underWay, refusals int
	// gone has somebody see whether a plan that could not be told still runs.
	gone func(*plan)
}

// tell has plans told what has changed.
func (b *bulletin) tell(s situation) {
	b.s = s
	for _, p := range b.book.plans {
		if len(p.pending) > 0 {
			continue
		}
		var words []int
		p.pending, words = b.compare(p)
		b.refresh(p, words)
		b.rest()
	}
	b.post()
}

// compare finds out of which nodes a plan has to be told, and of which the words alone have changed.
func (b *bulletin) compare(p *plan) (changed, words []int) {
	if len(p.told) != len(p.Nodes) {
		p.told = make([]sum, len(p.Nodes))
	}
	for i, name := range p.Nodes {
		switch now := sumOf(b.book.stateOf(p, name, b.s)); {
		case now.kind != p.told[i].kind:
			changed = append(changed, i)
		case now != p.told[i]:
			words = append(words, i)
		}
	}
	return changed, words
}

// refresh has words told anew now and then, where they are few.
func (b *bulletin) refresh(p *plan, words []int) {
	if len(words) == 0 || len(words) > maxTold {
		return
	}
	if left := refreshEvery - b.now().Sub(p.refreshed); left > 0 {
		b.wakeIn(left)
		return
	}
	p.pending, p.refreshed = append(p.pending, words...), b.now()
}

// headerOf is what there is to tell of a plan beside its nodes.
func (b *bulletin) headerOf(p *plan) api.PlanProgress {
	return api.PlanProgress{
		RunID: p.RunID, Revision: p.Revision, Tier: p.tier, Complete: b.book.isComplete(p), Forwarded: p.forwarded,
	}
}

// sameHeader compares what is said beside the nodes.
func sameHeader(a, b api.PlanProgress) bool {
	return a.RunID == b.RunID && a.Revision == b.Revision && a.Tier == b.Tier && a.Complete == b.Complete && a.Forwarded == b.Forwarded
}

// post signals plans, each one at a time: what is said later has to come later.
func (b *bulletin) post() {
	for _, p := range b.book.plans {
		if b.underWay >= tellAtOnce {
			return
		}
		header := b.headerOf(p)
		if p.busy || len(p.pending) == 0 && !p.all && sameHeader(header, p.header) {
			continue
		}
		if left := p.notBefore.Sub(b.now()); left > 0 {
			b.wakeIn(left)
			continue
		}
		b.send(p, header)
	}
}

// send tells a plan as much as goes into one signal.
func (b *bulletin) send(p *plan, header api.PlanProgress) {
	told := header
	n := 0
	for size := 0; n < len(p.pending) && n < maxTold && size < maxToldText; n++ {
		i := p.pending[n]
		one := b.book.stateOf(p, p.Nodes[i], b.s)
		p.told[i] = sumOf(one)
		told.Nodes = append(told.Nodes, one)
		size += sizeOf(one.Targets) + len(one.Node) + len(one.Message)
	}
	p.pending = p.pending[n:]
	if len(p.pending) > 0 {
		told.Complete = false
	}
	p.header, p.busy, p.all = told, true, false
	p.header.Nodes = nil
	b.underWay++
	future := workflow.SignalExternalWorkflow(b.ctx, api.PlanID(b.cluster, p.Name), "", api.SignalPlanProgress, told)
	b.does("tell plan "+p.Name, future, func(f workflow.Future) {
		b.underWay--
		p.busy = false
		b.delivered(p, told, f.Get(b.ctx, nil))
		b.post()
	})
}

// delivered takes whether a plan was told.
func (b *bulletin) delivered(p *plan, told api.PlanProgress, err error) {
	var nobody *temporal.UnknownExternalWorkflowExecutionError
	switch {
	case err == nil && told.Complete && p.Revision == told.Revision:
		b.book.drop(p.RunID)
	case err == nil:
	case errors.As(err, &nobody):
		b.gone(p)
		fallthrough
	default:
		b.note("plan "+p.Name+" could not be told how far it is", call.Cause(err))
		p.tellAll()
		p.notBefore = b.now().Add(tryAgain)
	}
}

// refuse tells a plan that its intent is not taken. Where that is lost, it repeats it.
func (b *bulletin) refuse(in api.PlanIntent, why error) {
	if b.refusals >= maxRefusals {
		return
	}
	b.refusals++
	progress := api.PlanProgress{RunID: in.RunID, Revision: in.Revision, Refused: bounds.Cut(why.Error(), 2*bounds.Text)}
	b.does("refuse plan "+in.Name, workflow.SignalExternalWorkflow(b.ctx, api.PlanID(b.cluster, in.Name), "", api.SignalPlanProgress, progress),
		func(workflow.Future) { b.refusals-- })
}

// untold are the places of the nodes of which a plan has still to be told.
func (b *bulletin) untold(p *plan, s situation) []int {
	b.s = s
	changed, _ := b.compare(p)
	return changed
}

// assumeTold takes as told what the run before told: all but what it says that it has not.
func (b *bulletin) assumeTold() {
	b.s = b.book.present()
	for _, p := range b.book.plans {
		p.told = make([]sum, len(p.Nodes))
		untold := make(map[int]bool, len(p.pending))
		for _, i := range p.pending {
			untold[i] = true
		}
		for i, name := range p.Nodes {
			if !untold[i] {
				p.told[i] = sumOf(b.book.stateOf(p, name, b.s))
			}
		}
		p.pending = nil
	}
}

// sumOf is that of what is said of a node.
func sumOf(one api.SharedProgress) sum {
	text := make([]byte, 0, 256)
	add := func(part string) { text = append(append(text, part...), 0) }
	number := func(n int) { text = append(strconv.AppendInt(text, int64(n), 10), 0) }
	add(one.RunID)
	add(string(one.Phase))
	for _, t := range one.Targets {
		add(string(t.PodType))
		number(int(t.PodPriority))
		add(t.PodSelector)
	}
	number(one.Pending)
	number(one.Evacuating)
	for _, flag := range []bool{one.Drained, one.Left, one.Failed} {
		add(strconv.FormatBool(flag))
	}
	h := fnv.New64a()
	_, _ = h.Write(text)
	_, _ = h.Write([]byte(kindOf(one.Message)))
	s := sum{kind: cmp.Or(h.Sum64(), 1)} // 0 is nothing told
	_, _ = h.Write([]byte(one.Message))
	s.exact = h.Sum64()
	return s
}
