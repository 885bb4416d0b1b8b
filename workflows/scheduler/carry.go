package scheduler

import (
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/schedule"
)

// packAbove is how many requests are carried to the next run in plain JSON, which a person can read in its input. More are packed: a server
// takes 2 MB, and 15,000 requests are three times that. Packed requests are an argument of their own, since in JSON bytes are a third
// longer.
const packAbove = 1000

// packedRequests are what must not be lost of the pending requests; the rest is found out again. Each field is a column, since like
// compresses best next to like. Columns that a newer release adds are not handed on: maintenances repeat their requests.
type packedRequests struct {
	// ID is without the run's where it begins with that.
	ID        []string        `json:"id"`
	RunID     []string        `json:"runId"`
	Node      []string        `json:"node"`
	Requestor []string        `json:"requestor"`
	Priority  []int           `json:"priority"`
	Created   []time.Time     `json:"created"`
	Sent      []schedule.Code `json:"told"`
	Seen      []bool          `json:"seen"`
	// Later is absent if no request says anything that 0.1.0 does not know.
	Later []laterFields `json:"later,omitempty"`
}

// laterFields are those of one request that 0.1.0 does not know.
type laterFields struct {
	Windows     []string            `json:"windows,omitempty"`
	Expected    period.Duration     `json:"expected,omitzero"`
	Ignore      string              `json:"ignore,omitempty"`
	Gang        *schedule.Gang      `json:"gang,omitempty"`
	Remediation bool                `json:"remediation,omitempty"`
	Kind        schedule.HolderKind `json:"kind,omitempty"`
}

// pack takes the requests out of a state where they are many.
func pack(state State) (rest State, packed []byte, err error) {
	if len(state.Pending) <= packAbove {
		return state, nil, nil
	}
	var all packedRequests
	later := slices.ContainsFunc(state.Pending, func(p api.PendingRequest) bool { return isLater(p.Request) })
	for _, p := range state.Pending {
		all.ID = append(all.ID, strings.TrimPrefix(p.ID, p.RunID))
		all.RunID = append(all.RunID, p.RunID)
		all.Node = append(all.Node, p.Node)
		all.Requestor = append(all.Requestor, p.Requestor)
		all.Priority = append(all.Priority, p.Priority)
		all.Created = append(all.Created, p.Created)
		all.Sent = append(all.Sent, state.Sent[p.ID].Code)
		all.Seen = append(all.Seen, state.Seen[p.ID])
		if later {
			all.Later = append(all.Later, laterFields{p.Windows, p.ExpectedDuration, p.IgnoreWindows, p.Gang, p.Remediation, p.Kind})
		}
	}
	packed, err = api.Pack(all)
	state.Pending, state.Sent, state.Seen, state.Observed = nil, nil, nil, nil
	return state, packed, err
}

func unpack(state State, packed []byte) (State, error) {
	if len(packed) == 0 {
		return state, nil
	}
	var all packedRequests
	if err := api.Unpack(packed, &all); err != nil {
		return state, err
	}
	for i, runID := range all.RunID {
		id := all.ID[i]
		if strings.HasPrefix(id, "/") {
			id = runID + id
		}
		r := schedule.Request{ID: id, Node: all.Node[i], Requestor: all.Requestor[i], Priority: all.Priority[i], Created: all.Created[i]}
		if len(all.Later) > 0 {
			l := all.Later[i]
			r.Windows, r.ExpectedDuration, r.IgnoreWindows = l.Windows, l.Expected, l.Ignore
			r.Gang, r.Remediation, r.Kind = l.Gang, l.Remediation, l.Kind
		}
		state.Pending = append(state.Pending, unobserved(api.SlotRequest{RunID: runID, Request: r}))
		if all.Sent[i] != "" {
			state.Sent[id] = SentReason{Code: all.Sent[i]}
		}
		if all.Seen[i] {
			state.Seen[id] = true
		}
	}
	return state, nil
}
