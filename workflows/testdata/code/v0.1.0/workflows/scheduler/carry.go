package scheduler

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/schedule"
	"strings"
	"time"
)

// packAbove is how many requests are carried to the next run in plain JSON, which a person can read in its input. More
// are packed: a server takes 2 MB, and 15,000 requests are three times that. Packed requests are an argument of their
// own, since in JSON bytes are a third longer.
const packAbove = 1000

// packedRequests are what must not be forgotten of the requests that wait; the rest is found out again. Each field is
// a column, since like compresses best next to like.
type packedRequests struct {
	// ID is without the run's where it begins with that.
	ID        []string        `json:"id"`
	RunID     []string        `json:"runId"`
	Node      []string        `json:"node"`
	Requestor []string        `json:"requestor"`
	Priority  []int           `json:"priority"`
	Created   []time.Time     `json:"created"`
	Told      []schedule.Code `json:"told"`
	Seen      []bool          `json:"seen"`
}

// pack takes the requests out of a state where they are many.
func pack(state State) (rest State, packed []byte, err error) {
	if len(state.Pending) <= packAbove {
		return state, nil, nil
	}
	var all packedRequests
	for _, p := range state.Pending {
		all.ID = append(all.ID, strings.TrimPrefix(p.ID, p.RunID))
		all.RunID = append(all.RunID, p.RunID)
		all.Node = append(all.Node, p.Node)
		all.Requestor = append(all.Requestor, p.Requestor)
		all.Priority = append(all.Priority, p.Priority)
		all.Created = append(all.Created, p.Created)
		all.Told = append(all.Told, state.Told[p.ID].Code)
		all.Seen = append(all.Seen, state.Seen[p.ID])
	}
	packed, err = api.Pack(all)
	state.Pending, state.Told, state.Seen, state.Observed = nil, nil, nil, nil
	return state, packed, err
}

// unpack puts the requests back into a state out of which they were packed.
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
		state.Pending = append(state.Pending, unobserved(api.SlotRequest{RunID: runID, Request: schedule.Request{
			ID: id, Node: all.Node[i], Requestor: all.Requestor[i], Priority: all.Priority[i], Created: all.Created[i],
		}}))
		if all.Told[i] != "" {
			state.Told[id] = Told{Code: all.Told[i]}
		}
		if all.Seen[i] {
			state.Seen[id] = true
		}
	}
	return state, nil
}
