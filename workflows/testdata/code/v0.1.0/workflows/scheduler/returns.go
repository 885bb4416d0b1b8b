package scheduler

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/cluster"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/execution"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"encoding/json"
	"go.temporal.io/sdk/workflow"
	"slices"
	"time"
)

const (
	// lookWithin bounds one look at the marks of slots that are said to be given back: everything else waits for it.
	lookWithin = 2 * time.Second
	// firstLook is the pause after a look at which it could not be found out. It doubles up to lastLook.
	firstLook = 2 * time.Second
	lastLook  = time.Minute
	// askedFor is how long a maintenance's word holds before it is asked for it again.
	askedFor = 5 * time.Second
)

// returns decides whether a slot is given back of which somebody says so. A node that carries no mark of the holder's is
// given back; where it carries one, or is not there, the holder is asked.
type returns struct {
	*commands
	cluster   string
	decisions *decisions
	ledger    *ledger
	said      []saidBack
	// asked is when a run was last asked, asking which are being asked. They are only looked up in.
	asked  map[string]time.Time
	asking map[string]bool
	// wakes is when the next look is due for which there is a timer.
	wakes time.Time

	// free takes a slot back, and request queues a request.
	free    func(requestID string)
	request func(api.SlotRequest)
	// heard takes a maintenance's word, and reclaim takes the slot of one that does not run.
	heard   func(api.Holder, api.SlotWanted)
	reclaim func(h api.Holder, why string)
}

// saidBack is a held slot of which it was said that it is given back.
type saidBack struct {
	requestID string
	// wish is what the run asks for in its place, if anything.
	wish *api.SlotRequest
	// looks were made so far, next is when the next one is due.
	looks int
	next  time.Time
}

// say has it found out whether a slot is given back. A request that waits for one is withdrawn at once.
func (r *returns) say(requestID string, wish *api.SlotRequest) {
	h, held := r.ledger.holder(requestID)
	if !held {
		r.free(requestID)
		return
	}
	next := r.now()
	if last, ok := r.asked[h.RunID]; ok && next.Before(last.Add(askedFor)) {
		next = last.Add(askedFor)
	}
	r.dirty = true
	if i := r.find(requestID); i >= 0 {
		r.said[i] = saidBack{requestID: requestID, wish: wish, looks: r.said[i].looks, next: minTime(r.said[i].next, next)}
		return
	}
	r.said = append(r.said, saidBack{requestID: requestID, wish: wish, next: next})
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (r *returns) find(requestID string) int {
	return slices.IndexFunc(r.said, func(s saidBack) bool { return s.requestID == requestID })
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
	if due := r.due(); len(due) > 0 {
		ctx := call.Glance(r.ctx, lookWithin)
		var back []string
		err := workflow.ExecuteLocalActivity(ctx, call.Cluster.SeeGivenBack, due).Get(ctx, &back)
		if r.ctx.Err() != nil {
			return err
		}
		if err != nil {
			workflow.GetLogger(r.ctx).Warn("the marks of slots that are said to be given back could not be looked at", "error", err)
		}
		for _, slot := range due {
			r.conclude(slot.RequestID, slices.Contains(back, slot.RequestID))
		}
		r.forgetFreed()
	}
	r.lookLater()
	return nil
}

// due are the slots to look at now, at most as many as one look may take.
func (r *returns) due() (slots []cluster.HeldSlot) {
	for _, s := range r.said {
		if len(slots) == atOnce {
			r.dirty = true
			break
		}
		if h, ok := r.ledger.holder(s.requestID); ok && !s.next.After(r.now()) && !r.asking[h.RunID] {
			slots = append(slots, cluster.HeldSlot{RequestID: h.RequestID, Node: h.Node, RunID: h.RunID, WorkflowID: r.workflowOf(h)})
		}
	}
	return slots
}

func (r *returns) workflowOf(h api.Holder) string {
	return api.MaintenanceID(r.cluster, h.Node, h.Requestor)
}

// conclude frees a slot whose mark is gone, and has the holder of any other asked.
func (r *returns) conclude(requestID string, back bool) {
	h, held := r.ledger.holder(requestID)
	i := r.find(requestID)
	switch {
	case !held || i < 0:
	case back:
		wish := r.said[i].wish
		r.free(requestID)
		if wish != nil {
			r.request(*wish)
		}
	default:
		r.later(i)
		r.ask(h)
	}
}

// later has the slot looked at again where its holder does not answer.
func (r *returns) later(i int) {
	r.said[i].next = r.now().Add(doubled(firstLook, lastLook, r.said[i].looks))
	r.said[i].looks++
}

// ask has a maintenance say which slot it has or wants. What it says is done.
func (r *returns) ask(h api.Holder) {
	if r.asking[h.RunID] || r.leaving() {
		return
	}
	if last, ok := r.asked[h.RunID]; ok && r.now().Before(last.Add(askedFor)) {
		return
	}
	r.asking[h.RunID] = true
	r.give(command{
		start: func() workflow.Future {
			ctx := call.Within(call.Quick(r.ctx, "ask "+h.Requestor+" for its slot of "+h.Node), actWithin)
			return workflow.ExecuteActivity(ctx, call.Executions.Query, execution.QueryInput{
				Executions: []execution.Run{{WorkflowID: r.workflowOf(h)}}, Query: api.QuerySlot,
			})
		},
		then:    func(future workflow.Future) { r.answered(h, future) },
		back:    func() { delete(r.asking, h.RunID) },
		decides: true,
	})
}

// answered takes a maintenance's word. Where there is none, its slot stays as it is until the next look.
func (r *returns) answered(h api.Holder, future workflow.Future) {
	delete(r.asking, h.RunID)
	var answers []execution.Answered
	err := future.Get(r.ctx, &answers)
	if err != nil || len(answers) != 1 || answers[0].Unanswered != "" {
		r.decisions.record("", "the slot of node "+h.Node+" was said to be given back and stays held", "its maintenance does not answer")
		return
	}
	r.note(h.RunID)
	var wanted api.SlotWanted
	if len(answers[0].Answer) > 0 && json.Unmarshal(answers[0].Answer, &wanted) != nil {
		return
	}
	if answers[0].Gone || wanted.Ended || wanted.RunID != h.RunID {
		r.reclaim(h, "its slot was said to be given back, and its workflow does not run")
		return
	}
	r.said = slices.DeleteFunc(r.said, func(s saidBack) bool {
		known, ok := r.ledger.holder(s.requestID)
		return ok && known.RunID == h.RunID
	})
	if wanted.Wants && wanted.GrantedAt != nil {
		r.decisions.record("", "the slot of node "+h.Node+" was said to be given back and stays held", "its maintenance says that it has it")
	}
	r.heard(h, wanted)
}

// note remembers that a run was asked just now, and forgets those that were long ago.
func (r *returns) note(runID string) {
	for _, run := range workflow.DeterministicKeys(r.asked) {
		if r.now().Sub(r.asked[run]) > lastLook {
			delete(r.asked, run)
		}
	}
	r.asked[runID] = r.now()
}

func (r *returns) forgetFreed() {
	r.said = slices.DeleteFunc(r.said, func(s saidBack) bool { return !r.ledger.holds(s.requestID) })
}

// lookLater wakes the scheduler when the next look is due.
func (r *returns) lookLater() {
	if len(r.said) == 0 {
		return
	}
	first := slices.MinFunc(r.said, func(a, b saidBack) int { return a.next.Compare(b.next) }).next
	if r.wakes.After(r.now()) && !first.Before(r.wakes) {
		return
	}
	wait := max(first.Sub(r.now()), time.Second)
	r.wakes = r.now().Add(wait)
	timer := workflow.NewTimerWithOptions(r.ctx, wait, workflow.TimerOptions{Summary: "see again whether nodes are given back"})
	// Nothing is lost with it: the next run looks at once.
	r.whenReady(timer, func() {})
}
