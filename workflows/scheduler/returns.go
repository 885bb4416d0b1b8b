package scheduler

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/activities/cluster"
	"drydock/api"
	"drydock/workflows/call"
)

const (
	// lookWithin bounds one look at the marks of slots that are said to be given back: everything else waits for it.
	lookWithin = 2 * time.Second
	// firstLook is the pause after a look that found the mark still there. It doubles up to lastLook.
	firstLook = 2 * time.Second
	lastLook  = time.Minute
)

// returns has slots given back whose holders' marks are off their nodes. Anybody may say that a slot is given back; a node
// that still carries the mark is held, whoever says what.
type returns struct {
	*loop
	cluster   string
	decisions *decisions
	ledger    *ledger
	said      []saidBack
	// timer: the next look has its time.
	timer bool
	// free takes a slot back.
	free func(requestID string)
}

// saidBack is a held slot of which it was said that it is given back.
type saidBack struct {
	requestID string
	// looks were made so far, next is when the next one is due.
	looks int
	next  time.Time
}

// say has a slot given back as soon as its mark is gone, and a request that waits for one at once.
func (r *returns) say(requestID string) {
	if !r.ledger.holds(requestID) {
		r.free(requestID)
		return
	}
	if !slices.ContainsFunc(r.said, func(s saidBack) bool { return s.requestID == requestID }) {
		r.said = append(r.said, saidBack{requestID: requestID, next: r.now()})
	}
	r.dirty = true
}

// requests are those whose slots are said to be given back, for the next run to look.
func (r *returns) requests() (ids api.List[string]) {
	for _, s := range r.said {
		ids = append(ids, s.requestID)
	}
	return ids
}

// settle looks at the marks that are due, and frees the slots whose mark is gone. It is a local activity: each hand-over
// waits for it.
func (r *returns) settle() error {
	r.forgetFreed()
	due := r.due()
	if len(due) == 0 {
		r.lookLater()
		return nil
	}
	ctx := call.Glance(r.ctx, lookWithin)
	var back []string
	err := workflow.ExecuteLocalActivity(ctx, call.Cluster.SeeGivenBack, due).Get(ctx, &back)
	if r.ctx.Err() != nil {
		return err
	}
	for _, slot := range due {
		if slices.Contains(back, slot.RequestID) {
			r.free(slot.RequestID)
			continue
		}
		why := "its mark is still on the node"
		if err != nil {
			why = call.Cause(err)
		}
		r.keep(slot, why)
	}
	r.forgetFreed()
	r.lookLater()
	return nil
}

func (r *returns) forgetFreed() {
	r.said = slices.DeleteFunc(r.said, func(s saidBack) bool { return !r.ledger.holds(s.requestID) })
}

// lookLater wakes the scheduler when the next look is due.
func (r *returns) lookLater() {
	if r.timer || len(r.said) == 0 {
		return
	}
	first := slices.MinFunc(r.said, func(a, b saidBack) int { return a.next.Compare(b.next) })
	r.timer = true
	wait := max(first.next.Sub(r.now()), time.Second)
	timer := workflow.NewTimerWithOptions(r.ctx, wait, workflow.TimerOptions{Summary: "see again whether nodes are given back"})
	// Nothing is lost with it: the next run looks at once.
	r.whenReady(timer, func() { r.timer = false })
}

// due are the slots to look at now, at most as many as one look may take.
func (r *returns) due() (slots []cluster.HeldSlot) {
	for _, s := range r.said {
		if len(slots) == atOnce {
			r.dirty = true
			break
		}
		if h, ok := r.ledger.holder(s.requestID); ok && !s.next.After(r.now()) {
			slots = append(slots, cluster.HeldSlot{
				RequestID: h.RequestID, Node: h.Node, RunID: h.RunID, WorkflowID: api.MaintenanceID(r.cluster, h.Node, h.Requestor),
			})
		}
	}
	return slots
}

// keep leaves a holder its slot until the next look.
func (r *returns) keep(slot cluster.HeldSlot, why string) {
	i := slices.IndexFunc(r.said, func(s saidBack) bool { return s.requestID == slot.RequestID })
	if i < 0 {
		return
	}
	wait := firstLook
	for range min(r.said[i].looks, 20) {
		wait = min(2*wait, lastLook)
	}
	r.said[i].looks++
	r.said[i].next = r.now().Add(wait)
	r.decisions.record("", "the slot of node "+slot.Node+" was said to be given back and stays held", why)
}
