// Package windows is the workflow that tells when the windows of the worker's configuration are open, and changes nothing.
package windows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/spec"
	"drydock/rules/window"
	"drydock/workflows/call"
	"drydock/workflows/inbox"
)

// within bounds the question: somebody waits for the answer.
const within = time.Minute

// Windows tells the next openings of the windows of the worker's configuration. Its input is api.WindowsInput, in JSON.
func Windows(ctx workflow.Context, input converter.RawValue) (window.Horizon, error) {
	asked, err := inbox.Decode[api.WindowsInput](inbox.Payload(input))
	if err == nil {
		err = check(asked)
	}
	if err != nil {
		return window.Horizon{}, inbox.InvalidSpec(err)
	}
	if asked.Next == 0 {
		asked.Next = api.DefaultNextOpenings
	}
	asked.At = workflow.Now(ctx)
	var told window.Horizon
	ctx = call.Within(call.Quick(ctx, "see when windows are open"), within)
	err = workflow.ExecuteActivity(ctx, call.Windows.ListWindows, asked).Get(ctx, &told)
	return told, err
}

func check(asked api.WindowsInput) error {
	if asked.Next < 0 || asked.Next > api.MaxNextOpenings {
		return fmt.Errorf("next: %d: want 0 to %d", asked.Next, api.MaxNextOpenings)
	}
	if asked.Name == "" {
		return nil
	}
	if err := spec.WindowName(asked.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	return nil
}
