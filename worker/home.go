package worker

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/config/namespace"
)

// errHomeLost: the namespace is gone. A worker that went on would take its marks for those of the new one; one that is started anew does
// not.
var errHomeLost = errors.New("the worker ends; one that is started again uses the namespace that is there then")

// homeGuard checks that the namespace is still the one that a worker began with.
type homeGuard struct {
	temporal client.Client
	name, id string
	// absent counts how often in a row there was none: one part of a server may know of it later than another.
	absent int
}

// absentAtMost is how often in a row the namespace may seem to be missing.
const absentAtMost = 2

// look fails with errHomeLost where the namespace is not there any more, or is another one of the same name.
func (g *homeGuard) look(ctx context.Context) error {
	found, err := namespace.Describe(ctx, g.temporal, g.name)
	switch {
	case namespace.Absent(err):
		if g.absent++; g.absent < absentAtMost {
			return err
		}
		return fmt.Errorf("namespace %s of Temporal is not there any more: %w", g.name, errHomeLost)
	case err != nil:
		return err
	case found.ID != g.id:
		return fmt.Errorf("namespace %s of Temporal is another one by now (ID %s, and it was %s), as where its database was lost: %w", g.name, found.ID, g.id, errHomeLost)
	}
	g.absent = 0
	return nil
}

// untilRefused returns an error once the server lets the worker poll no more, so that the process ends instead of looking healthy.
func untilRefused(ctx context.Context, refused <-chan error) error {
	select {
	case err := <-refused:
		return fmt.Errorf("this worker gets no work from Temporal any more: %w", err)
	case <-ctx.Done():
		return nil
	}
}
