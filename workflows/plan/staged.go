package plan

import (
	"slices"
	"strconv"
	"time"

	"drydock.dev/drydock/activities/heartbeat"
	planactivity "drydock.dev/drydock/activities/plan"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
)

// staged is how far a plan is whose nodes go through stages together (KEP-4212). It touches no node: it sends its intent to the Lockstep of all
// plans, and receives from it how far each node is.
type staged struct {
	Stage api.Stage `json:"stage"`
	// Begun are the stages that have begun. Taken counts those of them in which the lockstep has taken an intent: where it
	// refuses one, the plan goes back there.
	Begun []api.StageBegun `json:"begun,omitempty"`
	Taken int              `json:"taken,omitempty"`
	// Revision counts the intents. Answered is the latest that was answered, and Refused the latest that was refused, and why. Tries counts how
	// often the present one was sent. Sent: the lockstep may hold nodes for the plan.
	Revision   int    `json:"revision,omitempty"`
	Sent       bool   `json:"sent,omitempty"`
	Answered   int    `json:"answered,omitempty"`
	Refused    int    `json:"refused,omitempty"`
	RefusedWhy string `json:"refusedWhy,omitempty"`
	Tries      int    `json:"tries,omitempty"`
	// Set is the revision for which the latest set-stage waits.
	Set int `json:"set,omitempty"`
	// Asked counts the questions of the lockstep for the present intent, Replied those that were answered: in Idle too.
	Asked   int `json:"asked,omitempty"`
	Replied int `json:"replied,omitempty"`
	// Tier is the one that the plan is at, and Released: none of its nodes is held any more.
	Tier     int         `json:"tier,omitempty"`
	Released bool        `json:"released,omitempty"`
	Drained  api.Drained `json:"drained,omitzero"`
	// Forwarded is what the lockstep last said of nodes on which older plans had gone further, WaitsFor which nodes the drained ones wait for.
	Forwarded string `json:"forwarded,omitempty"`
	WaitsFor  string `json:"waitsFor,omitempty"`
	// Relook: the nodes are listed anew once the lockstep knows that one has left.
	Relook bool `json:"relook,omitempty"`
	// Selection is how the plan chooses its nodes since that was changed.
	Selection *plan.Selection `json:"selection,omitempty"`
	// Targets are those that nodes have: few, for very many nodes.
	Targets [][]drainplan.Entry `json:"targets,omitempty"`
}

func begin(stage api.Stage, at time.Time) *staged {
	if stage == plan.Idle {
		return &staged{Stage: stage, Begun: []api.StageBegun{{Stage: stage, At: at}}, Taken: 1}
	}
	s := &staged{Stage: plan.Idle}
	s.enter(stage, at, api.Message{})
	return s
}

// enter goes on to a stage, and revises what the plan intends.
func (s *staged) enter(stage api.Stage, at time.Time, who api.Message) {
	for _, begun := range plan.Started(s.Stage, stage) {
		s.Begun = append(s.Begun, api.StageBegun{Stage: begun, At: at, By: who.By, Comment: who.Comment})
	}
	s.Stage = stage
	s.revise()
}

// back returns to the stage in which the lockstep has last taken an intent. In Idle it holds nothing of the plan.
func (s *staged) back(at time.Time) {
	if s.Taken == 0 {
		s.Begun, s.Taken = []api.StageBegun{{Stage: plan.Idle, At: at}}, 1
	}
	s.Begun = s.Begun[:s.Taken]
	s.Stage = s.Begun[s.Taken-1].Stage
	s.revise()
}

func (s *staged) revise() { s.Revision, s.Tries = s.Revision+1, 0 }

// revisionsOfACopy is far more than the run that was reset can have sent since.
const revisionsOfACopy = 1 << 20

const (
	// repeatSoon and repeatLate are the first pause before an intent is repeated that is not answered, and the longest.
	repeatSoon = 5 * time.Second
	repeatLate = 2 * time.Minute
	// repeatOnce and repeatEvery are the pauses before an intent is repeated that was answered: once for a lockstep that began anew just
	// then and did not find the plan, then for one that somebody has deleted. One that was terminated is begun anew by a worker.
	repeatOnce  = 5 * time.Minute
	repeatEvery = time.Hour
)

// stage decides about a plan whose nodes go through stages together: it watches the nodes, and sends the lockstep its intents.
func (p *maintenancePlan) stage(t controller.Turn, d *controller.Decision) {
	s := p.Staged
	if !p.Known {
		d.Effects = append(d.Effects, p.find(t.Now))
	}
	switch {
	case s.Stage == plan.Idle && p.Stop != "", s.Stage == plan.Complete && (s.Released || !s.Sent && !holding(p.Nodes)):
		why := ""
		if !s.Sent {
			why = "no node was held, so that none had to be given back"
		}
		p.finish(why, t.Now)
		return
	case s.Stage.Holds() && s.Relook && s.Answered == s.Revision:
		s.Relook, p.Digest = false, matchAgain
	}
	if p.Digest == "" || s.Stage.Holds() && p.ListedAt.IsZero() {
		d.Effects = append(d.Effects, p.list()) // who begins to hold nodes looks first
	} else {
		if p.Digest == matchAgain && s.Stage == plan.Idle { // they are chosen otherwise
			d.Effects = append(d.Effects, p.list())
		}
		if s.Stage.Holds() {
			d.Watches = append(d.Watches, controller.Watch{
				Key: controller.Key{Kind: watchNodes}, Summary: "wait for other nodes to match plan " + p.name,
				Call:  controller.Call{Func: call.Plans.AwaitPlanNodes, Heartbeat: heartbeat.WatchTimeout},
				Input: p.wanted(),
			})
		}
		if s.Stage != plan.Idle || s.Asked > s.Replied {
			d.Effects = append(d.Effects, p.intent(t.Now))
			s.Sent = s.Sent || s.Stage != plan.Idle
		}
	}
	p.judge(t.Now)
	p.WaitingFor, p.Until = p.waitsFor(), time.Time{}
}

// intentKey is that of the present intent, which another one does not wait for the repetition of.
func (s *staged) intentKey() controller.Key {
	return controller.Key{Kind: sendIntent, Of: strconv.Itoa(s.Revision) + "/" + strconv.Itoa(s.Asked)}
}

// intent sends the lockstep what the plan intends. In Idle that is that nothing is held, and is sent only where the lockstep asks.
func (p *maintenancePlan) intent(now time.Time) controller.Effect {
	s := p.Staged
	intent := api.PlanIntent{Name: p.name, RunID: p.Info.Run, CreatedAt: p.CreatedAt, Revision: max(s.Revision, 1), Stage: s.Stage}
	if s.Stage != plan.Idle {
		intent.Tiers = p.tiers.Entries()
		intent.Maintenance, _ = p.spec.SharedInput(now) // it was decoded
		for i := range p.Nodes {
			if n := &p.Nodes[i]; n.State != plan.Gone { // those that it wants, or has and has not given back
				intent.Nodes = append(intent.Nodes, n.Name)
			}
		}
	}
	return controller.Activity{
		Meta:  controller.Meta{Key: s.intentKey(), Summary: "send the intent of plan " + p.name + ": " + string(s.Stage), AtOnce: 1},
		Call:  controller.Call{Func: call.Plans.SendIntent, Pause: time.Minute},
		Input: planactivity.IntentInput{Lockstep: api.LockstepID(p.Info.Cluster), Intent: intent},
	}
}

// intentSent takes that the lockstep has received an intent, which is repeated until it is answered, and then every hour.
func (p *maintenancePlan) intentSent(o controller.Outcome, now time.Time) {
	s := p.Staged
	if o.Err != nil {
		return
	}
	if o.Stale || o.Key != s.intentKey() {
		p.ClearBackoff(o.Key)
		return
	}
	s.Replied = s.Asked
	pause := repeatEvery
	if s.Answered < s.Revision {
		pause = min(repeatSoon<<min(s.Tries, 10), repeatLate)
		s.Tries++
	}
	p.Rest(o.Key, pause, now)
}

func (p *maintenancePlan) enterStage(stage api.Stage, who api.Message, now time.Time) {
	p.Staged.enter(stage, now, who)
	p.Failure, p.ListedAt = "", time.Time{}
	p.announce(notices.PlanStage, sentence("stage "+string(stage), who), now)
}

// holding reports whether the lockstep holds a node on the plan's behalf, as far as it has said so.
func holding(nodes []plan.Node) bool {
	return slices.ContainsFunc(nodes, func(n plan.Node) bool { return n.State == plan.Running || n.State == plan.Held })
}

const (
	// maxTargetSets bounds the targets that are kept, and maxTargetText what they take together, in bytes.
	maxTargetSets = 200
	maxTargetText = 256 << 10
)

// targets are those of a place, none of 0.
func (s *staged) targets(place int) []drainplan.Entry {
	if place < 1 || place > len(s.Targets) {
		return nil
	}
	return s.Targets[place-1]
}

// keep is where targets are kept, counted from 1; 0 where there are none, or no room.
func (s *staged) keep(targets []drainplan.Entry, nodes []plan.Node) int {
	if len(targets) == 0 {
		return 0
	}
	for range 2 {
		size := drainplan.Size(targets)
		for i, kept := range s.Targets {
			if slices.Equal(kept, targets) {
				return i + 1
			}
			size += drainplan.Size(kept)
		}
		if len(s.Targets) < maxTargetSets && size <= maxTargetText {
			s.Targets = append(s.Targets, targets)
			return len(s.Targets)
		}
		s.sweep(nodes)
	}
	return 0
}

// sweep forgets targets that no node has any more.
func (s *staged) sweep(nodes []plan.Node) {
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
