package health

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"

	"drydock/api"
)

// holdsSlot asks the scheduler whether a request holds its slot: that a remediation was told so is no proof, since anybody may have said
// so, and it may have been reset to a time when it did.
func (a *Activities) holdsSlot(ctx context.Context, request string) (bool, error) {
	if request == "" {
		return false, nil
	}
	scheduler := api.SchedulerID(api.ClusterOf(activity.GetInfo(ctx).TaskQueue))
	answer, err := a.Temporal.QueryWorkflow(ctx, scheduler, "", api.QuerySlotsHeld, api.SlotQuestion{RequestIDs: []string{request}})
	var held api.SlotsHeld
	if err == nil {
		err = answer.Get(&held)
	}
	if err == nil && held.Rebuilding {
		err = errors.New("it does not know yet who holds a slot")
	}
	return held.Of(request).Held, err
}
