package e2e

import (
	"fmt"
	"strings"

	"go.temporal.io/api/enums/v1"
)

// lastEvents is how many of the latest events of a workflow are told.
const lastEvents = 12

// autopsy tells where the workflows of a test that failed are.
func (s *site) autopsy() string {
	var text strings.Builder
	for _, id := range s.running() {
		fmt.Fprintf(&text, "%s\n", id)
		described, err := s.temporal.DescribeWorkflowExecution(s.ctx, id, "")
		if err != nil {
			fmt.Fprintf(&text, "  %v\n", err)
			continue
		}
		for _, a := range described.GetPendingActivities() {
			fmt.Fprintf(&text, "  pending %s: %s, attempt %d by %q, begun %s, heard of %s, next %s; %s\n", a.GetActivityType().GetName(), a.GetState(),
				a.GetAttempt(), a.GetLastWorkerIdentity(), a.GetLastStartedTime().AsTime().Format("15:04:05.000"),
				a.GetLastHeartbeatTime().AsTime().Format("15:04:05.000"), a.GetScheduledTime().AsTime().Format("15:04:05.000"), a.GetLastFailure().GetMessage())
		}
		if task := described.GetPendingWorkflowTask(); task != nil {
			fmt.Fprintf(&text, "  pending workflow task: %s, attempt %d, scheduled %s\n", task.GetState(), task.GetAttempt(), task.GetScheduledTime().AsTime().Format("15:04:05.000"))
		}
		var lines []string
		for events := s.temporal.GetWorkflowHistory(s.ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
			event, err := events.Next()
			if err != nil {
				lines = append(lines, err.Error())
				break
			}
			line := fmt.Sprintf("%s %d %s", event.GetEventTime().AsTime().Format("15:04:05.000"), event.GetEventId(), event.GetEventType())
			switch {
			case event.GetActivityTaskScheduledEventAttributes() != nil:
				line += " " + event.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
			case event.GetWorkflowExecutionSignaledEventAttributes() != nil:
				line += " " + event.GetWorkflowExecutionSignaledEventAttributes().GetSignalName()
			}
			lines = append(lines, line)
		}
		for _, line := range lines[max(len(lines)-lastEvents, 0):] {
			fmt.Fprintf(&text, "  %s\n", line)
		}
	}
	return text.String()
}
