package plan

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/drainplan"
	"drydock/rules/notices"
	"drydock/rules/rollout"
)

// stages is the course of a plan whose nodes go through its stages together (KEP-4212). It touches no node: it tells the
// lockstep of all plans what it intends, and hears from that how far each node is.
type stages struct {
	*core
	*staged
	roster *roster
	news   *bulletin
	tiers  drainplan.Plan
	// sending: an intent is under way.
	sending bool
	// refused is the latest intent that was refused, and why.
	refused struct {
		revision int
		why      string
	}
}

func newStages(c *core, list *roster, news *bulletin) *stages {
	if c.state.Staged == nil {
		c.state.Staged = begin(c.spec.Stage, c.state.CreatedAt)
	}
	s := &stages{core: c, staged: c.state.Staged, roster: list, news: news}
	s.tiers, _ = c.spec.Tiers() // its input was decoded
	if s.Selection != nil {
		c.spec.Selection = *s.Selection
	}
	c.summarize, c.staging = s.summary, s.standing
	list.match = func(nodes []rollout.Node, matching []rollout.Facts) ([]rollout.Node, int, int) {
		return rollout.MatchTogether(nodes, matching, c.now())
	}
	list.changed = func() {
		if s.Stage.Holds() {
			s.revise(c.now())
		}
	}
	return s
}

// attend has other nodes be waited for while the plan holds some.
func (s *stages) attend() {
	if !s.Stage.Holds() || s.leaving() {
		s.roster.rest()
	}
}

func (s *stages) settled() bool { return !s.sending }

// step looks at the nodes, tells the lockstep what the plan intends, and tells whether the plan is over.
func (s *stages) step() (over bool) {
	switch {
	case s.Stage == rollout.Idle && s.state.Stop != "":
		return true
	case s.Stage == rollout.Complete && (s.Released || !holding(s.state.Nodes) && s.Sent == 0 && !s.sending):
		return true
	case s.doubts > 0:
		return false
	case !s.roster.known(), s.Stage.Holds() && !s.look():
	default:
		s.tell()
	}
	s.judge()
	s.state.WaitingFor, s.state.Until = s.waitsFor(), time.Time{}
	return false
}

// look has the nodes be looked at again and again, and tells whether they are known as they are now.
func (s *stages) look() bool {
	if s.Relook && s.Sent == s.Revision {
		s.Relook, s.state.Digest = false, matchAgain
		s.roster.rest()
	}
	if s.roster.unwatch == nil && s.roster.stale() {
		s.roster.look()
		return false
	}
	s.roster.watch()
	return true
}

// wake is when the intent is due again.
func (s *stages) wake() (time.Time, string) {
	if s.Stage == rollout.Idle || s.sending || s.Next.IsZero() {
		return time.Time{}, ""
	}
	return s.Next, "tell again what the plan intends"
}

// stop ends the plan: at once where it holds nothing, and else through Complete.
func (s *stages) stop(phase api.PlanPhase, why string) {
	if s.state.Stop != "" {
		return
	}
	s.state.Stop, s.state.StoppedWhy, s.dirty = phase, why, true
	if s.Stage.Holds() || s.Stage == rollout.Idle && holding(s.state.Nodes) {
		s.enter(rollout.Complete, api.Message{Comment: why})
	}
}

func (s *stages) stopping() string {
	if s.Stage == rollout.Idle && !holding(s.state.Nodes) {
		return "the plan ends: it has touched no node"
	}
	return "the plan runs stage Complete: its nodes are given back, and then it ends"
}

// enter goes on to a stage.
func (s *stages) enter(stage api.Stage, who api.Message) {
	s.staged.enter(stage, s.now(), who)
	s.state.Failure, s.dirty = "", true
	s.roster.seen = time.Time{} // who begins to hold nodes looks first
	s.news.tell(notices.PlanStage, sentence("stage "+string(stage), who.By, who.Comment))
}

// holding tells whether the lockstep holds a node on the plan's behalf, as far as it has said so.
func holding(nodes []rollout.Node) bool {
	for i := range nodes {
		if st := nodes[i].State; st == rollout.Running || st == rollout.Held {
			return true
		}
	}
	return false
}

func (s *stages) end() (api.PlanPhase, string) {
	counts := rollout.Count(s.state.Nodes)
	switch {
	case s.state.Stop != "":
		return s.state.Stop, s.state.StoppedWhy
	case counts.Failures() > 0:
		return api.PlanIncomplete, fmt.Sprintf("%d of %d nodes failed", counts.Failures(), counts.Total)
	case s.Sent == 0:
		return api.PlanCompleted, "no node was held, so that none had to be given back"
	default:
		return api.PlanCompleted, ""
	}
}

// revisionsOfACopy is far more than an earlier run that this one is a copy of can have told since.
const revisionsOfACopy = 1 << 20

// copied has what the plan intends count again: the lockstep knows later revisions, of the run that this one is a copy of. Where
// that had gone further than Idle, it is the lockstep that tells so.
func (s *stages) copied(workflow.Context) error {
	s.Asked = true
	if s.Revision > 0 {
		s.Revision += revisionsOfACopy
		s.Sent = max(s.Sent, 1) // what was sent since is not known
		s.revise(s.now())
	}
	return nil
}
