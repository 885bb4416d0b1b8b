package execution

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"drydock/activities/caller"
	"drydock/api"
)

// TellToEnd tells a maintenance that is not wanted any more: one that is not Ready is cancelled, and one on which somebody works is
// done. Where what it was for is not done the node is given back as it is, whatever it is at. Run is the first of its chain; empty is
// whichever runs. One that does not run has ended.
func TellToEnd(ctx context.Context, temporal client.Client, id, run string, said api.Message, done bool) error {
	// Each is ignored where the other applies.
	messages := []struct {
		name    string
		payload any
	}{
		{api.MsgCancel, api.Cancel{Message: said, Run: run, BeforeReady: true}},
		{api.MsgDone, api.Done{Message: said, Run: run}},
	}
	if !done {
		messages = messages[:1]
		messages[0].payload = api.Cancel{Message: said, Run: run, Release: true}
	}
	for _, m := range messages {
		err := caller.Signal(ctx, temporal, id, "", m.name, m.payload)
		var nobody *serviceerror.NotFound
		if errors.As(err, &nobody) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("telling workflow %s (%s): %w", id, m.name, err)
		}
	}
	return nil
}
