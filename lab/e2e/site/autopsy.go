package site

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/lab/world"
)

// lastEvents is how many of the latest events of a workflow are told.
const lastEvents = 12

// autopsy says where the workflows of a test that failed are.
func (s *Site) autopsy() string {
	var text strings.Builder
	for _, id := range s.Running() {
		fmt.Fprintf(&text, "%s\n", id)
		described, err := s.Temporal.DescribeWorkflowExecution(s.Ctx, id, "")
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
		fmt.Fprintf(&text, "  it says: %s\n", s.saysOfItself(id))
		var lines []string
		for events := s.Temporal.GetWorkflowHistory(s.Ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
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
	text.WriteString(s.budgets())
	return text.String()
}

// saysOfItself is what a maintenance's drain waits for, by its status.
func (s *Site) saysOfItself(id string) string {
	ctx, cancel := context.WithTimeout(s.Ctx, 5*time.Second)
	defer cancel()
	status, err := world.Ask[api.Status](ctx, s.Temporal, id, api.QueryStatus)
	if err != nil {
		return err.Error()
	}
	drain, err := json.Marshal(status.Drain)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s since %s, waits for %q, drain %s", status.Phase, status.Since.Format("15:04:05"), status.WaitingFor, drain)
}

// budgets says how the test's disruption budgets and their pods are.
func (s *Site) budgets() string {
	var text strings.Builder
	namespaces, err := s.Kube.CoreV1().Namespaces().List(s.Ctx, metav1.ListOptions{LabelSelector: "e2e=" + s.ID})
	if err != nil {
		return err.Error()
	}
	for _, ns := range namespaces.Items {
		budgets, err := s.Kube.PolicyV1().PodDisruptionBudgets(ns.Name).List(s.Ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, b := range budgets.Items {
			fmt.Fprintf(&text, "budget %s: generation %d, %+v\n", b.Name, b.Generation, b.Status)
		}
		pods, err := s.Kube.CoreV1().Pods(ns.Name).List(s.Ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, p := range pods.Items {
			fmt.Fprintf(&text, "pod %s on %s: %s, deleted %v, ready %v\n", p.Name, p.Spec.NodeName, p.Status.Phase, p.DeletionTimestamp, k8s.IsPodReady(&p))
		}
	}
	return text.String()
}
