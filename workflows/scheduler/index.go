package scheduler

import (
	"slices"

	"drydock/api"
	"drydock/rules/schedule"
)

// requestIndex finds requests without a walk over all of them: a burst of thousands would be thousands of walks. It is
// only looked up in, and never ranged over.
type requestIndex struct {
	byID map[string]indexed
	// byRun are the requests of a run: one, but for what a rebuild finds.
	byRun map[string][]string
}

type indexed struct {
	run  string
	held bool
}

func newRequestIndex() requestIndex {
	return requestIndex{byID: map[string]indexed{}, byRun: map[string][]string{}}
}

func (x requestIndex) add(id, run string, held bool) {
	if before, known := x.byID[id]; !known {
		x.byRun[run] = append(x.byRun[run], id)
	} else {
		run = before.run
	}
	x.byID[id] = indexed{run: run, held: held}
}

func (x requestIndex) remove(id string) {
	run := x.byID[id].run
	delete(x.byID, id)
	rest := slices.DeleteFunc(x.byRun[run], func(other string) bool { return other == id })
	if len(rest) == 0 {
		delete(x.byRun, run)
		return
	}
	x.byRun[run] = rest
}

func (s *scheduler) hold(h api.Holder) {
	s.Holders = append(s.Holders, h)
	s.index.add(h.RequestID, h.RunID, true)
}

func (s *scheduler) wait(r api.SlotRequest) {
	s.Pending = append(s.Pending, api.PendingRequest{SlotRequest: r, Code: schedule.Unobserved, Reason: "not looked at yet"})
	s.index.add(r.ID, r.RunID, false)
}

// reindex finds what was carried from the run before.
func (s *scheduler) reindex() {
	s.index = newRequestIndex()
	for _, h := range s.Holders {
		s.index.add(h.RequestID, h.RunID, true)
	}
	for _, p := range s.Pending {
		s.index.add(p.ID, p.RunID, false)
	}
}

func (s *scheduler) holder(requestID string) (api.Holder, bool) {
	if !s.index.byID[requestID].held {
		return api.Holder{}, false
	}
	i := slices.IndexFunc(s.Holders, func(h api.Holder) bool { return h.RequestID == requestID })
	if i < 0 {
		return api.Holder{}, false
	}
	return s.Holders[i], true
}

// forget drops a request that is answered for good, or withdrawn.
func (s *scheduler) forget(requestID string) {
	delete(s.Told, requestID)
	delete(s.Seen, requestID)
	s.index.remove(requestID)
}
