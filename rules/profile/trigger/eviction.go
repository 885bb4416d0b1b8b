package trigger

import (
	"fmt"
	"time"

	"drydock.dev/drydock/rules/profile/conf"
)

// Action is what an eviction does.
type Action string

// The actions.
const (
	Cordon   Action = "cordon"
	Uncordon Action = "uncordon"
	Drain    Action = "drain"
)

// defaultTimeout is that of both timeouts.
const defaultTimeout = 10 * time.Minute

func readEviction(o *conf.Object) Trigger {
	e := Eviction{
		Action: Action(o.Required("action", "cordon, uncordon or drain")), Force: o.Bool("forceEviction"),
		EvictionTimeout: o.Duration("evictionTimeout", defaultTimeout), DeletionTimeout: o.Duration("deletionTimeout", defaultTimeout),
	}
	switch e.Action {
	case Cordon, Uncordon, Drain, "":
	default:
		o.Refuse("action", "write cordon, uncordon or drain", "%.40q is not an action", e.Action)
	}
	return e
}

// Eviction makes the node unschedulable or schedulable, or drains it.
type Eviction struct {
	Action Action
	// Force deletes pods that are still there after their grace period.
	Force bool
	// EvictionTimeout and DeletionTimeout are read, and mean nothing: a drain goes on until the node is empty.
	EvictionTimeout, DeletionTimeout time.Duration
}

// Describe is part of Trigger.
func (e Eviction) Describe() string {
	if e.Action == Drain && e.Force {
		return "drain the node, and delete pods that do not end in time"
	}
	return fmt.Sprintf("%s the node", e.Action)
}
