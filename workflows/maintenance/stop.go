package maintenance

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
)

// stop is what ends a maintenance before its time: somebody cancelled it, its node is to be released whatever the
// requestor says, or the node is gone.
type stop struct {
	*identity
	// steps is the context of the steps until the node is Ready; end ends them. What comes after Ready, and all undoing,
	// runs where no cancellation reaches.
	steps workflow.Context
	end   workflow.CancelFunc

	cancelled string
	release   bool
	nodeGone  string
}

// ending is the error by which a step ends the maintenance in a given phase.
type ending struct {
	phase   api.Phase
	kind    string
	message string
}

func (e ending) Error() string { return e.message }

// endingOf is how a procedure that returned err ends.
func endingOf(err error) ending {
	end := ending{phase: api.Completed}
	if err != nil && !errors.As(err, &end) {
		end = ending{phase: api.Failed, message: err.Error()}
	}
	return end
}

// cancel undoes a maintenance that is not Ready yet.
func (s *stop) cancel(why string) {
	s.cancelled = why
	s.end()
}

// releaseNode ends the wait for requestors, and for what failed.
func (s *stop) releaseNode(why string) { s.cancelled, s.release = why, true }

// lost ends the maintenance because its node is gone.
func (s *stop) lost(message string) {
	s.nodeGone = fmt.Sprintf("node %s: %s", s.spec.Node, message)
	s.end()
}

// stopped tells that the steps were ended.
func (s *stop) stopped() bool { return s.steps.Err() != nil }

// interrupted tells why the steps were ended.
func (s *stop) interrupted() error {
	switch {
	case s.nodeGone != "":
		return ending{phase: api.NodeGone, message: s.nodeGone}
	case s.cancelled != "":
		return ending{phase: api.Cancelled, message: s.cancelled}
	default:
		return temporal.NewCanceledError()
	}
}

// decided is the end of a maintenance that is not to wait any longer for its node to be good.
func (s *stop) decided() error {
	switch {
	case s.nodeGone != "":
		return ending{phase: api.NodeGone, message: s.nodeGone}
	case s.release:
		return ending{phase: api.Cancelled, message: s.cancelled}
	default:
		return nil
	}
}

// stepFailed sorts what went wrong in a step: the node is gone, the maintenance was cancelled, or it failed.
func (s *stop) stepFailed(err error) error {
	if s.stopped() {
		return s.interrupted()
	}
	var end ending
	if errors.As(err, &end) {
		return err
	}
	var cause *temporal.ApplicationError
	if !errors.As(err, &cause) {
		return ending{phase: api.Failed, message: err.Error()}
	}
	switch cause.Type() {
	case api.ErrorNodeGone, api.ErrorNodeReplaced:
		return ending{phase: api.NodeGone, message: cause.Message()}
	default:
		return ending{phase: api.Failed, kind: cause.Type(), message: cause.Message()}
	}
}
