package checks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/sections"
)

// Errors that trying again does not heal.
var (
	// ErrMisconfigured: the worker's configuration is such that the check or hook cannot be called. Correct it.
	ErrMisconfigured = errors.New("the worker's configuration is wrong")
	// ErrJobFailed: the Job of this key ended and did not complete. It runs again once it is deleted, or under another key.
	ErrJobFailed = errors.New("the Job failed")
)

// Misconfigured is an error of the configuration, with the field that is wrong.
type Misconfigured struct {
	Field string
	Err   error
}

func (e *Misconfigured) Error() string {
	return fmt.Sprintf("%v: %s: %v", ErrMisconfigured, e.Field, e.Err)
}

// Unwrap is ErrMisconfigured, and why.
func (e *Misconfigured) Unwrap() []error { return []error{ErrMisconfigured, e.Err} }

// Verdict is what a check says of a node.
type Verdict struct {
	OK bool `json:"ok"`
	// Message says what was found, in one line and without secrets.
	Message string `json:"message"`
}

// Outcome is what a hook that went well leaves behind.
type Outcome struct {
	Message string `json:"message"`
	// Captured is to be given to the hook's cleanup, as Subject.Captured.
	Captured string `json:"captured,omitempty"`
	// Output is an excerpt of what was answered, where the call asks for it.
	Output string `json:"output,omitempty"`
}

// MaxExcerpt is how much of a text from outside a message shows, in bytes, MaxOutput how much of what a work wrote.
const (
	MaxExcerpt = 200
	MaxOutput  = 900
)

// Runner calls the checks, hooks and works of a configuration.
type Runner struct {
	checks map[string]Checker
	hooks  map[string]hook
	work   map[string]work
	// begun look after works that were begun, by kind.
	begun map[validation.Kind]Beginner
}

// hook is what is called, and what undoes it; each may be nil.
type hook struct {
	plan    validation.Hook
	call    Caller
	cleanup Caller
}

// New makes a runner, and refuses a configuration whose Jobs' manifests cannot be read. The version is the worker's, as
// servers see it.
func New(c Config, client kube.Interface, version string) (*Runner, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	var p sections.Problems
	e := Environment{Kubernetes: client, Agent: "drydock/" + version, NodeAddresses: c.NodeAddresses}
	r := &Runner{checks: map[string]Checker{}, hooks: map[string]hook{}, work: c.readyWork(e, &p)}
	for _, name := range slices.Sorted(maps.Keys(c.Checks)) {
		if c.Checks[name].Undecoded != nil {
			p.Add("checks."+name, "its kind is not known here")
		}
		for _, action := range c.Checks[name].Actions {
			at := c.checkPlace(name, action.Kind)
			checker, err := action.Config.Checker(at, e)
			p.Check(at.Field, err)
			r.checks[name] = checker
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Hooks)) {
		if c.Hooks[name].Undecoded != nil {
			p.Add("hooks."+name, "its kind is not known here")
		}
		r.hooks[name] = c.ready(name, e, &p)
	}
	return r, p.Join()
}

// ready makes a hook ready.
func (c Config) ready(name string, e Environment, p *sections.Problems) hook {
	h := c.Hooks[name]
	out := hook{plan: h.plan(name)}
	var err error
	for _, action := range h.Actions {
		at := c.hookPlace(name, action.Kind)
		out.call, err = action.Config.Caller(at, e)
		p.Check(at.Field, err)
	}
	if h.Cleanup == nil {
		return out
	}
	for _, action := range h.Cleanup.Actions {
		at := c.cleanupPlace(name, action.Kind)
		out.cleanup, err = action.Config.Caller(at, e)
		p.Check(at.Field, err)
	}
	return out
}

// Plan is what a workflow has to know of a hook.
func (r *Runner) Plan(name string) (validation.Hook, error) {
	h, ok := r.hooks[name]
	if !ok {
		return validation.Hook{}, unknown("hooks", name, r.hooks)
	}
	return h.plan, nil
}

// Known refuses names that are not configured; the error joins one line per unknown name.
func (r *Runner) Known(checks []string, hooks validation.Hooks) error {
	var all []error
	for _, name := range checks {
		if _, ok := r.checks[name]; !ok {
			all = append(all, unknown("checks", name, r.checks))
		}
	}
	for _, name := range hooks.Names() {
		if _, err := r.Plan(name); err != nil {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

func unknown[T any](section, name string, have map[string]T) error {
	known := strings.Join(slices.Sorted(maps.Keys(have)), ", ")
	if known == "" {
		known = "none"
	}
	return &Misconfigured{Field: section, Err: fmt.Errorf("there is no %q; the worker knows %s (%s in its configuration)", name, known, section)}
}

// Check asks a check once. A node that is not well, and a server that does not answer, are verdicts; an error is ErrMisconfigured, the API
// server's or the context's. A Job is created at the first call with its key and looked at by the others: the key identifies one validation
// of one maintenance.
func (r *Runner) Check(ctx context.Context, name string, s Subject, key string) (Verdict, error) {
	c, ok := r.checks[name]
	if !ok {
		return Verdict{}, unknown("checks", name, r.checks)
	}
	return c.Check(ctx, Call{Subject: s, Key: key})
}

// concurrentChecks is how many checks are asked at once.
const concurrentChecks = 8

// CheckAll asks checks side by side. A check that could not be asked is not well; the error is the context's.
func (r *Runner) CheckAll(ctx context.Context, names []string, s Subject, key string) ([]validation.Answer, error) {
	answers := make([]validation.Answer, len(names))
	var all errgroup.Group
	all.SetLimit(concurrentChecks)
	for i, name := range names {
		all.Go(func() error {
			verdict, err := r.Check(ctx, name, s, key)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			answers[i] = validation.Answer{Check: name, OK: verdict.OK, Message: verdict.Message}
			if err != nil {
				answers[i].OK, answers[i].Message = false, err.Error()
			}
			return nil
		})
	}
	return answers, all.Wait()
}

// Hook calls a hook, or its cleanup, and returns once it went well: a Job once it is complete. The key identifies the
// call: a repeated one sends the same Idempotency-Key, and finds the Job of the first.
func (r *Runner) Hook(ctx context.Context, name string, cleanup bool, s Subject, key string) (Outcome, error) {
	caller, err := r.caller(name, cleanup)
	if err != nil {
		return Outcome{}, err
	}
	return caller.Call(ctx, Call{Subject: s, Key: key})
}

func (r *Runner) caller(name string, cleanup bool) (Caller, error) {
	h, ok := r.hooks[name]
	switch {
	case !ok:
		return nil, unknown("hooks", name, r.hooks)
	case cleanup && h.cleanup == nil:
		return nil, &Misconfigured{Field: "hooks." + name, Err: errors.New("has no closing")}
	case cleanup:
		return h.cleanup, nil
	case h.call == nil:
		return nil, &Misconfigured{Field: "hooks." + name, Err: errors.New("is a signal, which nobody but the maintenance waits for")}
	default:
		return h.call, nil
	}
}

// AbandonCheck deletes the Job that a check created under a key, if there is one, and with it its pods.
func (r *Runner) AbandonCheck(ctx context.Context, name, key string) error {
	c, ok := r.checks[name]
	if !ok {
		return unknown("checks", name, r.checks)
	}
	return abandon(ctx, c, key)
}

// AbandonHook deletes the Job that a hook created under a key, if there is one, and with it its pods. Call it when a
// hook is given up: an ended context alone may mean that the worker stops and another one goes on with the Job.
func (r *Runner) AbandonHook(ctx context.Context, name string, cleanup bool, key string) error {
	caller, err := r.caller(name, cleanup)
	if err != nil {
		return err
	}
	return abandon(ctx, caller, key)
}

func abandon(ctx context.Context, what any, key string) error {
	if a, ok := what.(Abandoner); ok {
		return a.Abandon(ctx, Call{Key: key})
	}
	return nil
}
