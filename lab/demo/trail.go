package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"drydock.dev/drydock/api"
)

// showTrail prints a node's audit trail as an auditor would find it: out of the workflow's history.
func (d *demo) showTrail(ctx context.Context) error {
	id := api.MaintenanceID("", brokenNode, "ops")
	d.say("the audit trail of %s, read from the history of workflow %s", brokenNode, id)
	fmt.Println()
	events := d.temporal.Client.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return fmt.Errorf("reading the history: %w", err)
		}
		if line := describe(event); line != "" {
			fmt.Printf("  %s  %s\n", event.EventTime.AsTime().Local().Format("15:04:05.000"), line)
		}
	}
	return nil
}

// describe says in one line what an event means to an auditor, and nothing of Temporal's own bookkeeping.
func describe(e *history.HistoryEvent) string {
	switch e.EventType {
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		a := e.GetWorkflowExecutionStartedEventAttributes()
		return fmt.Sprintf("asked for by %s: %s", cmp.Or(a.Identity, a.GetParentWorkflowExecution().GetWorkflowId()), payloads(a.Input.GetPayloads()))
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		a := e.GetWorkflowExecutionSignaledEventAttributes()
		return fmt.Sprintf("message %s from %s: %s", a.SignalName, a.Identity, payloads(a.Input.GetPayloads()))
	case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		summary := ""
		if err := converter.GetDefaultDataConverter().FromPayload(e.GetUserMetadata().GetSummary(), &summary); err != nil {
			summary = e.GetActivityTaskScheduledEventAttributes().ActivityType.Name
		}
		return "step: " + summary
	case enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		if result := payloads(e.GetActivityTaskCompletedEventAttributes().Result.GetPayloads()); result != "" {
			return "      " + result
		}
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		return "ended"
	}
	return ""
}

// payloads says in words what was said, as far as a line has room: the history has all of it.
func payloads(all []*common.Payload) string {
	var facts []string
	for _, p := range all {
		var value any
		if json.Unmarshal(p.GetData(), &value) != nil {
			facts = append(facts, strings.ToValidUTF8(string(p.GetData()), "?"))
			continue
		}
		facts = append(facts, factsOf("", value)...)
	}
	shown := 0
	for length := 0; shown < len(facts); shown++ {
		if length += len(facts[shown]) + 2; length > longestLine {
			break
		}
	}
	if len(facts) > 0 {
		shown = max(1, shown)
	}
	text := strings.Join(facts[:shown], ", ")
	if more := len(facts) - shown; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// longestLine bounds, in bytes, what is shown of an event; a single fact is shown whole.
const longestLine = 160

// factsOf are the values in a JSON value with their names, in the order of the names; those that say nothing are left out.
func factsOf(name string, value any) (facts []string) {
	switch v := value.(type) {
	case nil:
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			facts = append(facts, factsOf(strings.TrimPrefix(name+"."+key, "."), v[key])...)
		}
	case []any:
		if len(v) > 0 {
			facts = append(facts, fmt.Sprintf("%s: %d", name, len(v)))
		}
	default:
		if text := fmt.Sprint(v); text != "" && text != "0" && text != "false" {
			facts = append(facts, strings.TrimSpace(name+" "+text))
		}
	}
	return facts
}
