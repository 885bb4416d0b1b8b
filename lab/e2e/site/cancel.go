package site

import (
	"errors"
	"slices"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
)

// Undone checks that a maintenance ended Cancelled and left nothing behind.
func (s *Site) Undone(run client.WorkflowRun, node, before string) {
	s.Helper()
	s.MustEnd(run, api.Cancelled)
	var cancelled *temporal.CanceledError
	if err := run.Get(s.Ctx, nil); !errors.As(err, &cancelled) {
		s.Errorf("the workflow ended with %v, want it cancelled", err)
	}
	s.Back(node, before)
	s.SlotFree(node)
}

// SlotFree waits until nobody holds the slot of a node.
func (s *Site) SlotFree(node string) {
	s.Helper()
	s.Eventually("the slot of "+node+" is free", func() error {
		if slices.Contains(s.Holders(), node) {
			return errors.New("it is taken")
		}
		return nil
	})
}
