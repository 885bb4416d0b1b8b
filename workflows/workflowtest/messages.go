package workflowtest

import (
	"time"

	"go.temporal.io/sdk/testsuite"

	"drydock.dev/drydock/api"
)

// SignalAt sends a message as a signal after a time.
func (s *Site) SignalAt(d time.Duration, name string, payload any) *Site {
	return s.At(d, func() { s.Env.SignalWorkflow(name, payload) })
}

// DoneAt says done after a time.
func (s *Site) DoneAt(d time.Duration) *Site { return s.SignalAt(d, api.MsgDone, nil) }

// Outcome is what became of an update.
type Outcome struct {
	Accepted bool
	Rejected error
	Effect   string
	Err      error
}

// UpdateAt sends a message as an update after a time, and returns its outcome once the run is over.
func (s *Site) UpdateAt(d time.Duration, name string, payload ...any) *Outcome {
	out := &Outcome{}
	s.At(d, func() {
		s.Env.UpdateWorkflow(name, "", &testsuite.TestUpdateCallback{
			OnReject: func(err error) { out.Rejected = err },
			OnAccept: func() { out.Accepted = true },
			OnComplete: func(value any, err error) {
				out.Err = err
				if text, ok := value.(string); ok {
					out.Effect = text
				}
			},
		}, payload...)
	})
	return out
}
