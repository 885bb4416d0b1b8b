package remediation

import (
	"errors"
	"fmt"
	"time"

	activity "drydock.dev/drydock/activities/health"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
)

// The effects that request a slot and give it back, each a signal to the scheduler.
const (
	sendRequest = "request"
	sendRelease = "release"
	// seeLeft looks whether anything that was begun before a reset, or by an earlier workflow, may be at work.
	seeLeft = "left"
)

const (
	// repeatRequest is after what time a request is repeated that was not granted: the frame doubles it.
	repeatRequest = 10 * time.Second
	// schedulerWithin is how soon a request is sent again where no scheduler runs: a worker starts it.
	schedulerWithin = 30 * time.Second
)

// slot is what lets a control-plane node be remediated: the scheduler gives it to one node at a time.
type slot struct {
	// GrantedAt is nil without a grant.
	GrantedAt *time.Time `json:"grantedAt,omitempty"`
	// Asked: the scheduler may know of the request, which is to be given back.
	Asked bool `json:"asked,omitempty"`
	// Unknown: something may have been begun with a slot of which nothing is known, before a reset or by an earlier workflow. Left: it was
	// looked for, and may be at work.
	Unknown bool `json:"unknown,omitempty"`
	Left    bool `json:"left,omitempty"`
}

// wantsSlot reports whether the slot is requested or kept. A remediation that ends keeps it while something of it may be at work: after
// a reset that is not known before everything is removed.
func (r *remediation) wantsSlot() bool {
	return r.Progress.ControlPlane && !r.Progress.Ended && (!r.ends() || r.Slot.GrantedAt != nil || r.began() || r.WasReset)
}

// noteSlot reports to the check whether the remediation has begun nothing because it lacks a slot: ending it then counts as no
// remediation.
func (r *remediation) noteSlot() {
	r.Progress.WaitsForSlot = r.lacksSlot() && !r.began() && !r.in.Resume && !r.WasReset
}

// lacksSlot reports whether no step may begin.
func (r *remediation) lacksSlot() bool { return r.Progress.ControlPlane && r.Slot.GrantedAt == nil }

// isSlotUnknown reports whether the remediation may hold a slot without knowing it.
func (r *remediation) isSlotUnknown() bool { return r.Slot.Unknown && r.lacksSlot() && r.wantsSlot() }

// sawLeft takes whether something may be at work, and has the scheduler asked at once.
func (r *remediation) sawLeft(o controller.Outcome, now time.Time) {
	var left bool
	if o.Stale || o.Get(&left) != nil {
		return
	}
	r.Slot.Unknown, r.Slot.Left = false, left || r.began()
	r.ClearBackoff(controller.Key{Kind: sendRequest})
}

// slotID is the slot by which activities act, empty if there is none.
func (r *remediation) slotID() string {
	if r.Slot.GrantedAt == nil {
		return ""
	}
	return r.slotRequest().ID
}

// slotRequest is the request, the same in every run. It is as old as the node's illness: who waits longest goes first.
func (r *remediation) slotRequest() api.SlotRequest {
	created := r.in.Since
	if created.IsZero() || created.After(r.Progress.StartedAt) {
		created = r.Progress.StartedAt
	}
	return api.SlotRequest{RunID: r.Info.Run, Request: schedule.Request{
		ID: r.Info.Run + "/1", Node: r.in.Node, Requestor: api.RemediationRequestor(r.in.Check), Created: created, Kind: schedule.KindControlPlane,
	}}
}

// slotEffects ask for the slot, or give it back.
func (r *remediation) slotEffects() (all []controller.Effect) {
	signal := controller.Signal{To: api.SchedulerID(r.Info.Cluster)}
	if r.isSlotUnknown() {
		all = append(all, r.act(seeLeft, "", "see what was begun for "+r.in.Node, controller.Call{Func: call.Health.SeeLeftWork, Within: tidyWithin},
			activity.LeftInput{WorkflowID: r.Info.WorkflowID}))
	}
	switch {
	case r.wantsSlot() && r.lacksSlot():
		signal.Meta = controller.Meta{Key: controller.Key{Kind: sendRequest}, Summary: "ask for the slot of a control-plane node", Repeat: repeatRequest}
		signal.Name, signal.Payload = api.SignalSlotRequest, r.slotRequest()
	case !r.wantsSlot() && r.Slot.Asked:
		signal.Meta = controller.Meta{Key: controller.Key{Kind: sendRelease}, Summary: "give back the slot of a control-plane node"}
		signal.Name, signal.Payload = api.SignalSlotRelease, api.SlotRelease{RequestID: r.slotRequest().ID}
	default:
		return all
	}
	return append(all, signal)
}

func (r *remediation) asked(o controller.Outcome, now time.Time) {
	r.Slot.Asked = r.Slot.Asked || !call.IsNobody(o.Err)
	if o.Err != nil && r.lacksSlot() {
		r.wait("the scheduler, of which it asks the slot of a control-plane node: " + call.Cause(o.Err))
		r.Rest(o.Key, schedulerWithin, now)
	}
}

// gaveBack takes whether the scheduler received that the slot is given back. One that does not run finds out when it begins.
func (r *remediation) gaveBack(o controller.Outcome) {
	if o.Err == nil || call.IsNobody(o.Err) {
		r.Slot = slot{}
	}
}

// askForSlot records that the node is one of the control plane, or that the slot is not held any more: the slot is requested
// at once.
func (r *remediation) askForSlot(now time.Time) {
	r.Progress.ControlPlane, r.Slot.GrantedAt = true, nil
	r.wait("its slot: the node is one of the control plane")
	r.noteSlot()
	r.ClearBackoff(controller.Key{Kind: sendRequest})
}

// The answers of the scheduler.
type (
	granted struct{ answer }
	pending struct{ answer }
	answer  struct{ api.SlotAnswer }
)

func (a answer) Check(r *remediation, _ time.Time) error {
	switch {
	case a.RequestID != r.slotRequest().ID:
		return fmt.Errorf("requestId: %.100q is no request of this remediation", a.RequestID)
	case !r.wantsSlot():
		return errors.New("it wants no slot")
	default:
		return nil
	}
}

// Apply believes the grant: the activity that begins a step asks the scheduler.
func (a granted) Apply(r *remediation, now time.Time) string {
	if r.Slot.GrantedAt == nil {
		r.Slot.GrantedAt = &now
		r.wait("")
		r.noteSlot()
	}
	return "a step may begin"
}

func (a pending) Apply(r *remediation, _ time.Time) string {
	if !r.lacksSlot() {
		return "it has its slot"
	}
	r.wait("its slot: " + a.Reason)
	return "noted"
}

// slotWanted asks which slot it holds or wants, as a scheduler that begins anew does.
type slotWanted struct{}

// Answer implements controller.Question. Without an answer the scheduler assumes that it holds a slot, and asks again.
func (slotWanted) Answer(r *remediation, _ time.Time) (any, error) {
	if r.isSlotUnknown() {
		return nil, errors.New("it is not known yet whether anything is at work that was begun before: ask again")
	}
	wanted := api.SlotWanted{SlotRequest: r.slotRequest(), Wants: r.wantsSlot(), GrantedAt: r.Slot.GrantedAt}
	if wanted.GrantedAt == nil && r.Slot.Left {
		wanted.GrantedAt = &r.Progress.StartedAt
	}
	return wanted, nil
}

// giveUp ends a remediation that has made nothing: its check tries again later. To wait would keep another node from its turn.
func (r *remediation) giveUp(why string) {
	r.Ending = bounds.Cut(why, bounds.Text)
	r.Progress.Failure = r.Ending
}
