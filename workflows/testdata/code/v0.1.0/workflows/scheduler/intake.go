package scheduler

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/schedule"
)

// intake takes requests for slots, and hears of slots that are given back. While it is not known who holds a slot it keeps signals waiting,
// in their order: a slot that is given back before its holder is known would be held for ever.
type intake struct {
	*loop
	cluster   string
	decisions *decisions
	ledger    *ledger
	outbox    *outbox

	waiting []arrival
	// old are those of them that came before maintenances were asked what they want.
	old int
	// open tells whether it is known who holds a slot, and free takes a slot back, or a request for one.
	open func() bool
	free func(requestID string)
	// returns finds out whether a slot is given back of which somebody says so.
	returns *returns
	// overQuota is why a maintenance is turned down whose requestor has too many that wait, empty where it is not.
	overQuota func(api.SlotRequest) string
}

// arrival is a signal: one of the two.
type arrival struct {
	request *api.SlotRequest
	release *api.SlotRelease
}

// pass lets a signal take effect, or has it wait.
func (i *intake) pass(a arrival) {
	if i.open() {
		i.enter(a)
		return
	}
	i.waiting = append(i.waiting, a)
}

// asking notes that maintenances are asked from now on what they want.
func (i *intake) asking() { i.old = len(i.waiting) }

// admit lets those that waited take effect. What runs had asked for before they said what they want is out of date.
func (i *intake) admit(spoken map[string]bool) {
	waiting, old := i.waiting, i.old
	i.waiting, i.old = nil, 0
	for n, a := range waiting {
		if a.request == nil || n >= old || !spoken[a.request.RunID] {
			i.enter(a)
		}
	}
}

func (i *intake) enter(a arrival) {
	i.dirty = true
	if a.request != nil {
		i.request(*a.request)
	} else {
		i.release(*a.release)
	}
}

// request queues a request, once: a repeated one is answered again.
func (i *intake) request(r api.SlotRequest) {
	if err := r.Validate(i.cluster, i.now()); err != nil {
		i.decisions.record("", "ignored a slot request", err.Error())
		return
	}
	if h, ok := i.ledger.holder(r.ID); ok {
		i.outbox.granted(h)
		return
	}
	if i.ledger.knows(r.ID) {
		i.ledger.tellOnceMore(r.ID)
		return
	}
	if i.ledger.later(r) {
		// It was said before a later one and delivered after it, or the maintenance was reset to a time before that.
		i.returns.ask(holderOf(r))
		return
	}
	// It asks again only after it gave the one before back; a release that was lost never makes it wait for its own slot.
	held := false
	for _, id := range i.ledger.requestsOf(r.RunID) {
		held = held || i.ledger.holds(id)
		i.returns.say(id, &r)
	}
	if held {
		return // it is queued once the slot is found to be given back
	}
	if reason := i.overQuota(r); reason != "" {
		i.outbox.refuse(api.PendingRequest{SlotRequest: r, Code: schedule.Quota, Reason: reason}, false)
		return
	}
	i.ledger.enqueue(r)
}

// release takes a slot back, and records who did that where it was not the holder.
func (i *intake) release(r api.SlotRelease) {
	if err := r.Validate(); err != nil {
		i.decisions.record("", "ignored a slot release", err.Error())
		return
	}
	if r.By != "" {
		i.decisions.record(r.By, "said that slot request "+r.RequestID+" is given back", r.Why)
	}
	i.returns.say(r.RequestID, nil)
}

// holderOf is who would hold the slot that is asked for.
func holderOf(r api.SlotRequest) api.Holder {
	return api.Holder{Grant: schedule.Grant{RequestID: r.ID, Node: r.Node, Requestor: r.Requestor}, RunID: r.RunID}
}

// supersede frees what a run had asked for before, on its own word.
func (i *intake) supersede(runID string) {
	for _, id := range i.ledger.requestsOf(runID) {
		i.free(id)
	}
}
