package scheduler

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"drydock.dev/drydock/activities/cluster"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

const (
	// releasedFor is how long a released node is remembered: watches lag behind by less.
	releasedFor = 30 * time.Second
	// resendAfter keeps a maintenance's history short while the reasons change.
	resendAfter = 30 * time.Second
)

// slots are the requests that hold a slot, and those that wait for one.
type slots struct {
	*State
	// firstUnsent is the place in Pending before which no request needs a reason sent: a walk over thousands with every answer is too slow.
	firstUnsent int
	// known are the holding and the pending requests by ID, byRun their IDs by run: one, except for what a rebuild finds. Neither is
	// ranged over.
	known map[string]*knownRequest
	byRun map[string][]string
	// gangs are those of pending requests by name, each once for all its members: the size that was named last counts for all.
	gangs map[string]*schedule.Gang
}

type knownRequest struct {
	run  string
	held bool
	gang *schedule.Gang
}

func newSlots(state *State) *slots {
	s := &slots{State: state, known: map[string]*knownRequest{}, byRun: map[string][]string{}, gangs: map[string]*schedule.Gang{}}
	for _, h := range s.Holders {
		s.index(h.RequestID, h.RunID).held = true
	}
	for i := range s.Pending {
		p := &s.Pending[i]
		p.Gang = s.gangOf(p.Gang)
		r := s.index(p.ID, p.RunID)
		r.held, r.gang = false, p.Gang
	}
	return s
}

func (s *slots) index(id, run string) *knownRequest {
	if s.known[id] == nil {
		s.known[id] = &knownRequest{run: run}
		s.byRun[run] = append(s.byRun[run], id)
	}
	return s.known[id]
}

func (s *slots) gangOf(named *schedule.Gang) *schedule.Gang {
	if named == nil {
		return nil
	}
	if s.gangs[named.Name] == nil {
		s.gangs[named.Name] = &schedule.Gang{Name: named.Name}
	}
	s.gangs[named.Name].Size = named.Size
	return s.gangs[named.Name]
}

// join makes a pending request a member of the gang with which it is repeated, or of none.
func (s *slots) join(r api.SlotRequest) {
	gang := s.gangOf(r.Gang)
	if s.known[r.ID].gang == gang {
		return
	}
	s.known[r.ID].gang = gang
	if i := slices.IndexFunc(s.Pending, func(p api.PendingRequest) bool { return p.ID == r.ID }); i >= 0 {
		s.Pending[i].Gang = gang
	}
}

func (s *slots) hold(h api.Holder) {
	s.Holders = append(s.Holders, h)
	s.index(h.RequestID, h.RunID).held = true
}

func (s *slots) enqueue(r api.SlotRequest) {
	r.Gang = s.gangOf(r.Gang)
	s.Pending = append(s.Pending, unobserved(r))
	known := s.index(r.ID, r.RunID)
	known.held, known.gang = false, r.Gang
}

// unobserved is a request whose node was not observed since it was made.
func unobserved(r api.SlotRequest) api.PendingRequest {
	return api.PendingRequest{SlotRequest: r, Code: schedule.Unobserved, Reason: "not looked at yet"}
}

// holderOf is the holder that a granted request would have.
func holderOf(r api.SlotRequest) api.Holder {
	h := api.Holder{Grant: schedule.Grant{RequestID: r.ID, Node: r.Node, Requestor: r.Requestor, Remediation: r.Remediation, Kind: r.Kind}, RunID: r.RunID}
	if r.Gang != nil {
		h.Gang = r.Gang.Name
	}
	return h
}

// grant leaves the request among the pending ones: keepWaiting drops it with the others that were granted.
func (s *slots) grant(p api.PendingRequest, now time.Time) api.Holder {
	h := holderOf(p.SlotRequest)
	h.GrantedAt = now
	s.forget(p.ID)
	s.hold(h)
	return h
}

func (s *slots) holder(requestID string) (api.Holder, bool) {
	if h := s.find(requestID); h != nil {
		return *h, true
	}
	return api.Holder{}, false
}

// find returns nil for a request that holds no slot.
func (s *slots) find(requestID string) *api.Holder {
	if !s.holds(requestID) {
		return nil
	}
	i := slices.IndexFunc(s.Holders, func(h api.Holder) bool { return h.RequestID == requestID })
	if i < 0 {
		return nil
	}
	return &s.Holders[i]
}

func (s *slots) holds(requestID string) bool { return s.knows(requestID) && s.known[requestID].held }

func (s *slots) knows(requestID string) bool { return s.known[requestID] != nil }

func (s *slots) requestsOf(runID string) []string { return slices.Clone(s.byRun[runID]) }

func (s *slots) free(requestID string, now time.Time) {
	if h, held := s.holder(requestID); held && h.IsMarked() {
		s.Released = append(s.Released, ReleasedNode{Node: h.Node, RunID: h.RunID, At: now})
	}
	s.Pending = slices.DeleteFunc(s.Pending, func(p api.PendingRequest) bool { return p.ID == requestID })
	s.drop(requestID)
}

// drop takes a slot from a holder whose node stays as it is.
func (s *slots) drop(requestID string) {
	s.Holders = slices.DeleteFunc(s.Holders, func(h api.Holder) bool { return h.RequestID == requestID })
	s.forget(requestID)
}

// forget drops what is known of a request that is answered for good, or withdrawn.
func (s *slots) forget(requestID string) {
	s.sendAgain(requestID)
	delete(s.Seen, requestID)
	known := s.known[requestID]
	if known == nil {
		return
	}
	delete(s.known, requestID)
	s.byRun[known.run] = slices.DeleteFunc(s.byRun[known.run], func(id string) bool { return id == requestID })
	if len(s.byRun[known.run]) == 0 {
		delete(s.byRun, known.run)
	}
}

// expects reports whether a mark is that of a holder, or of one that gave its node back a moment ago.
func (s *slots) expects(node, run string) bool {
	_, holds := s.holderOfRun(node, run)
	return holds || slices.ContainsFunc(s.Released, func(r ReleasedNode) bool { return r.Node == node && r.RunID == run })
}

func (s *slots) holderOfRun(node, run string) (api.Holder, bool) {
	for _, id := range s.byRun[run] {
		if h, held := s.holder(id); held && h.Node == node {
			return h, true
		}
	}
	return api.Holder{}, false
}

func (s *slots) hasLater(r api.SlotRequest) bool {
	return slices.ContainsFunc(s.byRun[r.RunID], func(id string) bool { return attempt(id) > attempt(r.ID) })
}

// attempt is the number in a request's ID, 0 where it has none.
func attempt(id string) int {
	_, text, _ := strings.Cut(id, "/")
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// requeue takes back a request whose refusal was not sent, so that its node is observed once more.
func (s *slots) requeue(p api.PendingRequest, seen bool) {
	if s.knows(p.ID) {
		return
	}
	s.enqueue(p.SlotRequest)
	if seen {
		s.Seen[p.ID] = true
	}
}

func (s *slots) forgetReleased(now time.Time) {
	s.Released = slices.DeleteFunc(s.Released, func(r ReleasedNode) bool { return now.Sub(r.At) > releasedFor })
}

// pendingByID must not be ranged over.
func (s *slots) pendingByID() map[string]api.PendingRequest {
	all := make(map[string]api.PendingRequest, len(s.Pending))
	for _, p := range s.Pending {
		all[p.ID] = p
	}
	return all
}

// keepWaiting notes why requests still wait, in their new order, and returns those whose node does not exist.
func (s *slots) keepWaiting(refused []schedule.Refusal, requests map[string]api.PendingRequest) (missing []api.PendingRequest) {
	s.Pending, s.firstUnsent = s.Pending[:0], 0
	for _, refusal := range refused {
		p := requests[refusal.Request.ID]
		p.Code, p.Reason, p.OpensAt = refusal.Code, refusal.Reason, nil
		if !refusal.Until.IsZero() {
			p.OpensAt = &refusal.Until
		}
		if refusal.Code == schedule.NodeMissing {
			missing = append(missing, p)
			continue
		}
		if refusal.Code != schedule.Unobserved && refusal.Code != schedule.Frozen {
			s.Seen[p.ID] = true
		}
		s.Pending = append(s.Pending, p)
	}
	return missing
}

// takeUnsent returns the first pending requests whose reason is to be sent, at most this many: each once, and again when the kind of
// the reason changes. They count as sent. With later, a reason changed too soon after another was sent.
func (s *slots) takeUnsent(now time.Time, most int) (unsent []api.PendingRequest, later bool) {
	for i := s.firstUnsent; i < len(s.Pending) && len(unsent) < most; i++ {
		p := s.Pending[i]
		if !later {
			s.firstUnsent = i
		}
		last, known := s.Sent[p.ID]
		if p.Code == schedule.Unobserved || p.Code == schedule.WindowUnknown || known && last.Code == kindOf(p) {
			continue
		}
		if known && now.Sub(last.At) < resendAfter {
			later = true
			continue
		}
		s.Sent[p.ID] = SentReason{Code: kindOf(p), At: now}
		unsent = append(unsent, p)
	}
	return unsent, later
}

// kindOf is the part of a reason whose change is sent. Of a window it is everything: the reason says when the window opens, and the
// maintenance shows that.
func kindOf(p api.PendingRequest) schedule.Code {
	if p.Code == schedule.Window {
		return p.Code + schedule.Code(": "+p.Reason)
	}
	return p.Code
}

func (s *slots) sendAgain(requestID string) {
	s.firstUnsent = 0
	delete(s.Sent, requestID)
}

// waitsForCluster reports whether a change of the cluster may end the wait of a request.
func (s *slots) waitsForCluster() bool {
	return slices.ContainsFunc(s.Pending, func(p api.PendingRequest) bool { return p.Code.NeedsCluster() })
}

func (s *slots) waitsUnobserved() bool {
	return slices.ContainsFunc(s.Pending, func(p api.PendingRequest) bool { return p.Code == schedule.Unobserved })
}

func (s *slots) marks() []cluster.KnownMark {
	known := s.releasedMarks()
	for _, h := range s.Holders {
		if h.IsMarked() {
			known = append(known, cluster.KnownMark{Node: h.Node, RunID: h.RunID})
		}
	}
	return known
}

func (s *slots) releasedMarks() []cluster.KnownMark {
	var known []cluster.KnownMark
	for _, r := range s.Released {
		known = append(known, cluster.KnownMark{Node: r.Node, RunID: r.RunID, Until: r.At.Add(releasedFor)})
	}
	return known
}

// nodes are those that a decision depends on, and those that maintenances hold or held until a moment ago.
func (s *slots) nodes() (all, ours []string) {
	for _, h := range s.Holders {
		if needsNode(h.Kind) {
			all = append(all, h.Node)
		}
		if h.IsMarked() {
			ours = append(ours, h.Node)
		}
	}
	for _, r := range s.Released {
		ours = append(ours, r.Node)
	}
	for _, p := range s.Pending {
		if needsNode(p.Kind) {
			all = append(all, p.Node)
		}
	}
	slices.Sort(all)
	slices.Sort(ours)
	return slices.Compact(all), slices.Compact(ours)
}

// needsNode reports whether a decision depends on what was observed of the node.
func needsNode(kind schedule.HolderKind) bool { return kind != schedule.KindControlPlane }
