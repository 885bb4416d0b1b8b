package client

import (
	"context"
	"slices"
	"strings"

	temporalclient "go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
)

// schedulesAtOnce is how many schedules one question asks for.
const schedulesAtOnce = 500

// ListRecurring finds the recurring plans of the cluster, by their names. A list of schedules says less of each than Look: neither its plan
// nor what became of its runs. One that was just made may be missing.
func ListRecurring(ctx context.Context, c *Client) ([]RecurringView, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*CallTimeout)
	defer cancel()
	all, err := c.server.temporal.ScheduleClient().List(ctx, temporalclient.ScheduleListOptions{PageSize: schedulesAtOnce})
	if err != nil {
		return nil, failedCall("listing the schedules of plans", err)
	}
	var found []RecurringView
	for all.HasNext() {
		entry, err := all.Next()
		if err != nil {
			return nil, failedCall("listing the schedules of plans", err)
		}
		cluster, name, err := api.ParsePlanID(entry.ID)
		if err != nil || cluster != c.options.Cluster {
			continue // somebody else's
		}
		v := RecurringView{Name: name, When: recurrenceOf(entry.Spec), Paused: entry.Paused, Note: entry.Note, Next: entry.NextActionTimes}
		for _, action := range entry.RecentActions {
			run := RecurringRun{Due: action.ScheduleTime, Began: action.ActualTime}
			if action.StartWorkflowResult != nil {
				run.WorkflowID = action.StartWorkflowResult.WorkflowID
			}
			v.Runs = append(v.Runs, run)
		}
		found = append(found, v)
	}
	slices.SortFunc(found, func(a, b RecurringView) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}
