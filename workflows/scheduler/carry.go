package scheduler

import (
	"slices"
	"strings"
	"time"

	"drydock/api"
	"drydock/rules/period"
	"drydock/rules/schedule"
)

// packAbove is how many requests are carried to the next run in plain JSON, which a person can read in its input. More
// are packed: a server takes 2 MB, and 15,000 requests are three times that. Packed requests are an argument of their
// own, since in JSON bytes are a third longer.
const packAbove = 1000

// packedRequests are what must not be forgotten of the requests that wait; the rest is found out again. Each field is
// a column, since like compresses best next to like. What a newer release packs more is not handed on: maintenances say again
// what they ask for.
type packedRequests struct {
	// ID is without the run's where it begins with that.
	ID        []string `json:"id"`
	RunID     []string `json:"runId"`
	Node      []string `json:"node"`
	Requestor []string `json:"requestor"`
	Priority  []int    `json:"priority"`
	// Windows are absent where no request says anything of them.
	Windows []packedWindows `json:"windows,omitempty"`
	// Gang is the number of each request's gang in Gangs, from 1 on, and 0 for none; absent where no request has one.
	Gang  []int           `json:"gang,omitempty"`
	Gangs []schedule.Gang `json:"gangs,omitempty"`
	// Remediation is absent where no request is one.
	Remediation []bool `json:"remediation,omitempty"`
	// Kind is absent where all are of maintenances.
	Kind    []schedule.HolderKind `json:"kind,omitempty"`
	Created []time.Time           `json:"created"`
	Told    []schedule.Code       `json:"told"`
	Seen    []bool                `json:"seen"`
}

// packedWindows is what one request says of windows.
type packedWindows struct {
	Names    []string        `json:"names,omitempty"`
	Expected period.Duration `json:"expected,omitzero"`
	Ignore   string          `json:"ignore,omitempty"`
}

// pack takes the requests out of a state where they are many.
func pack(state State) (rest State, packed []byte, err error) {
	if len(state.Pending) <= packAbove {
		return state, nil, nil
	}
	var all packedRequests
	windows := slices.ContainsFunc(state.Pending, func(p api.PendingRequest) bool { return named(p.Request) })
	all.Gang, all.Gangs = packGangs(state.Pending)
	isRemediation := func(p api.PendingRequest) bool { return p.Remediation }
	remediations := slices.ContainsFunc(state.Pending, isRemediation)
	kinds := slices.ContainsFunc(state.Pending, func(p api.PendingRequest) bool { return p.Kind != schedule.KindMaintenance })
	for _, p := range state.Pending {
		if kinds {
			all.Kind = append(all.Kind, p.Kind)
		}
		if remediations {
			all.Remediation = append(all.Remediation, p.Remediation)
		}
		if windows {
			all.Windows = append(all.Windows, packedWindows{Names: p.Windows, Expected: p.ExpectedDuration, Ignore: p.IgnoreWindows})
		}
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
		request := schedule.Request{
			ID: id, Node: all.Node[i], Requestor: all.Requestor[i], Priority: all.Priority[i], Created: all.Created[i],
		}
		if len(all.Windows) > 0 {
			w := all.Windows[i]
			request.Windows, request.ExpectedDuration, request.IgnoreWindows = w.Names, w.Expected, w.Ignore
		}
		if len(all.Gang) > 0 && all.Gang[i] > 0 {
			request.Gang = &all.Gangs[all.Gang[i]-1]
		}
		request.Remediation = len(all.Remediation) > 0 && all.Remediation[i]
		if len(all.Kind) > 0 {
			request.Kind = all.Kind[i]
		}
		state.Pending = append(state.Pending, unobserved(api.SlotRequest{RunID: runID, Request: request}))
		if all.Told[i] != "" {
			state.Told[id] = Told{Code: all.Told[i]}
		}
		if all.Seen[i] {
			state.Seen[id] = true
		}
	}
	return state, nil
}
