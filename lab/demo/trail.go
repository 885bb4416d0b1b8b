package main

import (
	"cmp"
	"context"
	"fmt"
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

// payloads shows JSON as it is: what was said is the evidence.
func payloads(all []*common.Payload) string {
	var texts []string
	for _, p := range all {
		texts = append(texts, string(p.GetData()))
	}
	text := strings.Join(texts, " ")
	if len(text) > 220 {
		text = text[:220] + "..."
	}
	return text
}
