package scheduler

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/cluster"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/schedule"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// releasedFor is how long a released node is remembered: watches lag behind by less.
	releasedFor = 30 * time.Second
	// tellAgain keeps a maintenance's history short while the reasons change.
	tellAgain = 30 * time.Second
)

// ledger is the account of who holds a slot and who waits for one. It acts on nobody, and is told what time it is.
type ledger struct {
	holders  api.List[api.Holder]
	pending  []api.PendingRequest
	released api.List[ReleasedNode]
	// told and seen are by request: what it was last told, and whether its node was there.
	told  map[string]Told
	seen  map[string]bool
	index requestIndex
}

// newLedger goes on with what was carried from the run before.
func newLedger(s State) *ledger {
	l := &ledger{holders: s.Holders, pending: s.Pending, released: s.Released, told: s.Told, seen: s.Seen, index: newRequestIndex()}
	for _, h := range l.holders {
		l.index.add(h.RequestID, h.RunID, true)
	}
	for _, p := range l.pending {
		l.index.add(p.ID, p.RunID, false)
	}
	return l
}

// empty tells that nobody holds a slot or waits for one.
func (l *ledger) empty() bool { return len(l.holders) == 0 && len(l.pending) == 0 }

func (l *ledger) hold(h api.Holder) {
	l.holders = append(l.holders, h)
	l.index.add(h.RequestID, h.RunID, true)
}

func (l *ledger) enqueue(r api.SlotRequest) {
	l.pending = append(l.pending, unobserved(r))
	l.index.add(r.ID, r.RunID, false)
}

// unobserved is a request whose node was not observed since it was made.
func unobserved(r api.SlotRequest) api.PendingRequest {
	return api.PendingRequest{SlotRequest: r, Code: schedule.Unobserved, Reason: "not looked at yet"}
}

// grant moves a request from those that wait to those that hold.
func (l *ledger) grant(p api.PendingRequest, now time.Time) api.Holder {
	h := api.Holder{
		Grant: schedule.Grant{RequestID: p.ID, Node: p.Node, Requestor: p.Requestor},
		RunID: p.RunID, GrantedAt: now,
	}
	l.forget(p.ID)
	l.hold(h)
	return h
}

func (l *ledger) holder(requestID string) (api.Holder, bool) {
	if !l.holds(requestID) {
		return api.Holder{}, false
	}
	i := slices.IndexFunc(l.holders, func(h api.Holder) bool { return h.RequestID == requestID })
	if i < 0 {
		return api.Holder{}, false
	}
	return l.holders[i], true
}

func (l *ledger) holds(requestID string) bool { return l.index.byID[requestID].held }

// knows tells whether a request holds or waits.
func (l *ledger) knows(requestID string) bool {
	_, known := l.index.byID[requestID]
	return known
}

// requestsOf are all requests of a run.
func (l *ledger) requestsOf(runID string) []string { return slices.Clone(l.index.byRun[runID]) }

// free takes a slot back, or a request that waits for one.
func (l *ledger) free(requestID string, now time.Time) {
	if h, ok := l.holder(requestID); ok {
		l.released = append(l.released, ReleasedNode{Node: h.Node, RunID: h.RunID, At: now})
		l.holders = slices.DeleteFunc(l.holders, func(h api.Holder) bool { return h.RequestID == requestID })
	}
	l.pending = slices.DeleteFunc(l.pending, func(p api.PendingRequest) bool { return p.ID == requestID })
	l.forget(requestID)
}

// drop takes a slot from a holder whose node stays as it is.
func (l *ledger) drop(requestID string) {
	l.holders = slices.DeleteFunc(l.holders, func(h api.Holder) bool { return h.RequestID == requestID })
	l.forget(requestID)
}

// expects tells whether a mark is that of a holder, or of one that gave its node back a moment ago.
func (l *ledger) expects(node, run string) bool {
	if _, holds := l.holderOfRun(node, run); holds {
		return true
	}
	return slices.ContainsFunc(l.released, func(r ReleasedNode) bool { return r.Node == node && r.RunID == run })
}

// holderOfRun is the holder of a node that a run is.
func (l *ledger) holderOfRun(node, run string) (api.Holder, bool) {
	for _, id := range l.index.byRun[run] {
		if h, ok := l.holder(id); ok && h.Node == node {
			return h, true
		}
	}
	return api.Holder{}, false
}

// later tells whether a run has made a later request than this one: what is asked for once more after that is late.
func (l *ledger) later(r api.SlotRequest) bool {
	return slices.ContainsFunc(l.index.byRun[r.RunID], func(id string) bool { return attempt(id) > attempt(r.ID) })
}

// attempt is the number in a request's ID.
func attempt(id string) int {
	_, text, _ := strings.Cut(id, "/")
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// askAgain takes back a request that was to be refused, for its node to be looked at once more.
func (l *ledger) askAgain(p api.PendingRequest, seen bool) {
	if l.knows(p.ID) {
		return
	}
	l.enqueue(p.SlotRequest)
	if seen {
		l.seen[p.ID] = true
	}
}

// forget drops what is known of a request that is answered for good, or withdrawn.
func (l *ledger) forget(requestID string) {
	delete(l.told, requestID)
	delete(l.seen, requestID)
	l.index.remove(requestID)
}

func (l *ledger) forgetReleased(now time.Time) {
	l.released = slices.DeleteFunc(l.released, func(r ReleasedNode) bool { return now.Sub(r.At) > releasedFor })
}

// candidates are the requests that wait and the grants in force, as a decision takes them.
func (l *ledger) candidates() (pending []schedule.Request, granted []schedule.Grant) {
	for _, p := range l.pending {
		pending = append(pending, p.Request)
	}
	for _, h := range l.holders {
		granted = append(granted, h.Grant)
	}
	return pending, granted
}

// pendingByID must not be ranged over.
func (l *ledger) pendingByID() map[string]api.PendingRequest {
	all := make(map[string]api.PendingRequest, len(l.pending))
	for _, p := range l.pending {
		all[p.ID] = p
	}
	return all
}

// keepWaiting notes why requests still wait, in their new order, and returns those that wait for nothing: their node
// does not exist.
func (l *ledger) keepWaiting(refused []schedule.Refusal, requests map[string]api.PendingRequest) (missing []api.PendingRequest) {
	l.pending = l.pending[:0]
	for _, refusal := range refused {
		p := requests[refusal.Request.ID]
		p.Code, p.Reason = refusal.Code, refusal.Reason
		if refusal.Code == schedule.NodeMissing {
			missing = append(missing, p)
			continue
		}
		if refusal.Code != schedule.Unobserved && refusal.Code != schedule.Frozen {
			l.seen[p.ID] = true
		}
		l.pending = append(l.pending, p)
	}
	return missing
}

// takeUntold are the first pending requests that have to be told why they wait, at most so many: each once, and again
// when the kind of the reason changes. They count as told from now on.
func (l *ledger) takeUntold(now time.Time, most int) (untold []api.PendingRequest) {
	for _, p := range l.pending {
		if len(untold) >= most {
			break
		}
		last, known := l.told[p.ID]
		if p.Code == schedule.Unobserved || (known && (last.Code == p.Code || now.Sub(last.At) < tellAgain)) {
			continue
		}
		l.told[p.ID] = Told{Code: p.Code, At: now}
		untold = append(untold, p)
	}
	return untold
}

// tellOnceMore has a request told again why it waits.
func (l *ledger) tellOnceMore(requestID string) { delete(l.told, requestID) }

// waitsUnobserved tells whether requests wait whose nodes' state is not known.
func (l *ledger) waitsUnobserved() bool {
	return slices.ContainsFunc(l.pending, func(p api.PendingRequest) bool { return p.Code == schedule.Unobserved })
}

// marks are those that are expected on nodes: of holders for as long as they hold, of others for a moment.
func (l *ledger) marks() []cluster.KnownMark {
	known := l.lately()
	for _, h := range l.holders {
		known = append(known, cluster.KnownMark{Node: h.Node, RunID: h.RunID})
	}
	return known
}

// lately are the marks of those that gave their node back a moment ago.
func (l *ledger) lately() []cluster.KnownMark {
	var known []cluster.KnownMark
	for _, r := range l.released {
		known = append(known, cluster.KnownMark{Node: r.Node, RunID: r.RunID, Until: r.At.Add(releasedFor)})
	}
	return known
}

// nodes are those that a decision depends on, and of these the ones that are held or were until a moment ago.
func (l *ledger) nodes() (all, ours []string) {
	for _, h := range l.holders {
		all = append(all, h.Node)
		ours = append(ours, h.Node)
	}
	for _, r := range l.released {
		ours = append(ours, r.Node)
	}
	for _, p := range l.pending {
		all = append(all, p.Node)
	}
	slices.Sort(all)
	slices.Sort(ours)
	return slices.Compact(all), slices.Compact(ours)
}
