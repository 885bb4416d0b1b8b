// Package permissions is the workflow that reports which permissions the worker lacks for what is about to be started.
package permissions

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	preflightactivity "drydock.dev/drydock/activities/preflight"
	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/inbox"
)

// within is short: somebody waits for the answer.
const within = 30 * time.Second

// Permissions reports which permissions the worker's account lacks for a maintenance or a health check that is about to be started. It
// changes nothing. Its input is api.PermissionsInput, in JSON.
func Permissions(ctx workflow.Context, input converter.RawValue) (api.PermissionsReport, error) {
	var report api.PermissionsReport
	request, err := inbox.Decode[api.PermissionsInput](inbox.Payload(input))
	var inputs []json.RawMessage
	if err == nil {
		inputs, err = maintenancesOf(request)
	}
	if err != nil {
		return report, inbox.InvalidSpec(err)
	}
	in := preflightactivity.PermissionsInput{HealthCheck: len(request.HealthCheck) > 0}
	for _, one := range inputs {
		m, err := decode(ctx, one)
		if err != nil {
			return report, err
		}
		in.Drains = append(in.Drains, preflightactivity.PlannedDrain{Drain: m.Judged(), WaitsForPods: m.WaitForPodCompletion != nil})
	}
	ctx = call.Within(call.Quick(ctx, "ask for the worker's permissions"), within)
	err = workflow.ExecuteActivity(ctx, call.Preflights.CheckPermissions, in).Get(ctx, &report)
	return report, err
}

// decode reads the input of a maintenance as a maintenance reads it, with the worker's defaults.
func decode(ctx workflow.Context, input json.RawMessage) (spec.Maintenance, error) {
	m, err := spec.Decode(input, nil)
	if err != nil {
		return m, inbox.InvalidSpec(err)
	}
	var prepared settings.Prepared
	if err := workflow.ExecuteLocalActivity(call.Local(ctx), call.Settings.Prepare, input).Get(ctx, &prepared); err != nil {
		return m, fmt.Errorf("preparing: %w", err)
	}
	if m, err = spec.Decode(input, prepared.Defaults); err != nil {
		return m, inbox.InvalidSpec(err)
	}
	return m, nil
}

// maintenancesOf are the inputs of the maintenance, or of those by which the health check remediates.
func maintenancesOf(request api.PermissionsInput) (inputs []json.RawMessage, err error) {
	switch {
	case (len(request.Maintenance) == 0) == (len(request.HealthCheck) == 0):
		return nil, errors.New("give either maintenance or healthCheck")
	case len(request.Maintenance) > 0:
		return []json.RawMessage{request.Maintenance}, nil
	}
	decoded, err := health.Decode(request.HealthCheck)
	if err != nil {
		return nil, err
	}
	for _, step := range decoded.Steps() {
		if step.Maintenance != nil {
			input, _ := step.Maintenance.InputOf("any", api.RemediationRequestor("any")) // it was decoded
			inputs = append(inputs, input)
		}
	}
	return inputs, nil
}
