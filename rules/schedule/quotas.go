package schedule

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"drydock.dev/drydock/rules/spec"
)

// Quotas bound what one requestor may ask for and hold at a time. They stop accidents and not attackers: who a requestor
// is, is a claim.
type Quotas struct {
	// PendingPerRequestor is how many requests of one requestor may wait for a slot; the next one is turned down. If absent, there is no limit;
	// with 0 nobody may ask.
	PendingPerRequestor *int `json:"pendingPerRequestor,omitempty" jsonschema:"minimum=0"`
	// HeldPerRequestor is how many nodes one requestor may hold; the next one waits. If absent, there is no limit.
	HeldPerRequestor *int `json:"heldPerRequestor,omitempty" jsonschema:"minimum=1"`
	// Requestors are those that have quotas of their own, by name; at most 200 of them.
	Requestors map[string]RequestorQuota `json:"requestors,omitempty"`
}

// RequestorQuota is the quota of one requestor.
type RequestorQuota struct {
	// Pending is how many requests of this requestor may wait for a slot; if absent, it is as for all. One of `pending` and `held` is required.
	Pending *int `json:"pending,omitempty" jsonschema:"minimum=0"`
	// Held is how many nodes this requestor may hold; if absent, it is as for all.
	Held *int `json:"held,omitempty" jsonschema:"minimum=1"`
}

// maxQuotas bounds the requestors that have quotas of their own.
const maxQuotas = 200

// IsZero reports whether nothing is bounded.
func (q Quotas) IsZero() bool {
	return q.PendingPerRequestor == nil && q.HeldPerRequestor == nil && len(q.Requestors) == 0
}

// Of is the quota of a requestor.
func (q Quotas) Of(requestor string) RequestorQuota {
	own := q.Requestors[requestor]
	if own.Pending == nil {
		own.Pending = q.PendingPerRequestor
	}
	if own.Held == nil {
		own.Held = q.HeldPerRequestor
	}
	return own
}

// OverPending says why a requestor who has so many requests waiting may not have another; empty if it may.
func (q Quotas) OverPending(requestor string, waiting int) string {
	most := q.Of(requestor).Pending
	switch {
	case most == nil || waiting < *most:
		return ""
	case *most == 0:
		return fmt.Sprintf("quota: %s may not ask for nodes", requestor)
	default:
		return fmt.Sprintf("quota: %s has %s for a slot; the limit is %d (pending)", requestor, waits(waiting), *most)
	}
}

func waits(n int) string {
	if n == 1 {
		return "1 request that waits"
	}
	return fmt.Sprintf("%d requests that wait", n)
}

// Validate joins an error for everything that is wrong, each beginning with the field.
func (q Quotas) Validate() error {
	errs := []error{
		checkPending("pendingPerRequestor", q.PendingPerRequestor),
		checkHeld("heldPerRequestor", q.HeldPerRequestor),
	}
	if len(q.Requestors) > maxQuotas {
		errs = append(errs, fmt.Errorf("requestors: has %d: want %d at most", len(q.Requestors), maxQuotas))
	}
	for _, name := range slices.Sorted(maps.Keys(q.Requestors)) {
		at, own := "requestors."+name, q.Requestors[name]
		if err := spec.RequestorName(name); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
		}
		if own.Pending == nil && own.Held == nil {
			errs = append(errs, fmt.Errorf("%s: pending or held is required: without them it bounds nothing", at))
		}
		errs = append(errs, checkPending(at+".pending", own.Pending), checkHeld(at+".held", own.Held))
	}
	return errors.Join(errs...)
}

func checkPending(field string, most *int) error {
	if most != nil && *most < 0 {
		return fmt.Errorf("%s: %d is negative; leave it out for no limit", field, *most)
	}
	return nil
}

// checkHeld refuses 0: what may never have a slot would wait for ever.
func checkHeld(field string, most *int) error {
	switch {
	case most == nil || *most > 0:
		return nil
	case *most == 0:
		return fmt.Errorf("%s: 0 is refused: requests would wait for ever; a pending quota of 0 refuses them at once", field)
	}
	return fmt.Errorf("%s: %d is negative; leave it out for no limit", field, *most)
}

// heldNodes are the nodes that each requestor holds, of grants sorted by node. Remediations are nobody's share.
func heldNodes(granted []Grant) map[string][]string {
	held := map[string][]string{}
	for _, g := range granted {
		if g.Remediation {
			continue
		}
		if nodes := held[g.Requestor]; len(nodes) == 0 || nodes[len(nodes)-1] != g.Node {
			held[g.Requestor] = append(nodes, g.Node)
		}
	}
	return held
}

// overHeld says why a requestor may not hold so many more nodes now; no code where it may. What is reserved for a gang of
// its own may not count.
func (r *round) overHeld(requestor string, more int, reserved bool) (Code, string) {
	most, nodes, kept := r.limits.Quotas.Of(requestor).Held, r.held[requestor], 0
	if reserved {
		kept = r.kept.quota[requestor]
	}
	if most == nil || len(nodes)+more+kept <= *most {
		return "", ""
	}
	if len(nodes)+more <= *most {
		return Reserved, goesFirst(r.kept.gang, kept, fmt.Sprintf("the quota of %s (%d)", requestor, *most), len(nodes))
	}
	noun := "nodes"
	if len(nodes) == 1 {
		noun = "node"
	}
	return Quota, fmt.Sprintf("quota: %s holds %d %s (%s); the limit is %d", requestor, len(nodes), noun, list(nodes), *most)
}
