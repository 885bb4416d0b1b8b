package execution

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/api"
)

// SignalEnd ends a maintenance that is not wanted any more. Where its purpose is done, it is cancelled before it is Ready, and done from
// then on. Otherwise it is cancelled, and its node is given back as it is. Run is the first run of its chain; empty is whichever runs. A
// maintenance that does not run needs no signal.
func SignalEnd(ctx context.Context, temporal client.Client, id, run string, said api.Message, done bool) error {
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
			return fmt.Errorf("signalling workflow %s (%s): %w", id, m.name, err)
		}
	}
	return nil
}
