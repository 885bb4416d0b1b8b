package lockstep

import (
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	activity "drydock/activities/lockstep"
	"drydock/api"
	"drydock/workflows/call"
)

// patience is how long those who run have, when the lockstep begins anew, to say what they know before others go on without.
const patience = 30 * time.Second

// askFirst is the first pause before a silent plan is asked again. It doubles up to tryAgainMost.
const askFirst = 5 * time.Second

// stock finds out what is going on where that is not known: in a workflow that begins anew, and in one that was reset.
type stock struct {
	*core
	// known: the maintenances and plans that run are, taking that they are being found out.
	known, taking bool
	// doubts count how often it was found out in vain.
	doubts int
	// until is how long others wait for those who have not spoken, notBefore when it is tried again.
	until, notBefore time.Time
	// asked counts how often silent plans were asked for their intents, askAgain is when they are again.
	asked    int
	askAgain time.Time
}

// doubt has everything found out anew.
func (s *stock) doubt() {
	s.known, s.changed, s.dirty = false, true, true
	s.doubts++
	for _, n := range s.book.nodes {
		if n.stand == held || n.stand == ending {
			n.stand, n.tries, n.notBefore, n.ended = asked, 0, 0, false
		}
	}
}

// take finds out which maintenances and which plans run.
func (s *stock) take() {
	if s.taking || s.now().Before(s.notBefore) {
		return
	}
	s.taking = true
	doubts := s.doubts
	future := workflow.ExecuteActivity(s.within("find plans and shared maintenances"), call.Lockstep.TakeStock,
		activity.StockInput{TaskQueue: workflow.GetInfo(s.ctx).TaskQueueName})
	s.does("stock", future, func(f workflow.Future) {
		s.taking = false
		var found activity.Stock
		if err := f.Get(s.ctx, &found); err != nil {
			s.note("it could not be found out what runs", call.Cause(err))
			s.notBefore = s.now().Add(tryAgain)
			s.wakeIn(tryAgain)
			return
		}
		if doubts != s.doubts {
			return // it may be from before a reset
		}
		s.found(found)
	})
}

// found takes what runs. Maintenances have to say how far they are, plans what they intend.
func (s *stock) found(found activity.Stock) {
	s.known, s.until = true, s.now().Add(patience)
	for _, name := range found.Nodes {
		n := s.book.byName[name]
		if n == nil {
			n = s.book.add(name)
		}
		if n.stand == wanted {
			n.stand = asked
		}
	}
	if len(found.Nodes) > 0 {
		s.note("found maintenances that run", "they say how far they are before anything is decided for them")
	}
	for _, p := range found.Plans {
		if s.doubts == 0 && s.book.planOf(p.RunID) != nil {
			continue
		}
		s.book.silent[p.Name] = p.RunID
	}
	s.asked, s.askAgain = 0, s.now()
	s.ask()
	s.wakeIn(patience)
}

// ask asks silent plans for their intents, and again, after a longer pause each time: of very many plans, not all are heard at
// once.
func (s *stock) ask() {
	if len(s.book.silent) == 0 || s.now().Before(s.askAgain) {
		return
	}
	for _, name := range sortedKeys(s.book.silent) {
		s.does("ask plan "+name, workflow.SignalExternalWorkflow(s.ctx, api.PlanID(s.cluster, name), "", api.SignalPlanProgress,
			api.PlanProgress{RunID: s.book.silent[name], Repeat: true}), func(workflow.Future) {})
	}
	wait := min(askFirst<<min(s.asked, 10), tryAgainMost)
	s.asked, s.askAgain = s.asked+1, s.now().Add(wait)
	s.wakeIn(wait)
}

// heard notes that a plan has said what it intends.
func (s *stock) heard(run string) {
	for _, name := range sortedKeys(s.book.silent) {
		if s.book.silent[name] == run {
			delete(s.book.silent, name)
		}
	}
}

// isOpen tells whether it may be decided how far nodes go: those who could say something against it have spoken, or do not
// for too long.
func (s *stock) isOpen() bool {
	return s.pending() == ""
}

// pending says in words what has to be found out before anything is decided; empty is nothing.
func (s *stock) pending() string {
	if s.known && !s.now().Before(s.until) {
		return ""
	}
	return s.waitsFor()
}

// waitsFor says in words who has not spoken yet.
func (s *stock) waitsFor() string {
	if !s.known {
		return "finding out which plans and maintenances run"
	}
	var names []string
	for _, name := range sortedKeys(s.book.silent) {
		names = append(names, "plan "+name)
	}
	for _, n := range s.book.nodes {
		if n.stand == asked {
			names = append(names, "the maintenance of "+n.name)
		}
	}
	const shown = 3
	if len(names) > shown {
		names = append(names[:shown], "others")
	}
	if len(names) == 0 {
		return ""
	}
	return "waiting for word of " + strings.Join(names, ", ")
}

// isComplete tells that every plan which runs has said what it intends: what no plan wants may be ended.
func (s *stock) isComplete() bool { return s.known && len(s.book.silent) == 0 }
