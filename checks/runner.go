package checks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"drydock/rules/validation"
)

// Errors that trying again does not heal.
var (
	// ErrMisconfigured: the worker's configuration is such that the check or hook cannot be called. Correct it.
	ErrMisconfigured = errors.New("the worker's configuration is wrong")
	// ErrJobFailed: the Job of this key ended and did not complete. It runs anew once it is deleted, or under another key.
	ErrJobFailed = errors.New("the Job failed")
)

// misconfigured is an error of the configuration, with the field that is wrong.
type misconfigured struct {
	field string
	err   error
}

func (e *misconfigured) Error() string {
	return fmt.Sprintf("%v: %s: %v", ErrMisconfigured, e.field, e.err)
}

func (e *misconfigured) Unwrap() []error { return []error{ErrMisconfigured, e.err} }

// Verdict is what a check says of a node.
type Verdict struct {
	OK bool `json:"ok"`
	// Message says what was found, in one line and without secrets.
	Message string `json:"message"`
}

// Outcome is what a hook that went well leaves behind.
type Outcome struct {
	Message string `json:"message"`
	// Captured is to be given to the hook's closing, as Subject.Captured.
	Captured string `json:"captured,omitempty"`
}

// Runner calls the checks and hooks of a configuration.
type Runner struct {
	compiled
	prometheus Prometheus
	kube       kubernetes.Interface
	agent      string
}

// New makes a runner, and refuses a configuration whose Jobs' manifests cannot be read. The version is the worker's, as
// servers see it.
func New(c Config, kube kubernetes.Interface, version string) (*Runner, error) {
	all, err := compile(c)
	if err != nil {
		return nil, err
	}
	r := &Runner{compiled: all, kube: kube, agent: "drydock/" + version}
	if c.Prometheus != nil {
		r.prometheus = *c.Prometheus
	}
	var p problems
	try := func(field string, a *action) {
		if a != nil && a.job != nil {
			_, err := a.job.manifest()
			p.check(field+".job", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.checks)) {
		one := r.checks[name]
		try("checks."+name, &one.action)
	}
	for _, name := range slices.Sorted(maps.Keys(r.hooks)) {
		one := r.hooks[name]
		try("hooks."+name, &one.action)
		try("hooks."+name+".closing", one.closing)
	}
	return r, errors.Join(p...)
}

// Plan is what a workflow has to know of a hook.
func (r *Runner) Plan(name string) (validation.HookPlan, error) {
	h, ok := r.hooks[name]
	if !ok {
		return validation.HookPlan{}, unknown("hooks", name, r.hooks)
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
	return &misconfigured{field: section, err: fmt.Errorf("there is no %q; the worker knows %s", name, known)}
}

// Check asks a check once. A node that is not well, and a server that does not answer, are verdicts; an error is
// ErrMisconfigured, the API server's or the context's. A Job is created at the first call with its key and looked at by
// the others: the key tells one validation of one maintenance from all others.
func (r *Runner) Check(ctx context.Context, name string, s Subject, key string) (Verdict, error) {
	c, ok := r.checks[name]
	switch {
	case !ok:
		return Verdict{}, unknown("checks", name, r.checks)
	case c.query != nil:
		return c.query.ask(ctx, r.prometheus, r.agent, s)
	case c.job != nil:
		return r.checkJob(ctx, *c.job, jobID{"check", name, key}, s)
	}
	a, err := c.http.send(ctx, r.agent, s, "")
	if err != nil {
		if errors.Is(err, ErrMisconfigured) || ctx.Err() != nil {
			return Verdict{}, err
		}
		return Verdict{Message: err.Error()}, nil
	}
	return c.http.judge(a), nil
}

// together is how many checks are asked at once.
const together = 8

// CheckAll asks checks side by side. A check that could not be asked is not well; the error is the context's.
func (r *Runner) CheckAll(ctx context.Context, names []string, s Subject, key string) ([]validation.Answer, error) {
	answers := make([]validation.Answer, len(names))
	var all errgroup.Group
	all.SetLimit(together)
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

// Hook calls a hook, or its closing, and returns once it went well: a Job once it is complete. The key identifies the
// call: a repeated one sends the same Idempotency-Key, and finds the Job of the first.
func (r *Runner) Hook(ctx context.Context, name string, closing bool, s Subject, key string) (Outcome, error) {
	a, id, err := r.action(name, closing, key)
	if err != nil {
		return Outcome{}, err
	}
	if a.job != nil {
		return r.hookJob(ctx, *a.job, id, s)
	}
	got, err := a.http.send(ctx, r.agent, s, key)
	if err != nil {
		return Outcome{}, err
	}
	verdict := a.http.judge(got)
	if !verdict.OK {
		return Outcome{}, errors.New(verdict.Message)
	}
	captured, err := a.http.captured(got)
	return Outcome{Message: verdict.Message, Captured: captured}, err
}

func (r *Runner) action(name string, closing bool, key string) (action, jobID, error) {
	h, ok := r.hooks[name]
	switch {
	case !ok:
		return action{}, jobID{}, unknown("hooks", name, r.hooks)
	case closing && h.closing == nil:
		return action{}, jobID{}, &misconfigured{field: "hooks." + name, err: errors.New("has no closing")}
	case closing:
		return *h.closing, jobID{"closing", name, key}, nil
	case h.plan.Kind == validation.KindSignal:
		return action{}, jobID{}, &misconfigured{field: "hooks." + name, err: errors.New("is a signal, which nobody but the maintenance waits for")}
	default:
		return h.action, jobID{"hook", name, key}, nil
	}
}

// AbandonCheck deletes the Job that a check created under a key, if there is one, and with it its pods.
func (r *Runner) AbandonCheck(ctx context.Context, name, key string) error {
	c, ok := r.checks[name]
	if !ok {
		return unknown("checks", name, r.checks)
	}
	if c.job == nil {
		return nil
	}
	return r.deleteJob(ctx, *c.job, jobID{"check", name, key})
}

// AbandonHook deletes the Job that a hook created under a key, if there is one, and with it its pods. It is for whoever
// gives up on a hook: an ended context alone may mean that the worker stops and another one goes on with the Job.
func (r *Runner) AbandonHook(ctx context.Context, name string, closing bool, key string) error {
	a, id, err := r.action(name, closing, key)
	if err != nil || a.job == nil {
		return err
	}
	return r.deleteJob(ctx, *a.job, id)
}
