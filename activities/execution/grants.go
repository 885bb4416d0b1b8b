package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/api"
)

// GrantInput are holders whose slots are granted.
type GrantInput struct {
	Cluster string        `json:"cluster,omitempty"`
	Holders []GrantedSlot `json:"holders"`
}

// GrantedSlot is a slot that is granted.
type GrantedSlot struct {
	Node      string `json:"node"`
	Requestor string `json:"requestor"`
	RequestID string `json:"requestId"`
}

// grantsAtOnce bounds the signals under way.
const grantsAtOnce = 16

// SendGrants signals maintenances that they hold their slots, and returns the requests of those that do not run. One that gets the signal
// twice ignores the second. One that cannot be signalled for another reason asks again by itself.
func (e *Activities) SendGrants(ctx context.Context, in GrantInput) (gone []string, err error) {
	var group errgroup.Group
	var mu sync.Mutex // protects gone
	group.SetLimit(grantsAtOnce)
	for _, h := range in.Holders {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			id := api.MaintenanceID(in.Cluster, h.Node, h.Requestor)
			if _, _, _, err := api.ParseMaintenanceID(id); err != nil {
				activity.GetLogger(ctx).Warn("a slot was granted to something that is not a maintenance, so nobody is signalled", "error", err)
				return nil // the others are signalled all the same
			}
			err := caller.Signal(ctx, e.Temporal, id, "", api.SignalSlotGranted, api.SlotAnswer{RequestID: h.RequestID})
			var nobody *serviceerror.NotFound
			switch {
			case errors.As(err, &nobody):
				mu.Lock()
				defer mu.Unlock()
				gone = append(gone, h.RequestID)
				return nil
			case err != nil && ctx.Err() == nil && activity.GetInfo(ctx).Attempt >= believeAfter:
				activity.GetLogger(ctx).Warn("slot not signalled to its maintenance", "workflow", id, "error", err)
				return nil
			case err != nil:
				return fmt.Errorf("signalling workflow %s that it holds its slot: %w", id, err)
			}
			return nil
		})
	}
	err = group.Wait()
	slices.Sort(gone)
	return gone, err
}
