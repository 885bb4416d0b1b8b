package checks

import (
	"context"

	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/sections"
)

// Kind is a kind of action: a package below this one.
type Kind struct {
	// Name is the field of a check or hook that has its configuration.
	Name string
	// Config is an empty configuration of one action. Where it is Checkable the kind is one of checks, where it is Callable one of
	// hooks, and where it is Startable works of the kind go on by themselves.
	Config Action
	// Shared is an empty configuration that all actions of the kind share; nil if there is none.
	Shared Shared
}

// Kinds are the kinds of checks and hooks that there may be, in the order in which errors list them.
type Kinds []Kind

// Action is the configuration of one kind of check or hook.
type Action interface {
	// Validate adds what is wrong, below the place's field, without reading any file.
	Validate(at Place, p *sections.Problems)
}

// Checkable is what can be a check.
type Checkable interface {
	Action
	// Checker makes a valid check ready. It reads what must not be found wrong only when a node needs it.
	Checker(at Place, e Environment) (Checker, error)
}

// Callable is what can be a hook or a cleanup.
type Callable interface {
	Action
	// Caller is to a hook what Checker is to a check.
	Caller(at Place, e Environment) (Caller, error)
}

// Startable is an action that goes on by itself once it was begun.
type Startable interface {
	Action
	// Beginner looks after works that were begun, by their names alone.
	Beginner(e Environment) Beginner
}

// Shared is the configuration that all actions of one kind share.
type Shared interface {
	Validate(field string, p *sections.Problems)
}

// Role is what an action is for.
type Role string

// The roles. They are part of the names of Jobs, by which a worker finds those that another one has begun.
const (
	RoleCheck   Role = "check"
	RoleHook    Role = "hook"
	RoleCleanup Role = "closing"
	RoleWork    Role = "work"
	RoleTrigger Role = "trigger"
)

// Place is where an action stands in the configuration.
type Place struct {
	// Field is the action's, such as "checks.probe.http".
	Field string
	Role  Role
	// Name is that of the check, hook or work.
	Name string
	// Deadline is the hook's or the work's; 0 for a check.
	Deadline period.Duration
	// Shared is what all actions of the kind share; nil if it is not configured.
	Shared Shared
}

// Environment is what actions get from the worker.
type Environment struct {
	Kubernetes kube.Interface
	// Agent is the User-Agent of requests.
	Agent string
	// NodeAddresses are where requests may go whose host a node decides.
	NodeAddresses outbound.NodeAddresses
}

// Call is about whom an action is called, and which call it is.
type Call struct {
	Subject Subject
	// Key identifies one validation, hook or work of one maintenance. A repeated call has the key of the first.
	Key string
	// Begun is the name of what was begun for the call, where that is known: then it is looked up by that name.
	Begun string
	// Output: the outcome is to have an excerpt of what was answered.
	Output bool
}

// Checker asks a check once. A node that is not well, and a server that does not answer, are verdicts; an error is
// ErrMisconfigured, the API server's or the context's.
type Checker interface {
	Check(ctx context.Context, c Call) (Verdict, error)
}

// Caller calls a hook or a cleanup, and returns once it went well.
type Caller interface {
	Call(ctx context.Context, c Call) (Outcome, error)
}

// Beginner is a Caller whose call goes on by itself once it is begun, as a Job does: it is begun once, and from then on only
// looked at.
type Beginner interface {
	Caller
	// Begin begins a call, or finds the one that was begun with its key. The note is kept with what is begun, and is the
	// first one's.
	Begin(ctx context.Context, c Call, note string) (Begun, error)
	// Find finds a call that was begun. Look returns its state; neither begins it. Await is a Look that waits for the end.
	Find(ctx context.Context, c Call) (begun Begun, found bool, err error)
	Look(ctx context.Context, c Call) (State, error)
	Await(ctx context.Context, c Call) (State, error)
	// End ends the call, and returns once nothing of it runs any more, or ctx ends.
	End(ctx context.Context, c Call) error
}

// Begun is a call that goes on by itself: its name in the cluster, and what was noted when it was begun.
type Begun struct {
	Name, Note string
}

// State is how a call stands that goes on by itself.
type State struct {
	// Ended: it goes on no more; OK: it went well.
	Ended, OK bool
	// Message says that in words, and Output is an excerpt of what it wrote. Both are one line, without secrets that are
	// known.
	Message, Output string
}

// Abandoner is a Checker or Caller that leaves something running, which somebody who gives up on it can end.
type Abandoner interface {
	Abandon(ctx context.Context, c Call) error
}

func (k Kinds) checks() []sections.Kind[Checkable] { return of[Checkable](k) }

func (k Kinds) hooks() []sections.Kind[Callable] { return of[Callable](k) }

// of are the kinds that can be something.
func of[A Action](kinds Kinds) []sections.Kind[A] {
	var all []sections.Kind[A]
	for _, kind := range kinds {
		if config, can := kind.Config.(A); can {
			all = append(all, sections.Kind[A]{Name: kind.Name, Config: config})
		}
	}
	return all
}
