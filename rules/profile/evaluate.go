package profile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/rules/profile/check"
	"drydock.dev/drydock/rules/profile/notice"
	"drydock.dev/drydock/rules/profile/state"
)

// Node is a node to be evaluated.
type Node struct {
	Object *corev1.Node
	// Busy are by profile transitions, and triggers of states that were entered, which are under way.
	Busy map[string]Busy
}

// Busy is what is under way for a profile. Until it ends its checks are not asked.
type Busy struct {
	// To is the state that a transition leads to, or that is being entered.
	To state.State `json:"to"`
	// Enter: the triggers of the state To run, which the profile is in already.
	Enter bool      `json:"enter,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Until is set where nothing is under way, because that has failed a moment ago: it is decided anew from then on. Failed says why.
	Until  time.Time `json:"until,omitzero"`
	Failed string    `json:"failed,omitempty"`
}

// Evaluation is what is decided for a node.
type Evaluation struct {
	Node string `json:"node"`
	// Problem says why nothing can be decided; then nothing else is said.
	Problem string `json:"problem,omitempty"`
	// LogDetails: the node's label asks for more words.
	LogDetails bool `json:"logDetails,omitempty"`
	// Profiles are those of the node's label, in its order.
	Profiles []Evaluated `json:"profiles,omitempty"`
	// Data is the annotation after the evaluation, with the times of the notifications that are due, and without transitions:
	// those write it when they are done. Label is the most crucial state.
	Data  state.Data  `json:"-"`
	Label state.State `json:"label,omitempty"`
	// Changed reports that Data or Label is to be written.
	Changed bool `json:"changed,omitempty"`
}

// Evaluated is what is decided for a profile of a node.
type Evaluated struct {
	Profile string `json:"profile"`
	// Unknown: the configuration does not have it. Its state is kept, and nothing is done.
	Unknown bool `json:"unknown,omitempty"`
	// State is the one that it is in, Since when.
	State state.State `json:"state,omitempty"`
	Since time.Time   `json:"since,omitzero"`
	// Busy is what is under way.
	Busy *Busy `json:"busy,omitempty"`
	// Enter are triggers to run because the state is new. Its transitions are checked once the triggers have run.
	Enter []string `json:"enter,omitempty"`
	// Notify is what is due to be sent.
	Notify []Due `json:"notify,omitempty"`
	// Transitions are those out of the state, in order.
	Transitions []Considered `json:"transitions,omitempty"`
	// Move is the transition to be carried out.
	Move *Move `json:"move,omitempty"`
	// Claims are Leases to take, also where a transition leads to its own state and nothing else is done.
	Claims []check.Claim `json:"claims,omitempty"`
}

// Due is a notification to be sent.
type Due struct {
	Instance string `json:"instance"`
	Why      string `json:"why"`
}

// Move is a transition to be carried out: first its triggers in order, then the annotation by state.Data.Move.
type Move struct {
	// Index is that of the transition in the profile's state.
	Index    int         `json:"index"`
	From     state.State `json:"from"`
	To       state.State `json:"to"`
	Triggers []string    `json:"triggers,omitempty"`
}

// Considered is a transition with what its checks say.
type Considered struct {
	Next  state.State `json:"next"`
	Check string      `json:"check"`
	// Holds: the expression holds. Error says why that is not known, which stops this transition and no other.
	Holds bool   `json:"holds"`
	Error string `json:"error,omitempty"`
	// Refused says why it is not done although it holds.
	Refused string `json:"refused,omitempty"`
	// Chosen: it is the first that holds.
	Chosen bool `json:"chosen,omitempty"`
	// Checks are those of the expression, in order.
	Checks []Outcome `json:"checks"`
}

// Failing returns the checks that failed to find out whether they hold, each once, in order.
func (p Evaluated) Failing() []Outcome {
	var all []Outcome
	for _, t := range p.Transitions {
		for _, o := range t.Checks {
			if o.Error != "" && !slices.ContainsFunc(all, func(before Outcome) bool { return before.Instance == o.Instance }) {
				all = append(all, o)
			}
		}
	}
	return all
}

// Outcome is what one check says.
type Outcome struct {
	Instance string `json:"instance"`
	Kind     string `json:"kind"`
	check.Result
}

// evaluator evaluates one node. What it grants, the view remembers.
type evaluator struct {
	config *Config
	node   Node
	member *check.Member
	view   *check.View
	now    time.Time
	// before is the data that the evaluation began with, data what becomes of it.
	before, data state.Data
}

func (e *evaluator) run() Evaluation {
	labels := e.node.Object.Labels
	result := Evaluation{Node: e.node.Object.Name, LogDetails: state.LogsDetails(labels)}
	for _, name := range state.Profiles(labels) {
		p, known := e.config.Profile(name)
		if !known {
			kept := e.data.Profiles[name]
			result.Profiles = append(result.Profiles, Evaluated{Profile: name, Unknown: true, State: kept.Current, Since: kept.Transition})
			continue
		}
		result.Profiles = append(result.Profiles, e.profile(p))
	}
	result.Data, result.Label = e.data, e.config.Label(labels, e.data)
	return result
}

// Label is the most crucial state of the profiles in a node's label that the configuration has.
func (c *Config) Label(labels map[string]string, data state.Data) state.State {
	var states []state.State
	for _, name := range state.Profiles(labels) {
		if c.Known(name) {
			states = append(states, data.Profiles[name].Current)
		}
	}
	return state.Crucial(states)
}

func (e *evaluator) profile(p Profile) Evaluated {
	is := e.data.Profiles[p.Name]
	stage := p.stages[is.Current]
	result := Evaluated{Profile: p.Name, State: is.Current, Since: is.Transition, Notify: e.due(stage, is)}
	if busy, under := e.node.Busy[p.Name]; under {
		result.Busy = &busy
		if busy.Until.IsZero() || busy.Enter {
			return result
		}
	}
	if is.Previous != is.Current && len(stage.Enter) > 0 {
		result.Enter = stage.Enter
		return result
	}
	e.consider(&result, stage)
	is.Previous = is.Current
	e.data.Profiles[p.Name] = is
	return result
}

// due are the notifications of a state that are to be sent, and notes that they are.
func (e *evaluator) due(stage Stage, is state.Profile) []Due {
	var all []Due
	for _, name := range stage.Notify {
		c := notice.Case{Now: e.now, Profile: is, Last: e.data.Notifications[name], Before: e.before.Notifications[name]}
		if why, due := e.config.notices[name].Of.Schedule.Due(c); due && !slices.ContainsFunc(all, func(d Due) bool { return d.Instance == name }) {
			all = append(all, Due{Instance: name, Why: why})
			e.data.Notifications[name] = e.now.UTC()
		}
	}
	return all
}

// consider asks all checks of all transitions, and chooses the first that holds.
func (e *evaluator) consider(result *Evaluated, stage Stage) {
	c := check.Case{Now: e.now, Node: e.node.Object, Profile: result.Profile, State: result.State, Since: result.Since, View: e.view}
	asked := map[string]Outcome{}
	chosen := -1
	for i, t := range stage.Transitions {
		considered := e.ask(c, t, asked)
		if considered.Holds && t.Next == state.Maintenance && t.Next != result.State {
			considered.Refused = e.taken()
		}
		if considered.Holds && considered.Refused == "" && result.Busy != nil && result.Busy.To == t.Next {
			considered.Refused = "it was not carried out a moment ago: " + result.Busy.Failed
		}
		if considered.Holds && considered.Refused == "" && chosen < 0 {
			chosen, considered.Chosen = i, true
		}
		result.Transitions = append(result.Transitions, considered)
	}
	if chosen < 0 {
		return
	}
	t := stage.Transitions[chosen]
	result.Claims = check.Claims(c, e.config.checksOf(t.Check))
	e.view.Take(result.Claims)
	if t.Next == result.State {
		return
	}
	result.Move = &Move{Index: chosen, From: result.State, To: t.Next, Triggers: t.Triggers}
	if t.Next == state.Maintenance {
		e.view.Grant(e.node.Object.Name, result.Profile)
	}
}

// ask asks the checks of a transition, each once for a profile.
func (e *evaluator) ask(c check.Case, t Transition, asked map[string]Outcome) Considered {
	considered := Considered{Next: t.Next, Check: t.Check.String()}
	var failed []string
	for _, name := range t.Check.Names {
		o, known := asked[name]
		if !known {
			i := e.config.checks[name]
			o = Outcome{Instance: name, Kind: i.Kind, Result: i.Of.Hold(c)}
			asked[name] = o
		}
		if o.Error != "" {
			failed = append(failed, name)
		}
		considered.Checks = append(considered.Checks, o)
	}
	if len(failed) > 0 {
		considered.Error = "failed check instances: " + strings.Join(failed, ", ")
		return considered
	}
	considered.Holds = t.Check.Holds(func(name string) bool { return asked[name].Holds })
	return considered
}

// taken says which profile keeps the others of the node out of maintenance. One that the configuration no longer has counts
// too: what it began with the node is not over.
func (e *evaluator) taken() string {
	if in := e.member.In(state.Maintenance); len(in) > 0 {
		return fmt.Sprintf("profile %s has the node in maintenance", in[0])
	}
	if entering := e.member.Entering(); len(entering) > 0 {
		return fmt.Sprintf("profile %s takes the node into maintenance", entering[0])
	}
	return ""
}

// Parameters are what the texts of notifications of a node speak of.
func (c *Config) Parameters(node *corev1.Node, profile string, data state.Data) notice.Parameters {
	is := data.Profiles[profile]
	return notice.Parameters{
		Node: node, State: string(is.Current), Profile: notice.Profile{Name: profile, Current: is.Current, Last: is.Previous},
		InMaintenance:  c.Label(node.Labels, data) == state.Maintenance,
		LastTransition: is.Transition, LogDetails: state.LogsDetails(node.Labels),
	}
}
