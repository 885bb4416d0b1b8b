// Package windows is the workflow that reports when the windows of the worker's configuration are open. It changes nothing.
package windows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/window"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/inbox"
)

// within is short: somebody waits for the answer.
const within = time.Minute

// Windows reports the next openings of the windows of the worker's configuration. Its input is api.WindowsInput, in JSON.
func Windows(ctx workflow.Context, input converter.RawValue) (window.Horizon, error) {
	request, err := inbox.Decode[api.WindowsInput](inbox.Payload(input))
	if err == nil {
		err = check(request)
	}
	if err != nil {
		return window.Horizon{}, inbox.InvalidSpec(err)
	}
	if request.Next == 0 {
		request.Next = api.DefaultNextOpenings
	}
	request.At = workflow.Now(ctx)
	var horizon window.Horizon
	ctx = call.Within(call.Quick(ctx, "see when windows are open"), within)
	err = workflow.ExecuteActivity(ctx, call.Windows.ListWindows, request).Get(ctx, &horizon)
	return horizon, err
}

func check(request api.WindowsInput) error {
	if request.Next < 0 || request.Next > api.MaxNextOpenings {
		return fmt.Errorf("next: %d: want 0 to %d", request.Next, api.MaxNextOpenings)
	}
	if request.Name == "" {
		return nil
	}
	if err := spec.WindowName(request.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	return nil
}
