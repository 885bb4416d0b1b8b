package scheduler

import (
	"encoding/json"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/cluster"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/workflows/call"
)

const (
	// lookWithin bounds one look at marks: everything else waits for it.
	lookWithin = 2 * time.Second
	// firstLook is the pause after a look that confirmed nothing. It doubles up to lastLook.
	firstLook = 2 * time.Second
	lastLook  = time.Minute
	// answerFor is how long a maintenance is not asked again after it has answered.
	answerFor = 5 * time.Second
)

// releases finds out whether a slot is given back of which somebody says so. A node that carries no mark of the holder's is given back;
// where it carries one, is not there, or its holder marks no node, the holder is asked.
type releases struct {
	*scheduler
	unconfirmed []unconfirmedRelease
	// answered is when a run last answered, querying which are being asked.
	answered map[string]time.Time
	querying map[string]bool
	// wakes is when the next look is due for which there is a timer.
	wakes time.Time
}

type unconfirmedRelease struct {
	requestID string
	// next is what the run requests in place of the slot, nil for nothing.
	next *api.SlotRequest
	// looks counts those made so far, due is the time of the next one.
	looks int
	due   time.Time
}

// verify finds out whether a slot is given back. A request that waits for one is withdrawn at once.
func (r *releases) verify(requestID string, next *api.SlotRequest) {
	h, held := r.slots.holder(requestID)
	if !held {
		r.free(requestID)
		return
	}
	release := unconfirmedRelease{requestID: requestID, next: next, due: r.now()}
	if again := r.answered[h.RunID].Add(answerFor); again.After(release.due) {
		release.due = again
	}
	r.dirty = true
	i := r.find(requestID)
	if i < 0 {
		r.unconfirmed = append(r.unconfirmed, release)
		return
	}
	release.looks = r.unconfirmed[i].looks
	if before := r.unconfirmed[i].due; before.Before(release.due) {
		release.due = before
	}
	r.unconfirmed[i] = release
}

func (r *releases) find(requestID string) int {
	return slices.IndexFunc(r.unconfirmed, func(u unconfirmedRelease) bool { return u.requestID == requestID })
}

// settle looks at the marks that are due, and frees the slots whose mark is gone. That is a local activity: each hand-over of a slot waits
// for it.
func (r *releases) settle() error {
	r.dropFreed()
	if due := r.due(); len(due) > 0 {
		unmarked, err := r.findUnmarked(due)
		if err != nil {
			return err
		}
		for _, h := range due {
			r.conclude(h.RequestID, slices.Contains(unmarked, h.RequestID))
		}
		r.dropFreed()
	}
	r.lookLater()
	return nil
}

// findUnmarked returns the requests of the slots whose node carries no mark of the holder. A holder that marks no node is not among them.
func (r *releases) findUnmarked(due []api.Holder) (unmarked []string, err error) {
	var held []cluster.HeldSlot
	for _, h := range due {
		if h.IsMarked() {
			held = append(held, cluster.HeldSlot{RequestID: h.RequestID, Node: h.Node, RunID: h.RunID, WorkflowID: h.WorkflowID(r.cluster)})
		}
	}
	if len(held) == 0 {
		return nil, nil
	}
	ctx := call.Glance(r.ctx, lookWithin)
	err = workflow.ExecuteLocalActivity(ctx, call.Cluster.SeeGivenBack, held).Get(ctx, &unmarked)
	if r.ctx.Err() != nil {
		return nil, err
	}
	if err != nil {
		workflow.GetLogger(r.ctx).Warn("the marks of slots that are said to be given back could not be looked at", "error", err)
	}
	return unmarked, nil
}

// due are the slots to look at now, at most as many as one look may take.
func (r *releases) due() (due []api.Holder) {
	for _, u := range r.unconfirmed {
		if len(due) == maxUnderWay {
			r.dirty = true
			break
		}
		if h, held := r.slots.holder(u.requestID); held && !u.due.After(r.now()) && !r.querying[h.RunID] {
			due = append(due, h)
		}
	}
	return due
}

// conclude frees a slot whose mark is gone, and asks the holder of any other.
func (r *releases) conclude(requestID string, unmarked bool) {
	h, held := r.slots.holder(requestID)
	i := r.find(requestID)
	if !held || i < 0 {
		return
	}
	u := &r.unconfirmed[i]
	if !unmarked {
		u.due = r.now().Add(period.Doubled(firstLook, lastLook, u.looks)) // where the holder does not answer
		u.looks++
		r.query(h)
		return
	}
	next := u.next
	r.free(requestID)
	if next != nil {
		r.intake.request(*next)
	}
}

// query asks a maintenance which slot it has or wants, and does what it says.
func (r *releases) query(h api.Holder) {
	if r.querying[h.RunID] || r.leaving() || r.now().Before(r.answered[h.RunID].Add(answerFor)) {
		return
	}
	r.querying[h.RunID] = true
	r.commands.add(command{
		start: func() workflow.Future {
			ctx := call.Within(call.Quick(r.ctx, "ask "+h.Requestor+" for its slot of "+h.Node), actWithin)
			return workflow.ExecuteActivity(ctx, call.Executions.Query, execution.QueryInput{
				Executions: []execution.Run{{WorkflowID: h.WorkflowID(r.cluster)}}, Query: api.QuerySlot,
			})
		},
		then:    func(future workflow.Future) { r.takeAnswer(h, future) },
		keep:    func() { delete(r.querying, h.RunID) },
		decides: true,
	})
}

// takeAnswer leaves a slot as it is until the next look where the holder does not answer.
func (r *releases) takeAnswer(h api.Holder, future workflow.Future) {
	delete(r.querying, h.RunID)
	kept := "the slot of node " + h.Node + " was said to be given back and stays held"
	var answers []execution.Answered
	err := future.Get(r.ctx, &answers)
	if err != nil || len(answers) != 1 || answers[0].Unanswered != "" {
		r.decisions.record("", kept, "its holder does not answer")
		return
	}
	r.answered[h.RunID] = r.now()
	var wanted api.SlotWanted
	if len(answers[0].Answer) > 0 && json.Unmarshal(answers[0].Answer, &wanted) != nil {
		return
	}
	if answers[0].Gone || wanted.Ended || wanted.RunID != h.RunID {
		r.reclaimer.reclaim(h, "its slot was said to be given back, and its workflow does not run")
		return
	}
	r.unconfirmed = slices.DeleteFunc(r.unconfirmed, func(u unconfirmedRelease) bool {
		other, held := r.slots.holder(u.requestID)
		return held && other.RunID == h.RunID
	})
	if wanted.Wants && wanted.GrantedAt != nil {
		r.decisions.record("", kept, "its maintenance says that it has it")
	}
	rebuilding{r.scheduler, map[string]bool{}}.addRunning(execution.Run{WorkflowID: h.WorkflowID(r.cluster)}, wanted)
}

func (r *releases) dropFreed() {
	r.unconfirmed = slices.DeleteFunc(r.unconfirmed, func(u unconfirmedRelease) bool { return !r.slots.holds(u.requestID) })
}

// lookLater wakes the scheduler when the next look is due. The next run looks at once.
func (r *releases) lookLater() {
	if len(r.unconfirmed) == 0 {
		return
	}
	first := slices.MinFunc(r.unconfirmed, func(a, b unconfirmedRelease) int { return a.due.Compare(b.due) }).due
	if r.wakes.After(r.now()) && !first.Before(r.wakes) {
		return
	}
	wait := max(first.Sub(r.now()), time.Second)
	r.wakes = r.now().Add(wait)
	r.after(wait, "see again whether nodes are given back", func() {})
}
