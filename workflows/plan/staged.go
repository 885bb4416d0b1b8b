package plan

import (
	"slices"
	"time"

	"drydock/api"
	"drydock/rules/drainplan"
	"drydock/rules/rollout"
)

// staged is what a plan whose nodes go through stages together hands to its next run, besides the nodes.
type staged struct {
	Stage api.Stage `json:"stage"`
	// Begun are the stages that have begun. Taken counts those of them in which the lockstep has taken an intent: where it
	// refuses one, the plan goes back there.
	Begun []api.StageBegun `json:"begun,omitempty"`
	Taken int              `json:"taken,omitempty"`
	// Revision counts the intents, Sent and Answered are the latest that was sent and that was answered. Tries counts how often
	// it was sent, and Next is when to send it again.
	Revision int       `json:"revision,omitempty"`
	Sent     int       `json:"sent,omitempty"`
	Answered int       `json:"answered,omitempty"`
	Tries    int       `json:"tries,omitempty"`
	Next     time.Time `json:"next,omitzero"`
	// Asked: the lockstep wants to hear of the plan, in Idle too.
	Asked bool `json:"asked,omitempty"`
	// Tier is the one that the plan is at, and Released: none of its nodes is held any more.
	Tier     int         `json:"tier,omitempty"`
	Released bool        `json:"released,omitempty"`
	Drained  api.Drained `json:"drained,omitzero"`
	// Forwarded is what was last told of nodes on which older plans had gone further.
	Forwarded string `json:"forwarded,omitempty"`
	// Relook: the nodes are listed anew once the lockstep knows that one has left.
	Relook bool `json:"relook,omitempty"`
	// Selection is how the plan chooses its nodes since that was changed.
	Selection *rollout.Selection `json:"selection,omitempty"`
	// Targets are those that nodes have: few, for very many nodes.
	Targets [][]drainplan.Entry `json:"targets,omitempty"`
}

// begin is a plan that begins in a stage.
func begin(stage api.Stage, at time.Time) *staged {
	s := &staged{Stage: rollout.Idle}
	if stage == rollout.Idle {
		s.Begun = []api.StageBegun{{Stage: rollout.Idle, At: at}}
		s.Taken = 1
		return s
	}
	s.enter(stage, at, api.Message{})
	return s
}

// enter goes on to a stage, and revises what the plan intends.
func (s *staged) enter(stage api.Stage, at time.Time, who api.Message) {
	for _, begun := range rollout.Started(s.Stage, stage) {
		s.Begun = append(s.Begun, api.StageBegun{Stage: begun, At: at, By: who.By, Comment: who.Comment})
	}
	s.Stage = stage
	s.revise(at)
}

// back returns to the stage in which the lockstep has last taken an intent. In Idle it holds nothing of the plan.
func (s *staged) back(at time.Time) {
	s.Begun = s.Begun[:s.Taken]
	if s.Stage = rollout.Idle; s.Taken > 0 {
		s.Stage = s.Begun[s.Taken-1].Stage
	}
	if s.Taken == 0 {
		s.Begun = append(s.Begun, api.StageBegun{Stage: rollout.Idle, At: at})
		s.Taken = 1
	}
	s.revise(at)
}

// revise makes a new intent, to be sent at once.
func (s *staged) revise(at time.Time) { s.Revision, s.Tries, s.Next = s.Revision+1, 0, at }

const (
	// repeatSoon and repeatLate are the first pause before an intent is repeated that is not answered, and the longest.
	repeatSoon = 5 * time.Second
	repeatLate = 2 * time.Minute
	// repeatEvery is the pause between two intents that are answered: a lockstep that has lost its state hears of the plan.
	repeatEvery = 5 * time.Minute
)

// sent notes that the intent of a revision was sent, and when to send it again.
func (s *staged) sent(revision int, at time.Time) {
	if s.Sent = revision; revision != s.Revision {
		return
	}
	pause := repeatEvery
	if s.Answered < s.Revision {
		pause = min(repeatSoon<<min(s.Tries, 10), repeatLate)
		s.Tries++
	}
	s.Next = at.Add(pause)
}

// answered notes that the lockstep has taken or refused the present intent.
func (s *staged) answered(at time.Time) {
	if s.Answered != s.Revision {
		s.Answered, s.Tries, s.Next = s.Revision, 0, at.Add(repeatEvery)
	}
}

const (
	// maxTargetSets bounds the targets that are kept, and maxTargetText what they take together, in bytes; targetOverhead is
	// what an entry takes besides its selector.
	maxTargetSets  = 200
	maxTargetText  = 256 << 10
	targetOverhead = 70
)

// targets are those of a place, none of 0.
func (s *staged) targets(place int) []drainplan.Entry {
	if place < 1 || place > len(s.Targets) {
		return nil
	}
	return s.Targets[place-1]
}

// keep is where targets are kept, counted from 1; 0 where there are none, or no room.
func (s *staged) keep(targets []drainplan.Entry, nodes []rollout.Node) int {
	if len(targets) == 0 {
		return 0
	}
	if i := s.find(targets); i > 0 {
		return i
	}
	if !s.room(targets) {
		s.sweep(nodes)
	}
	if !s.room(targets) {
		return 0
	}
	s.Targets = append(s.Targets, targets)
	return len(s.Targets)
}

func (s *staged) find(targets []drainplan.Entry) int {
	return 1 + slices.IndexFunc(s.Targets, func(kept []drainplan.Entry) bool { return slices.Equal(kept, targets) })
}

func (s *staged) room(targets []drainplan.Entry) bool {
	size := textOf(targets)
	for _, kept := range s.Targets {
		size += textOf(kept)
	}
	return len(s.Targets) < maxTargetSets && size <= maxTargetText
}

// textOf is about how long targets are in JSON.
func textOf(targets []drainplan.Entry) int {
	size := 0
	for _, e := range targets {
		size += targetOverhead + len(e.PodSelector)
	}
	return size
}

// sweep forgets targets that no node has any more.
func (s *staged) sweep(nodes []rollout.Node) {
	places := make([]int, len(s.Targets)+1)
	var kept [][]drainplan.Entry
	for i := range nodes {
		n := nodes[i].Standing
		if n == nil || n.Targets < 1 || n.Targets > len(s.Targets) {
			continue
		}
		if places[n.Targets] == 0 {
			kept = append(kept, s.Targets[n.Targets-1])
			places[n.Targets] = len(kept)
		}
		n.Targets = places[n.Targets]
	}
	s.Targets = kept
}
