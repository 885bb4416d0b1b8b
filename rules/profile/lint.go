package profile

import (
	"cmp"
	"maps"
	"slices"

	"drydock.dev/drydock/rules/profile/check"
	"drydock.dev/drydock/rules/profile/conf"
	"drydock.dev/drydock/rules/profile/state"
)

// Report is what is to be said of a configuration.
type Report struct {
	// Problems keep it from being used.
	Problems []conf.Problem `json:"problems"`
	// Warnings are what is silently ignored, can never happen, or keeps one from going back to maintenance-controller.
	Warnings []conf.Problem `json:"warnings"`
}

// Lint says what is wrong with a configuration, and what is worth a warning.
func Lint(file []byte, e Environment) Report {
	r := read(file, e)
	return Report{Problems: append([]conf.Problem{}, r.problems.List()...), Warnings: append([]conf.Problem{}, r.warnings.List()...)}
}

// ofCheck warns of what a check is configured with.
func (r *reader) ofCheck(config *conf.Object, kind string, made check.Check) {
	switch {
	case made == nil:
	case kind == "condition" && config.IsBool("status"):
		r.warnings.Add(config.At("status"), `write it in quotes, as "True"`, "it is read as true or false in small letters, which no condition has")
	case check.Never(made):
		r.warnings.Add(config.At("end"), "write another time", "a window that ends where it starts is never open")
	case check.BeyondMidnight(made):
		r.warnings.Add(config.Path, "split it at midnight to be able to go back", "maintenance-controller does not read a window like this")
	case check.Idle(made):
		r.warnings.Add(config.At("parallel"), "write 1 or more", "without a Lease to take it never holds")
	}
}

// unused warns of instances that no chain has.
func (r *reader) unused() {
	idle(r, checks, r.config.checks)
	idle(r, triggers, r.config.triggers)
	idle(r, notices, r.config.notices)
}

func idle[T any](r *reader, section string, all map[string]Instance[T]) {
	byPlace := func(a, b Instance[T]) int { return cmp.Compare(a.at, b.at) }
	for _, i := range slices.SortedFunc(maps.Values(all), byPlace) {
		if i.Name != "" && !r.used[section+"/"+i.Name] {
			r.warnings.Add(i.path, "take it away", "no chain has it")
		}
	}
}

// machine warns of what can never happen in a profile.
func (r *reader) machine(path string, p Profile) {
	reached := map[state.State]bool{state.Operational: true}
	for range state.All() {
		for _, s := range state.All() {
			for _, t := range p.stages[s].Transitions {
				reached[t.Next] = reached[t.Next] || reached[s]
			}
		}
	}
	for _, s := range state.All() {
		at, stage := path+"."+string(s), p.stages[s]
		switch used := len(stage.Enter)+len(stage.Notify)+len(stage.Transitions) > 0; {
		case used && !reached[s]:
			r.warnings.Add(at, "write a transition to it, or take it away", "no transition leads to this state from operational")
		case reached[s] && s != state.Operational && len(stage.Transitions) == 0:
			r.warnings.Add(at, "write transitions for it", "no transition leads out of this state")
		}
		r.shadowed(at, s, stage.Transitions)
	}
}

// shadowed warns of transitions that never win, and of triggers that maintenance-controller mixes up.
func (r *reader) shadowed(path string, s state.State, all []Transition) {
	for i, t := range all {
		at := conf.Named(path+".transitions", i, "")
		for j, before := range all[:i] {
			switch {
			case before.Check.String() == t.Check.String() && t.Check.String() != "":
				r.warnings.Add(at, "take it away, or write another check", "transitions[%d] has the same check, and comes first", j)
			case before.Next == t.Next && t.Next != s && !slices.Equal(before.Triggers, t.Triggers):
				r.warnings.Add(at+".trigger", "mind it when you go back",
					"maintenance-controller runs the triggers of transitions[%d], which leads to the same state; here each has its own", j)
			}
		}
		if t.Next == s && i < len(all)-1 {
			r.warnings.Add(at, "put it last", "while it holds, the transitions after it are not looked at, and nothing is done")
		}
	}
}
