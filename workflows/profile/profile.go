// Package profile is the workflow that decides for a cluster by the profiles of its nodes: it has one activity evaluate all nodes,
// and begins the transitions and notifications that are due.
package profile

import (
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	activity "drydock.dev/drydock/activities/profile"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/workflows/controller"
)

// profiles is the state of Profiles.
type profiles struct {
	controller.Base
	controller.Plain
	// Known: it is known which transitions run.
	Known bool `json:"known,omitempty"`
	// Transitions are under way until the nodes show their ends. Failed are those that were not carried out.
	Transitions []transition `json:"transitions,omitempty"`
	Failed      []failed     `json:"failed,omitempty"`
	// Sending are notifications, Leaving maintenances that are to end.
	Sending []activity.Notice `json:"sending,omitempty"`
	Leaving []leaving         `json:"leaving,omitempty"`
	// Problem says why the file is not in force as it stands.
	Problem string `json:"problem,omitempty"`
	// Denied are the permissions that are missing, since DeniedAt.
	Denied   []preflight.Ungranted `json:"denied,omitempty"`
	DeniedAt time.Time             `json:"deniedAt,omitzero"`
	// Changes counts what the next evaluation has to know and the one that runs does not.
	Changes int `json:"changes,omitempty"`
	// Absences counts the workers in a row that had no profiles.
	Absences int `json:"absences,omitempty"`
}

// transition is one until the node shows its end.
type transition struct {
	activity.UnderWay
	// Input is what it is to start with, nil once it has started.
	Input *api.ProfileTransitionInput `json:"input,omitempty"`
	// Cancelled: its cancellation was requested.
	Cancelled bool `json:"cancelled,omitempty"`
}

// failed is a transition that was not carried out so many times in a row.
type failed struct {
	activity.Failed
	InARow int `json:"inARow"`
	// Waits counts the times in a row that it had no slot; then it has not failed.
	Waits int `json:"waits,omitempty"`
}

// leaving is a maintenance that is to end. Requested: that was requested, and it has not ended.
type leaving struct {
	activity.Left
	Requested bool `json:"requested,omitempty"`
}

// Profiles decides for a cluster. There is one, under api.ProfilesID, which workers that have profiles start; it ends when a worker
// has none. Packed is what a run hands to the next. It takes no messages: nobody but the nodes has anything to say.
func Profiles(ctx workflow.Context, packed []byte) error {
	if err := controller.Identify(ctx).Only("the profiles", api.ProfilesID); err != nil {
		return err
	}
	return controller.Run(ctx, &profiles{}, controller.Program[*profiles]{Type: api.ProfilesType, Queries: queries}, packed)
}

func (p *profiles) Decide(t controller.Turn) (d controller.Decision) {
	if p.CancelRequested { // what is under way goes on
		d.End = &controller.End{Err: temporal.NewCanceledError()}
		return d
	}
	p.dropUnstarted(t)
	d.Watches = p.deliveries(t.Now)
	switch {
	case !p.Known:
		d.Effects = append(d.Effects, p.findTransitions())
	case p.Absences >= absentTimes:
		d.End = &controller.End{}
	default:
		d.Effects = slices.Concat(p.cancels(), p.endMaintenances(), p.starts())
		if !slices.ContainsFunc(p.Transitions, func(u transition) bool { return u.Input != nil }) {
			d.Watches = append(d.Watches, p.evaluate(t.Now))
		}
	}
	return d
}

func (p *profiles) Outcome(o controller.Outcome, now time.Time) {
	switch o.Key.Kind {
	case findTransitions:
		p.found(o, now)
	case startTransition:
		p.followed(o, now)
	case cancelTransition:
		p.cancelled(o, now)
	case endMaintenance:
		p.maintenanceEnds(o, now)
	case sendNotice:
		p.sent(o, now)
	case evaluateNodes:
		p.evaluated(o, now)
	}
}

// Reset implements controller.Controller. What was decided and not begun at that point is decided anew.
func (p *profiles) Reset(time.Time) {
	p.Known, p.Absences = false, 0
	for i := range p.Transitions {
		p.Transitions[i].Input = nil
	}
}
