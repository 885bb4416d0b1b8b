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
	if err == nil && (len(request.Maintenance) == 0) == (len(request.HealthCheck) == 0) {
		err = errors.New("give either maintenance or healthCheck")
	}
	if err != nil {
		return report, inbox.InvalidSpec(err)
	}
	inputs := []json.RawMessage{request.Maintenance}
	if len(request.HealthCheck) > 0 {
		if inputs, err = maintenancesOf(request.HealthCheck); err != nil {
			return report, inbox.InvalidSpec(err)
		}
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

// maintenancesOf are the inputs of the maintenances by which a health check remediates.
func maintenancesOf(check json.RawMessage) ([]json.RawMessage, error) {
	decoded, err := health.Decode(check)
	if err != nil {
		return nil, err
	}
	var inputs []json.RawMessage
	for _, step := range decoded.Steps() {
		if step.Maintenance == nil {
			continue
		}
		input, err := step.Maintenance.InputOf("any", api.RemediationRequestor("any"))
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, input)
	}
	return inputs, nil
}
