package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
)

// ending is how a requestor means to end its maintenance.
type ending string

const (
	endDone       ending = "done"
	endFailedDone ending = "failed, then done"
	endRetried    ending = "failed, retried, then done"
	endGivenUp    ending = "failed, then given up"
	endCancelled  ending = "cancelled while Ready"
	endOverrun    ending = "overruns its ready timeout"
)

// endings are all of them, as often as they are chosen.
var endings = []ending{
	endDone, endDone, endDone, endDone, endDone, endFailedDone, endRetried, endGivenUp, endCancelled, endOverrun,
}

// requestorNames are who asks.
var requestorNames = []string{"sre", "gpu-team", "patcher", "storage.example.com", "ci"}

// plan is a maintenance as it is to be asked for, chosen from the seed and its number alone.
type plan struct {
	number    int
	node      string
	requestor string
	input     map[string]any
	// valid is false if the input is to be refused.
	valid bool
	// object: an object asks for it, whose name is the requestor's.
	object bool
	// alias is another workflow ID to start it under, empty for its own.
	alias  string
	ending ending
	deny   bool
	// notice is how long before it may begin it is asked for; 0 is none.
	notice time.Duration
	// work is how long its requestor has the node.
	work time.Duration
	// extras are messages that it needs to go on: approve, hook-done, drained, validated.
	extras []string
}

func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// newPlan chooses the maintenance of a number.
func newPlan(seed uint64, number, nodes int) plan {
	r := world.Dice(seed, uint64(number)<<8|'p')
	p := plan{
		number: number, node: world.NodeName(r.IntN(nodes)), requestor: pick(r, requestorNames), valid: true,
		ending: pick(r, endings), work: time.Duration(500+r.IntN(6000)) * time.Millisecond,
	}
	p.input = map[string]any{
		"node": p.node, "requestor": p.requestor, "priority": r.IntN(11) - 5,
		"reason": fmt.Sprintf("soak %d", number), "readyTimeout": "90s", "onReadyTimeout": "release",
	}
	p.chooseDrain(r)
	p.chooseGates(r)
	if p.ending == endOverrun {
		p.input["readyTimeout"] = fmt.Sprintf("%ds", 2+r.IntN(5))
		p.input["onReadyTimeout"] = pick(r, []string{"fail", "release"})
	}
	if chance(r, 15) {
		p.input["additionalRequestors"] = []string{"second.example.com"}
	}
	if chance(r, 20) {
		p.input["notify"] = pick(r, [][]string{{}, {"digest"}, {"events", "digest"}})
	}
	if chance(r, 4) {
		p.alias = fmt.Sprintf("soak-alias-%d", number)
	}
	if chance(r, 5) {
		p.spoil(r)
	}
	if p.valid && p.alias == "" && chance(r, 15) {
		p.object, p.requestor = true, fmt.Sprintf("object-%d", number)
		p.input["requestor"] = p.requestor
	}
	return p
}

func (p *plan) chooseDrain(r *rand.Rand) {
	drain := map[string]any{"escalation": []map[string]any{{
		"after": fmt.Sprintf("%ds", 8+r.IntN(20)), "do": pick(r, []string{"giveBack", "giveBack", "fail", "notify"}),
	}}}
	switch n := r.IntN(100); {
	case n < 20:
		drain["mode"] = "none"
		if chance(r, 30) {
			p.input["cordon"] = false
		}
	case n < 32:
		drain["mode"] = "external"
		p.extras = append(p.extras, api.MsgDrained)
	case n < 38:
		drain["mode"] = "wait"
	case n < 55:
		drain["plan"] = map[string]any{"include": []string{"Default", "DaemonSet"}}
	}
	p.input["drain"] = drain
}

func (p *plan) chooseGates(r *rand.Rand) {
	hooks := map[string]any{}
	for _, at := range []string{"beforeCordon", "afterDrain", "beforeRelease"} {
		switch n := r.IntN(100); {
		case n < 7:
			hooks[at] = []string{"sign-off"}
			p.extras = append(p.extras, api.MsgHookDone)
		case n < 14:
			hooks[at] = []string{"ticket"}
		}
	}
	if len(hooks) > 0 {
		p.input["hooks"] = hooks
	}
	if chance(r, 15) {
		p.input["validation"] = map[string]any{"signal": true, "deadline": fmt.Sprintf("%ds", 10+r.IntN(30)), "every": "1s"}
		p.extras = append(p.extras, api.MsgValidated)
	}
	if chance(r, 15) {
		p.input["approval"] = true
		p.deny = chance(r, 15)
		p.extras = append(p.extras, api.MsgApprove)
	}
	if chance(r, 6) {
		p.input["preflight"] = pick(r, []string{"wait", "fail"})
	}
	if chance(r, 6) {
		p.notice = time.Duration(1+r.IntN(10)) * time.Second
	}
}

// spoil makes the input one that has to be refused.
func (p *plan) spoil(r *rand.Rand) {
	p.valid = false
	switch r.IntN(5) {
	case 0:
		p.input["nodeName"] = p.node
	case 1:
		p.input["readyTimeout"] = "-5s"
	case 2:
		p.input["priority"] = "high"
	case 3:
		p.input["drain"] = nil
	default:
		p.input["drain"] = map[string]any{"podSelector": "a in ("}
	}
}
