// Package profile runs the state machines of SAP's maintenance-controller: it reads that configuration, says what is wrong with
// it, and decides for all nodes of a cluster what is to be done. It does nothing of that itself.
package profile

import (
	"slices"
	"time"

	"drydock.dev/drydock/rules/profile/chain"
	"drydock.dev/drydock/rules/profile/check"
	"drydock.dev/drydock/rules/profile/notice"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/rules/profile/trigger"
)

// Config is a configuration that was found to be right. It is not changed, and safe for concurrent use.
type Config struct {
	// Requeue is how often nodes are evaluated at least.
	Requeue time.Duration
	// Profiles are those of the file in its order, and the empty default where it has none of that name.
	Profiles []Profile
	// LabelFilter are the labels that maintenance-controller's page shows.
	LabelFilter []string

	checks   map[string]Instance[check.Check]
	triggers map[string]Instance[trigger.Trigger]
	notices  map[string]Instance[Notification]
}

// Profile is one state machine.
type Profile struct {
	Name   string
	stages map[state.State]Stage
}

// Stage is what a profile has for one state.
type Stage struct {
	// Enter are triggers that run when the state is entered, Notify the notifications that are considered in it.
	Enter, Notify []string
	Transitions   []Transition
}

// Transition leads out of a state where its checks hold.
type Transition struct {
	Check    chain.Check
	Triggers []string
	Next     state.State
}

// Instance is a configured check, trigger or notification.
type Instance[T any] struct {
	Name, Kind string
	Of         T
	// path is where it stands in the file, at which place of its list.
	path string
	at   int
	// made reports that its configuration is right. A kind that is not built has none.
	made, notBuilt bool
}

// Notification is a notification with its schedule.
type Notification struct {
	Notice   notice.Notice
	Schedule notice.Schedule
}

// Environment is what a configuration is read with.
type Environment struct {
	// Variable looks a variable up; nil knows none.
	Variable func(name string) (string, bool)
	// AllowUnset only warns of variables without a value: to look at a file elsewhere than where it is used.
	AllowUnset bool
	check.Environment
}

// Load reads a configuration. The error joins one line for everything that is wrong with it; conf.AsProblems takes it apart.
func Load(file []byte, e Environment) (*Config, error) {
	r := read(file, e)
	if err := r.problems.Join(); err != nil {
		return nil, err
	}
	return r.config, nil
}

// Jobs are the Jobs that triggers run, by where the file configures each.
func (c *Config) Jobs() map[string]trigger.Job {
	jobs := map[string]trigger.Job{}
	for _, one := range c.triggers {
		if j, is := one.Of.(trigger.Job); is {
			jobs[one.path] = j
		}
	}
	return jobs
}

// Profile is the one of a name.
func (c *Config) Profile(name string) (Profile, bool) {
	i := slices.IndexFunc(c.Profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return c.Profiles[i], true
}

// Known reports whether there is a profile of a name.
func (c *Config) Known(name string) bool {
	_, known := c.Profile(name)
	return known
}

// Stage is what the profile has for a state.
func (p Profile) Stage(s state.State) Stage { return p.stages[s] }

// Trigger is the trigger of a name.
func (c *Config) Trigger(name string) (Instance[trigger.Trigger], bool) {
	i, there := c.triggers[name]
	return i, there
}

// Notification is the notification of a name.
func (c *Config) Notification(name string) (Instance[Notification], bool) {
	i, there := c.notices[name]
	return i, there
}

// Needs are the facts besides nodes that the checks in any chain look at.
func (c *Config) Needs() check.Needs {
	var all []check.Check
	for _, p := range c.Profiles {
		for _, s := range state.All() {
			for _, t := range p.stages[s].Transitions {
				all = append(all, c.checksOf(t.Check)...)
			}
		}
	}
	return check.NeedsOf(all)
}

func (c *Config) checksOf(of chain.Check) []check.Check {
	var all []check.Check
	for _, name := range of.Names {
		all = append(all, c.checks[name].Of)
	}
	return all
}

// Maintains reports whether a profile has nodes maintained in a state: by a trigger on entering it, or on the way to it.
func (c *Config) Maintains(profile string, in state.State) bool {
	p, known := c.Profile(profile)
	if !known {
		return false
	}
	chains := [][]string{p.stages[in].Enter}
	for _, stage := range p.stages {
		for _, t := range stage.Transitions {
			if t.Next == in {
				chains = append(chains, t.Triggers)
			}
		}
	}
	return slices.ContainsFunc(slices.Concat(chains...), func(name string) bool {
		_, is := c.triggers[name].Of.(trigger.Maintenance)
		return is
	})
}
