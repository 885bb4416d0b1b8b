package maintenance

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"errors"
	"fmt"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"time"
)

// reason is why a maintenance does not go on as it would. A higher one comes before a lower one.
type reason int

const (
	goesOn reason = iota
	// slotLost: the scheduler knows of no slot that it holds, and it begins again with the slot.
	slotLost
	// cancelled: somebody took it back before the node was Ready.
	cancelled
	// released: the node is to be given back, whatever its requestors say.
	released
	// nodeGone: there is nothing left to maintain.
	nodeGone
)

// errSlotLost: the maintenance has to begin again with the slot.
var errSlotLost = errors.New("the scheduler knows of no slot that it holds")

// stop is the one thing that ends a maintenance before its time. Every wait looks at it first.
type stop struct {
	*identity
	clock *clock
	// steps is the context of activities that end when the maintenance does; end ends them.
	steps workflow.Context
	end   workflow.CancelFunc

	reason reason
	why    string
}

func newStop(i *identity, c *clock) *stop {
	s := &stop{identity: i, clock: c}
	s.steps, s.end = workflow.WithCancel(c.life)
	return s
}

// ending is the error by which a step ends the maintenance in a given phase.
type ending struct {
	Phase   api.Phase `json:"phase"`
	Kind    string    `json:"kind,omitempty"`
	Message string    `json:"message,omitempty"`
}

func (e ending) Error() string { return e.Message }

// endingOf is how a procedure that returned err ends.
func endingOf(err error) ending {
	end := ending{Phase: api.Completed}
	if err != nil && !errors.As(err, &end) {
		end = ending{Phase: api.Failed, Message: call.Cause(err)}
	}
	return end
}

// cancel undoes a maintenance that is not Ready yet.
func (s *stop) cancel(why string) { s.set(cancelled, why) }

// releaseNode ends the wait for requestors, and for what failed.
func (s *stop) releaseNode(why string) { s.set(released, why) }

// lost ends the maintenance because its node is gone.
func (s *stop) lost(message string) {
	s.set(nodeGone, fmt.Sprintf("node %s: %s", s.spec.Node, message))
}

// loseSlot has the maintenance begin again with the slot.
func (s *stop) loseSlot() { s.set(slotLost, "") }

func (s *stop) set(r reason, why string) {
	if r <= s.reason {
		return
	}
	s.reason, s.why = r, why
	s.end()
}

// startOver forgets that the slot was lost, so that steps can be taken again.
func (s *stop) startOver() {
	if s.reason == slotLost {
		s.reason = goesOn
		s.steps, s.end = workflow.WithCancel(s.clock.life)
	}
}

// stopped tells that the steps were ended.
func (s *stop) stopped() bool { return s.reason != goesOn }

// refuse refuses messages to a maintenance that is being ended.
func (s *stop) refuse() error {
	if s.reason > slotLost {
		return errEnding
	}
	return nil
}

// decided is why the steps were ended, nil while they go on.
func (s *stop) decided() error {
	switch s.reason {
	case goesOn:
		return nil
	case slotLost:
		return errSlotLost
	case nodeGone:
		return ending{Phase: api.NodeGone, Message: s.why}
	default:
		return ending{Phase: api.Cancelled, Message: s.why}
	}
}

// await waits for a condition. What ends the maintenance comes first, also where both come at once.
func (s *stop) await(condition func() bool) error {
	s.clock.await(func() bool { return s.stopped() || condition() })
	return s.decided()
}

// awaitUpTo waits for a condition, at most for a time; ok tells that it came true. What ends the maintenance comes first.
func (s *stop) awaitUpTo(limit time.Duration, summary string, condition func() bool) (ok bool, err error) {
	ok, err = s.clock.awaitUpTo(s.clock.life, limit, summary, func() bool { return s.stopped() || condition() })
	if err == nil {
		err = s.decided()
	}
	return ok, err
}

// stepFailed sorts what went wrong in a step: the maintenance was ended, its slot is not its own, the node is gone, or it
// failed.
func (s *stop) stepFailed(err error) error {
	if over := s.decided(); over != nil {
		return over
	}
	var end ending
	if errors.As(err, &end) || errors.Is(err, errContinue) {
		return err
	}
	var cause *temporal.ApplicationError
	if !errors.As(err, &cause) {
		return ending{Phase: api.Failed, Message: call.Cause(err)}
	}
	switch cause.Type() {
	case api.ErrorSlotNotHeld:
		return errSlotLost
	case api.ErrorNodeGone, api.ErrorNodeReplaced:
		return ending{Phase: api.NodeGone, Message: cause.Message()}
	default:
		return ending{Phase: api.Failed, Kind: cause.Type(), Message: cause.Message()}
	}
}
