package checks

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/sections"
)

// Validate checks the configuration without reading any file; the error joins one line per wrong field. What is
// undecoded is not looked at.
func (c Config) Validate() error {
	var p sections.Problems
	for _, name := range slices.Sorted(maps.Keys(c.Checks)) {
		p.Check("checks."+name, validation.Name(name))
		c.validateCheck(name, &p)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Hooks)) {
		p.Check("hooks."+name, validation.Name(name))
		c.validateHook(name, &p)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Work)) {
		p.Check("work."+name, validation.Name(name))
		c.validateWork(name, &p)
	}
	if c.Prometheus.Shared != nil {
		c.Prometheus.Shared.Validate("prometheus", &p)
	}
	return p.Join()
}

func (c Config) validateCheck(name string, p *sections.Problems) {
	check := c.Checks[name]
	if check.Undecoded != nil {
		return
	}
	if len(check.Actions) != 1 {
		p.Add("checks."+name, "has %d of %s: want exactly one", len(check.Actions), listed(names(check.kinds.checks())))
	}
	for _, action := range check.Actions {
		action.Config.Validate(c.checkPlace(name, action.Kind), p)
	}
}

func (c Config) validateHook(name string, p *sections.Problems) {
	h, field := c.Hooks[name], "hooks."+name
	if h.Undecoded != nil {
		return
	}
	had, signals := len(h.Actions), h.Signal != nil
	if signals {
		had++
	}
	if had != 1 {
		p.Add(field, "has %d of %s: want exactly one", had, listed(append(names(h.kinds.hooks()), "signal")))
	}
	for _, action := range h.Actions {
		action.Config.Validate(c.hookPlace(name, action.Kind), p)
	}
	blocking := h.Blocking == nil || *h.Blocking
	if signals && len(h.Actions) == 0 && !blocking {
		p.Add(field+".blocking", "a signal that nobody waits for has no meaning: leave blocking out")
	}
	switch h.OnFailure {
	case "", validation.ContinueAnyway:
	case validation.FailMaintenance:
		if !blocking {
			p.Add(field+".onFailure", "%q needs blocking: nobody waits for the failure", h.OnFailure)
		}
	default:
		p.Add(field+".onFailure", "%q is not one of fail, continue", h.OnFailure)
	}
	if h.Cleanup == nil {
		return
	}
	if n := len(h.Cleanup.Actions); n != 1 {
		p.Add(field+".closing", "has %d of %s: want exactly one", n, listed(names(h.Cleanup.kinds.hooks())))
	}
	for _, action := range h.Cleanup.Actions {
		action.Config.Validate(c.cleanupPlace(name, action.Kind), p)
	}
}

// plan is what a workflow has to know of a hook.
func (h Hook) plan(name string) validation.Hook {
	plan := validation.Hook{
		Name: name, Kind: validation.KindSignal, Blocking: h.Blocking == nil || *h.Blocking, Deadline: h.Deadline,
		HasCleanup: h.Cleanup != nil, OnFailure: h.OnFailure,
	}
	if len(h.Actions) > 0 {
		plan.Kind = validation.Kind(h.Actions[0].Kind)
	}
	if plan.Deadline == 0 {
		plan.Deadline = validation.DefaultHookDeadline
	}
	if plan.OnFailure == "" {
		plan.OnFailure = validation.FailMaintenance
		if !plan.Blocking {
			plan.OnFailure = validation.ContinueAnyway
		}
	}
	return plan
}

func (c Config) checkPlace(name, kind string) Place {
	return Place{Field: "checks." + name + "." + kind, Role: RoleCheck, Name: name, Shared: c.shared(kind)}
}

func (c Config) hookPlace(name, kind string) Place {
	return Place{
		Field: "hooks." + name + "." + kind, Role: RoleHook, Name: name, Deadline: c.Hooks[name].plan(name).Deadline, Shared: c.shared(kind),
	}
}

func (c Config) cleanupPlace(name, kind string) Place {
	at := c.hookPlace(name, kind)
	at.Field, at.Role = "hooks."+name+".closing."+kind, RoleCleanup
	return at
}

// shared is the section that all actions of a kind share.
func (c Config) shared(kind string) Shared {
	return map[string]Section{"prometheus": c.Prometheus}[kind].Shared
}

func names[A any](kinds []sections.Kind[A]) []string {
	var all []string
	for _, kind := range kinds {
		all = append(all, kind.Name)
	}
	return all
}

// listed are words as a sentence lists them.
func listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return fmt.Sprintf("%s and %s", strings.Join(words[:last], ", "), words[last])
}
