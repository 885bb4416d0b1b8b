// Package preflight is the workflow that reports what would stop a drain of a node. It changes nothing.
package preflight

import (
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	preflightactivity "drydock.dev/drydock/activities/preflight"
	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/views"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/inbox"
)

const (
	// checkWithin bounds one attempt at a check of a node, aloneWithin all attempts of a Preflight that no maintenance asks for.
	checkWithin = 2 * time.Minute
	aloneWithin = 10 * time.Minute
)

// Preflight reports what would stop a drain of a node, and what becomes of each pod. Its input is that of a maintenance, in JSON. The
// field together may name nodes that are drained at the same time, so that no pod is placed there.
func Preflight(ctx workflow.Context, input converter.RawValue) (preflight.Report, error) {
	rest, together, err := takeTogether(inbox.Payload(input))
	if err != nil {
		return preflight.Report{}, inbox.InvalidSpec(err)
	}
	m, err := decode(ctx, rest)
	if err != nil {
		return preflight.Report{}, err
	}
	report, err := Check(call.Within(ctx, aloneWithin), m, together)
	if err != nil {
		return preflight.Report{}, err
	}
	workflow.SetCurrentDetails(ctx, document.Details(views.Preflight(report, views.Brief())))
	return report, nil
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

// takeTogether separates the field that only a preflight has from those of a maintenance. An input that it cannot read is left for the
// strict decoder to refuse.
func takeTogether(input []byte) (rest []byte, together []string, err error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(input, &object); err != nil || object["together"] == nil {
		return input, nil, nil //nolint:nilerr // the strict decoder says what is wrong with it
	}
	// The object below has each field once: a doubled one must be refused before.
	if err := spec.DecodeStrict(input, &map[string]json.RawMessage{}); err != nil {
		return nil, nil, err
	}
	var field struct {
		Together []string `json:"together"`
	}
	alone, err := json.Marshal(map[string]json.RawMessage{"together": object["together"]})
	if err != nil {
		return nil, nil, err
	}
	if err := spec.DecodeStrict(alone, &field); err != nil {
		return nil, nil, err
	}
	for i, name := range field.Together {
		if err := spec.NodeName(name); err != nil {
			return nil, nil, fmt.Errorf("together[%d]: %w", i, err)
		}
	}
	delete(object, "together")
	rest, err = json.Marshal(object)
	return rest, field.Together, err
}

// Check reports what would stop the drain of a maintenance's node, within the time that the context has.
func Check(ctx workflow.Context, m spec.Maintenance, together []string) (report preflight.Report, err error) {
	ctx = call.Within(call.Quick(ctx, "preflight of "+m.Node), workflow.GetActivityOptions(ctx).ScheduleToCloseTimeout)
	ctx = workflow.WithStartToCloseTimeout(ctx, checkWithin)
	// It changes nothing, so nobody waits for the end of one that is cancelled.
	ctx = workflow.WithWaitForCancellation(ctx, false)
	err = workflow.ExecuteActivity(ctx, call.Preflights.CheckPreflight, preflightactivity.Input{
		Node: m.Node, Drain: m.Judged(), WaitsForPods: m.WaitForPodCompletion != nil, Together: together,
	}).Get(ctx, &report)
	return report, err
}
