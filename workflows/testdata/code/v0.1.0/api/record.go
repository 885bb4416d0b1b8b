package api

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/record"
)

// BlockersOf is what is in the way of a drain, as audit records have it; record.Observe keeps account of it over time.
func BlockersOf(p DrainProgress) []record.Blocker {
	var blockers []record.Blocker
	for _, b := range p.Blockers {
		blockers = append(blockers, record.Blocker{Pod: b.Pod, Owner: b.Owner, Reason: b.Reason, Message: b.Message, Since: b.Since})
	}
	return blockers
}
