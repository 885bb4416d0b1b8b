package profile

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	rules "drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/rules/profile/trigger"
	"drydock.dev/drydock/rules/schedule"
)

// maintainsFirst reports whether the first of the triggers that takes the node out of service has it maintained: that maintenance asks
// for the slot of the node. A Job may do anything.
func maintainsFirst(config *rules.Config, triggers []string) bool {
	for _, name := range triggers {
		found, _ := config.Trigger(name)
		switch of := found.Of.(type) {
		case trigger.Maintenance:
			return true
		case trigger.Change:
		case trigger.Eviction:
			if of.Action != trigger.Uncordon {
				return false
			}
		default:
			return false
		}
	}
	return false
}

// gate asks other workflows whether a transition may take its node out of service.
type gate struct {
	temporal client.Client
	cluster  string
}

func newGate(ctx context.Context, temporal client.Client) gate {
	return gate{temporal, api.ClusterOf(activity.GetInfo(ctx).TaskQueue)}
}

// mayEnter returns why a transition may not take its node into maintenance. The scheduler must confirm its slot, because anybody can send
// the signal that grants it; and Profiles must know the transition, because one that was reset may have begun another in its place.
func (g gate) mayEnter(ctx context.Context, config *rules.Config, in CarryInput) (refused string, err error) {
	if in.To != state.Maintenance || in.From == in.To || in.Enter {
		return "", nil
	}
	if !in.NeedsSlot() && !maintainsFirst(config, in.Triggers) {
		return "no trigger begins a maintenance any more before the node is out of service", nil
	}
	if in.NeedsSlot() {
		request := in.RunID + "/1"
		var held api.SlotsHeld
		err := g.ask(ctx, api.SchedulerID(g.cluster), api.QuerySlotsHeld, &held, api.SlotQuestion{RequestIDs: []string{request}})
		switch {
		case err != nil:
			return "", fmt.Errorf("asking the scheduler for slot %s: %w", request, err)
		case held.Rebuilding:
			return "", errors.New("the scheduler does not know yet who holds a slot")
		case !held.Of(request).Held:
			return "the scheduler knows of no slot that it holds", nil
		}
	}
	if in.Next > 0 || in.Held {
		return "", nil
	}
	return g.isKnown(ctx, in)
}

// isKnown says why Profiles does not know of a transition.
func (g gate) isKnown(ctx context.Context, in CarryInput) (refused string, err error) {
	var now api.ProfilesState
	if err := g.ask(ctx, api.ProfilesID(g.cluster), api.QueryState, &now); err != nil {
		return "", fmt.Errorf("asking workflow %s for the transition: %w", api.ProfilesID(g.cluster), err)
	}
	if now.Waiting != "" {
		return "", errors.New("the profiles do not say yet what is under way: " + now.Waiting)
	}
	for _, u := range now.UnderWay {
		if u.Profile == in.Profile && u.Node == in.Node && (u.RunID == "" || u.RunID == in.RunID) {
			return "", nil
		}
	}
	return "the profiles do not know of it: what was decided since counts", nil
}

func (g gate) ask(ctx context.Context, workflow, query string, answer any, args ...any) error {
	value, err := g.temporal.QueryWorkflow(ctx, workflow, "", query, args...)
	if err != nil {
		return err
	}
	return value.Get(answer)
}

// holders finds the transitions that hold a slot, or wait for one. Unlike visibility the scheduler does not lag: none does anything to its
// node before it holds one.
func (g gate) holders(ctx context.Context, take func(UnderWay)) error {
	scheduler := api.SchedulerID(g.cluster)
	for offset := 0; ; {
		var now api.State
		err := g.ask(ctx, scheduler, api.QueryState, &now, api.StateRequest{Offset: offset, Limit: 1000})
		var nobody *serviceerror.NotFound
		switch {
		case errors.As(err, &nobody):
			return nil // nobody holds a slot
		case err != nil:
			return fmt.Errorf("asking the scheduler which transitions hold a slot: %w", err)
		case now.Rebuilding:
			return errors.New("the scheduler does not know yet which transitions hold a slot")
		}
		if offset == 0 {
			for _, h := range now.Holders {
				take(entering(h.Kind, h.WorkflowID(""), h.RunID))
			}
		}
		for _, p := range now.Pending {
			take(entering(p.Kind, p.WorkflowID(""), p.RunID))
		}
		if now.NextOffset <= offset {
			return nil
		}
		offset = now.NextOffset
	}
}

// entering is the transition that holds a slot; one without a profile is none.
func entering(kind schedule.HolderKind, workflow, run string) UnderWay {
	_, profile, node, err := api.ParseProfileTransitionID(workflow)
	if kind != schedule.KindProfile || err != nil {
		return UnderWay{}
	}
	return UnderWay{Ref: Ref{profile, node}, RunID: run, To: state.Maintenance}
}
