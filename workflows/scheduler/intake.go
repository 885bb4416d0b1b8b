package scheduler

import (
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

// intake takes requests for slots, and releases of slots. While it is not known who holds a slot it keeps them waiting, in their order: a
// slot that is given back before its holder is known would be held for ever.
type intake struct {
	*scheduler
	waiting []arrival
	// before counts those of waiting that came before maintenances were asked what they want.
	before int
}

type arrival struct {
	request *api.SlotRequest
	release *api.SlotRelease
}

func (i *intake) accept(a arrival) {
	switch {
	case !i.Rebuilt:
		i.waiting = append(i.waiting, a)
		return
	case a.request != nil:
		i.request(*a.request)
	default:
		i.release(*a.release)
	}
	i.dirty = true
}

// acceptWaiting leaves out what runs that have answered had requested before: it is out of date.
func (i *intake) acceptWaiting(answered map[string]bool) {
	waiting, before := i.waiting, i.before
	i.waiting, i.before = nil, 0
	for n, a := range waiting {
		if a.request == nil || n >= before || !answered[a.request.RunID] {
			i.accept(a)
		}
	}
}

// request queues a request once. A repeated one is answered again.
func (i *intake) request(r api.SlotRequest) {
	if err := r.Validate(i.cluster, i.now()); err != nil {
		i.decisions.record("", "ignored a slot request", err.Error())
		return
	}
	if isLater(r.Request) && !i.isUpgraded(laterRequests) {
		return
	}
	if h, held := i.slots.holder(r.ID); held {
		if h.Assumed {
			i.releases.verify(r.ID, nil) // it can answer by now
			return
		}
		i.outbox.sendGrant(h)
		return
	}
	if i.slots.knows(r.ID) {
		i.slots.join(r)
		i.slots.sendAgain(r.ID)
		return
	}
	if i.slots.hasLater(r) {
		// It was sent before the later one and delivered after it, or the maintenance was reset to a time before that.
		i.releases.query(holderOf(r))
		return
	}
	// A run asks again only after it gave the slot before back: a release that was lost must not make it wait for its own slot.
	held := false
	for _, id := range i.slots.requestsOf(r.RunID) {
		held = held || i.slots.holds(id)
		i.releases.verify(id, &r)
	}
	if held {
		return // it is queued once the slot is found to be given back
	}
	if reason := i.overQuota(r); reason != "" {
		i.outbox.sendRefusal(api.PendingRequest{SlotRequest: r, Code: schedule.Quota, Reason: reason}, false)
		return
	}
	i.slots.enqueue(r)
}

// overQuota is why a request is turned down, empty if it is not. That happens to the first request of a maintenance only: neither when
// its node was given back, nor when a scheduler begins anew, is a later one turned down.
func (i *intake) overQuota(r api.SlotRequest) string {
	if !i.Rebuilt || r.Remediation || r.Kind != schedule.KindMaintenance || !api.IsFirstRequest(r.ID) {
		return ""
	}
	waiting := 0
	for _, p := range i.Pending {
		if p.Requestor == r.Requestor && !p.Remediation && p.Kind == schedule.KindMaintenance {
			waiting++
		}
	}
	return i.Limits.Quotas.OverPending(r.Requestor, waiting)
}

// release records who gives the slot back where that is not the holder.
func (i *intake) release(r api.SlotRelease) {
	if err := r.Validate(); err != nil {
		i.decisions.record("", "ignored a slot release", err.Error())
		return
	}
	if r.By != "" {
		i.decisions.record(r.By, "said that slot request "+r.RequestID+" is given back", r.Why)
	}
	i.releases.verify(r.RequestID, nil)
}
