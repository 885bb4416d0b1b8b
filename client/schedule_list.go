package client

import (
	"context"
	"slices"
	"strings"

	temporalclient "go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
)

const schedulesAtOnce = 500

// ListRecurring finds the recurring plans of the cluster, by their names. A list of schedules says less of each than Look: neither its plan
// nor what became of its runs. One that was just made may be missing.
func ListRecurring(ctx context.Context, c *Client) (api.PlanSchedules, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*CallTimeout)
	defer cancel()
	all, err := c.server.temporal.ScheduleClient().List(ctx, temporalclient.ScheduleListOptions{PageSize: schedulesAtOnce})
	if err != nil {
		return nil, failedCall("listing the schedules of plans", err)
	}
	var found api.PlanSchedules
	for all.HasNext() {
		entry, err := all.Next()
		if err != nil {
			return nil, failedCall("listing the schedules of plans", err)
		}
		cluster, name, err := api.ParsePlanID(entry.ID)
		if err != nil || cluster != c.options.Cluster {
			continue // somebody else's
		}
		s := api.PlanScheduleSummary{Name: name, Recurrence: recurrenceOf(entry.Spec), Paused: entry.Paused, Note: entry.Note, ScheduleID: entry.ID}
		if !s.Paused && len(entry.NextActionTimes) > 0 {
			s.NextAt = &entry.NextActionTimes[0]
		}
		if n := len(entry.RecentActions); n > 0 {
			s.LastStartedAt = &entry.RecentActions[n-1].ActualTime
		}
		found = append(found, s)
	}
	slices.SortFunc(found, func(a, b api.PlanScheduleSummary) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}
