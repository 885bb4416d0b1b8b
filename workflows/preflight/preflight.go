// Package preflight is the workflow that tells what a drain of a node would meet, and changes nothing.
package preflight

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	preflightactivity "drydock/activities/preflight"
	"drydock/activities/settings"
	"drydock/rules/markdown"
	"drydock/rules/preflight"
	"drydock/rules/spec"
	"drydock/workflows/call"
	"drydock/workflows/inbox"
)

const (
	// checkWithin bounds one check of a node, and aloneWithin those that a Preflight by itself has.
	checkWithin = 2 * time.Minute
	aloneWithin = 10 * time.Minute
)

// Preflight tells what a drain of a node would meet, and changes nothing. Its input is a maintenance's, in JSON, and in
// it the field together may name other nodes that are to go at the same time, so that no pod is placed there.
func Preflight(ctx workflow.Context, input converter.RawValue) (preflight.Report, error) {
	asked, together, err := decode(ctx, inbox.Payload(input))
	if err != nil {
		return preflight.Report{}, err
	}
	report, err := Check(call.Within(ctx, aloneWithin), asked, together)
	if err != nil {
		return preflight.Report{}, err
	}
	workflow.SetCurrentDetails(ctx, details(report))
	return report, nil
}

// decode reads the input as a maintenance reads it.
func decode(ctx workflow.Context, input []byte) (asked spec.Maintenance, together []string, err error) {
	input, together, err = takeTogether(input)
	if err != nil {
		return asked, nil, inbox.InvalidSpec(err)
	}
	if _, err := spec.Decode(input, nil); err != nil {
		return asked, nil, inbox.InvalidSpec(err)
	}
	var prepared settings.Prepared
	if err := workflow.ExecuteLocalActivity(call.Local(ctx), call.Settings.Prepare, json.RawMessage(input)).Get(ctx, &prepared); err != nil {
		return asked, nil, fmt.Errorf("preparing: %w", err)
	}
	if asked, err = spec.Decode(input, prepared.Defaults); err != nil {
		return asked, nil, inbox.InvalidSpec(err)
	}
	return asked, together, nil
}

// takeTogether parts the field that only a preflight has from those of a maintenance. What it does not understand it
// leaves for the strict decoder to refuse.
func takeTogether(input []byte) (rest []byte, together []string, err error) {
	var object map[string]json.RawMessage
	understood := json.Unmarshal(input, &object) == nil
	if !understood || object["together"] == nil {
		return input, nil, nil
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

// Check tells what a drain of the node of a maintenance would meet, as long as the context gives it time.
func Check(ctx workflow.Context, m spec.Maintenance, together []string) (preflight.Report, error) {
	options := workflow.GetActivityOptions(call.Quick(ctx, "preflight of "+m.Node))
	options.ScheduleToCloseTimeout = workflow.GetActivityOptions(ctx).ScheduleToCloseTimeout
	options.StartToCloseTimeout = checkWithin
	// It changes nothing, so nobody has to know how it ended.
	options.WaitForCancellation = false
	ctx = workflow.WithActivityOptions(ctx, options)
	var report preflight.Report
	err := workflow.ExecuteActivity(ctx, call.Preflights.CheckPreflight, preflightactivity.Input{
		Node: m.Node, Drain: m.Judged(), WaitsForPods: m.WaitForPodCompletion != nil, Together: together,
	}).Get(ctx, &report)
	return report, err
}

// details shows a report in the Temporal UI.
func details(report preflight.Report) string {
	var text strings.Builder
	if n := report.ProblemCount(); n > 0 {
		fmt.Fprintf(&text, "**%d problems** would stop a drain of %s", n, markdown.Text(report.Node))
	} else {
		fmt.Fprintf(&text, "nothing would stop a drain of %s", markdown.Text(report.Node))
	}
	if would := report.Escalates(); would != "" {
		fmt.Fprintf(&text, "\n\nWhen the node does not empty: %s", would)
	}
	const shown = 20
	for _, f := range report.Problems[:min(shown, len(report.Problems))] {
		fmt.Fprintf(&text, "\n- %s: %s", f.Code, markdown.Text(f.String()))
	}
	for _, f := range report.Warnings[:min(shown, len(report.Warnings))] {
		fmt.Fprintf(&text, "\n- warning, %s: %s", f.Code, markdown.Text(f.String()))
	}
	return text.String()
}
