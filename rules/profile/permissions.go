package profile

import (
	"encoding/json"
	"maps"
	"slices"

	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/profile/notice"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/rules/profile/trigger"
	"drydock.dev/drydock/rules/spec"
)

// Permissions are those that the profiles need, each once: to write on nodes, for the leases of checks and threads, and for the triggers
// of any chain. Defaults are the worker's, of the maintenances that triggers begin.
func (c *Config) Permissions(defaults []byte) []preflight.Need {
	triggers, notices := c.used()
	facts := c.Needs()
	needs := preflight.Needs(spec.Drain{}, facts.Pods)
	leases := map[string]bool{}
	for _, l := range facts.Leases {
		leases[l.Namespace] = true
	}
	for _, name := range notices {
		if thread, is := c.notices[name].Of.Notice.(notice.SlackThread); is {
			leases[thread.LeaseNamespace] = true
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(leases)) {
		needs = append(needs, preflight.LeaseNeeds(namespace, "get", "list", "create", "patch")...)
	}
	for _, name := range triggers {
		needs = append(needs, needsOf(c.triggers[name].Of, defaults)...)
	}
	return preflight.Required(needs)
}

// needsOf are the permissions that a trigger needs.
func needsOf(t trigger.Trigger, defaults []byte) []preflight.Need {
	switch t := t.(type) {
	case trigger.Eviction:
		drain := spec.Drain{Mode: spec.ModeEvict}
		if t.Force {
			drain.Escalation = []spec.Rung{{Do: spec.Kill}}
		}
		if t.Action == trigger.Drain {
			return preflight.Needs(drain, false)
		}
	case trigger.Job:
		return preflight.JobNeeds(t.Namespace)
	case trigger.Maintenance:
		fields := map[string]json.RawMessage{}
		_ = json.Unmarshal(t.Input, &fields) // an object, or nothing
		fields["node"] = json.RawMessage(`"any"`)
		input, _ := json.Marshal(fields)                        // they were read from JSON
		if m, err := spec.Decode(input, defaults); err == nil { // what cannot be read fails when it is begun, which says why
			return preflight.Needs(m.Judged(), m.WaitForPodCompletion != nil)
		}
	}
	return nil
}

// used are the names of the triggers and notifications that profiles use, in order.
func (c *Config) used() (triggers, notices []string) {
	for _, p := range c.Profiles {
		for _, s := range state.All() {
			triggers, notices = append(triggers, p.stages[s].Enter...), append(notices, p.stages[s].Notify...)
			for _, t := range p.stages[s].Transitions {
				triggers = append(triggers, t.Triggers...)
			}
		}
	}
	slices.Sort(triggers)
	slices.Sort(notices)
	return slices.Compact(triggers), slices.Compact(notices)
}
