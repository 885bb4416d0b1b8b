package checks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/sections"
)

// Works are what can be done to a node that is Ready, by name.
type Works map[string]Work

// UnmarshalJSON reads the names; Config.Decode reads the works themselves.
func (w *Works) UnmarshalJSON(data []byte) error {
	all, err := sections.Decode[Work]("work", data)
	*w = all
	return err
}

func (w Works) decode(kinds Kinds) error {
	return sections.DecodeEach("work", w, func(one *Work) (err error) {
		if one.Undecoded == nil {
			return nil
		}
		one.Actions, err = sections.DecodeKinds(one.Undecoded, &one.WorkSettings, kinds.hooks())
		one.Undecoded, one.kinds = nil, kinds
		return err
	})
}

// Work is what is done to a node that is Ready, in its requestor's place: whatever can be a hook.
type Work struct {
	WorkSettings
	// Actions are the kinds that it has, with their configuration: exactly one in a valid work that is no signal.
	Actions []sections.Chosen[Callable]
	// Undecoded is what was read, until Config.Decode.
	Undecoded sections.Raw

	// kinds are those that it may have, for an error.
	kinds Kinds
}

// WorkSettings are what works of every kind have.
type WorkSettings struct {
	// Signal calls nothing, and waits for somebody's `hook-done` with the work's name: `{}`.
	Signal *struct{} `json:"signal,omitempty"`
	// Deadline is the time since its beginning after which the work has failed. A maintenance whose `readyTimeout` is shorter is refused.
	Deadline period.Duration `json:"deadline,omitzero" jsonschema:"default=30m"`
	// Success is what counts as success: `own` is what the answer or the Job says, `newBootID` that the node was restarted and is Ready again,
	// whatever those say.
	Success validation.Success `json:"success,omitempty" jsonschema:"enum=own,enum=newBootID,default=own"`
}

// UnmarshalJSON keeps the work undecoded.
func (w *Work) UnmarshalJSON(data []byte) error { return w.Undecoded.UnmarshalJSON(data) }

// MarshalJSON writes the work without its secrets.
func (w Work) MarshalJSON() ([]byte, error) {
	if w.Undecoded != nil {
		return w.Undecoded.MarshalJSON()
	}
	return sections.EncodeKinds(w.WorkSettings, w.Actions)
}

// plan is what a workflow has to know of a work.
func (w Work) plan(name string) validation.Work {
	plan := validation.Work{
		Name: name, Kind: validation.KindSignal, Deadline: w.Deadline, NewBootID: w.Success == validation.SuccessByBootID,
	}
	if len(w.Actions) > 0 {
		plan.Kind = validation.Kind(w.Actions[0].Kind)
	}
	if plan.Deadline == 0 {
		plan.Deadline = validation.DefaultWorkDeadline
	}
	return plan
}

func (c Config) workPlace(name, kind string) Place {
	return Place{
		Field: "work." + name + "." + kind, Role: RoleWork, Name: name, Deadline: c.Work[name].plan(name).Deadline, Shared: c.shared(kind),
	}
}

func (c Config) validateWork(name string, p *sections.Problems) {
	w, field := c.Work[name], "work."+name
	if w.Undecoded != nil {
		return
	}
	had, signals := len(w.Actions), w.Signal != nil
	if signals {
		had++
	}
	if had != 1 {
		p.Add(field, "has %d of %s: want exactly one", had, listed(append(names(w.kinds.hooks()), "signal")))
	}
	for _, action := range w.Actions {
		action.Config.Validate(c.workPlace(name, action.Kind), p)
	}
	switch w.Success {
	case "", validation.OwnSuccess:
	case validation.SuccessByBootID:
		if signals {
			p.Add(field+".success", "%q has no meaning with signal: whoever sends it says how the work ended", w.Success)
		}
	default:
		p.Add(field+".success", "%q is not one of %s, %s", w.Success, validation.OwnSuccess, validation.SuccessByBootID)
	}
}

// work is what is done; call is nil of a signal.
type work struct {
	plan validation.Work
	call Caller
}

// readyWork makes all works ready.
func (c Config) readyWork(e Environment, p *sections.Problems) map[string]work {
	all := map[string]work{}
	for _, name := range slices.Sorted(maps.Keys(c.Work)) {
		w := c.Work[name]
		if w.Undecoded != nil {
			p.Add("work."+name, "its kind is not known here")
		}
		one := work{plan: w.plan(name)}
		for _, action := range w.Actions {
			at := c.workPlace(name, action.Kind)
			var err error
			one.call, err = action.Config.Caller(at, e)
			p.Check(at.Field, err)
		}
		all[name] = one
	}
	return all
}

// Work is what a workflow has to know of a work.
func (r *Runner) Work(name string) (validation.Work, error) {
	w, ok := r.work[name]
	if !ok {
		return validation.Work{}, unknown("work", name, r.work)
	}
	return w.plan, nil
}

// WorkCall is one call of a work.
type WorkCall struct {
	// Work is its name, and Kind the kind that it had when the maintenance named it; empty is any.
	Work string
	Kind validation.Kind
	// Begun is the name of what was begun in the cluster, as Begun has it; empty before that is known.
	Begun string
	// Key identifies the call; Subject is what it is about.
	Key     string
	Subject Subject
}

func (r *Runner) worker(c WorkCall) (Caller, error) {
	w, ok := r.work[c.Work]
	switch {
	case !ok:
		return nil, unknown("work", c.Work, r.work)
	case w.call == nil:
		return nil, &Misconfigured{Field: "work." + c.Work, Err: errors.New("is a signal, which nobody but the maintenance waits for")}
	case c.Kind != "" && w.plan.Kind != c.Kind:
		return nil, &Misconfigured{Field: "work." + c.Work, Err: fmt.Errorf(
			"is of kind %s, and was of kind %s when the maintenance named it: start the maintenance anew", w.plan.Kind, c.Kind)}
	default:
		return w.call, nil
	}
}

// beginner returns what starts and follows a work that goes on by itself, nil if the work does not. Work that was
// begun is followed even if the configuration has changed since.
func (r *Runner) beginner(c WorkCall) (Beginner, Call, error) {
	call := Call{Subject: c.Subject, Key: c.Key, Begun: c.Begun, Output: true}
	if b, ok := r.begun[c.Kind]; ok && c.Begun != "" {
		return b, call, nil
	}
	caller, err := r.worker(c)
	if err != nil {
		return nil, call, err
	}
	b, _ := caller.(Beginner)
	return b, call, nil
}

// LookAfter has the runner follow works that were begun, even those that are no longer in the configuration.
func (r *Runner) LookAfter(kinds Kinds, e Environment) {
	r.begun = map[validation.Kind]Beginner{}
	for _, kind := range kinds {
		if startable, ok := kind.Config.(Startable); ok {
			r.begun[validation.Kind(kind.Name)] = startable.Beginner(e)
		}
	}
}

// BeginWork begins a work that goes on by itself, or finds the one of its key. A work that is found keeps its own note. A work that does
// not go on by itself is not begun.
func (r *Runner) BeginWork(ctx context.Context, c WorkCall, note string) (Begun, error) {
	b, call, err := r.beginner(c)
	if err != nil || b == nil {
		return Begun{Note: note}, err
	}
	return b.Begin(ctx, call, note)
}

// FindWork finds a work that was begun, and never begins it; found is false if there is none.
func (r *Runner) FindWork(ctx context.Context, c WorkCall) (begun Begun, found bool, err error) {
	b, call, err := r.beginner(c)
	if err != nil || b == nil {
		return Begun{}, false, err
	}
	return b.Find(ctx, call)
}

// AwaitWork waits for the end of a work that was begun, and never begins it. A work that does not go on by itself is called here; its
// receiver recognizes a repeated call by the key, and an error means that this call failed.
func (r *Runner) AwaitWork(ctx context.Context, c WorkCall) (State, error) {
	b, call, err := r.beginner(c)
	switch {
	case err != nil:
		return State{}, err
	case b != nil:
		return b.Await(ctx, call)
	}
	outcome, err := r.work[c.Work].call.Call(ctx, call)
	return State{Ended: true, OK: true, Message: outcome.Message, Output: outcome.Output}, err
}

// LookAtWork returns the state of a work that goes on by itself; known is false for one that does not.
func (r *Runner) LookAtWork(ctx context.Context, c WorkCall) (state State, known bool, err error) {
	b, call, err := r.beginner(c)
	if err != nil || b == nil {
		return State{}, false, err
	}
	state, err = b.Look(ctx, call)
	return state, true, err
}

// EndWork ends a work that goes on by itself, and returns once nothing of it runs any more.
func (r *Runner) EndWork(ctx context.Context, c WorkCall) error {
	b, call, err := r.beginner(c)
	if err != nil || b == nil {
		return err
	}
	return b.End(ctx, call)
}

// Namespaces are those in which a configuration has Jobs run, sorted, each once.
func (c Config) Namespaces() []string {
	var all []string
	add := func(action any) {
		if in, ok := action.(interface{ In() string }); ok {
			all = append(all, in.In())
		}
	}
	for _, check := range c.Checks {
		for _, action := range check.Actions {
			add(action.Config)
		}
	}
	for _, hook := range c.Hooks {
		for _, action := range hook.Actions {
			add(action.Config)
		}
		if hook.Cleanup != nil {
			for _, action := range hook.Cleanup.Actions {
				add(action.Config)
			}
		}
	}
	for _, work := range c.Work {
		for _, action := range work.Actions {
			add(action.Config)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
