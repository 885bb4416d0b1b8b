package workflows

import (
	"encoding/json"
	"strconv"
	"time"

	"drydock/workflows/record"
)

// RecordOf is the audit record of a maintenance as far as its status knows it. It is pure: workflow code calls it at the
// end, and whoever reads histories calls it with the answer to the status query.
func RecordOf(s Status, cluster string) record.Record {
	r := record.Record{
		Schema: record.Schema, WorkflowID: s.WorkflowID, RunID: s.RunID, Cluster: cluster,
		Node: s.Spec.Node, Requestor: s.Spec.Requestor, AdditionalRequestors: othersOf(s),
		Reason: s.Spec.Reason, Ticket: s.Spec.Ticket, Type: s.Spec.Type,
		Phase: string(s.Phase), Failure: s.Failure, Attempts: s.Attempt, CreatedAt: s.Since,
		MorePhases: s.TransitionsDropped, Specification: specificationOf(s),
	}
	if _, node, requestor, err := ParseMaintenanceID(s.WorkflowID); r.Node == "" && err == nil {
		// Its input was refused, and the ID is all there is.
		r.Node, r.Requestor = node, requestor
	}
	if len(s.Transitions) > 0 {
		r.CreatedAt = s.Transitions[0].At
	}
	if s.Phase.Ended() {
		r.EndedAt = s.Since
	}
	if s.Slot != nil {
		r.Slot = &record.Slot{RequestID: s.Slot.RequestID, GrantedAt: timeOf(s.Slot.GrantedAt)}
	}
	for _, t := range s.Transitions {
		r.Phases = append(r.Phases, record.Phase{Phase: string(t.Phase), At: t.At, Message: t.Message})
	}
	for _, e := range s.Escalation {
		r.Escalations = append(r.Escalations, record.Escalation{At: e.At, Do: e.Do, By: e.By, Why: e.Why})
	}
	for _, m := range s.Messages {
		r.Messages = append(r.Messages, record.Message{At: m.At, Name: m.Name, By: m.By, Comment: m.Comment, Effect: m.Effect})
	}
	drainOf(&r, s)
	return r.Bounded()
}

func drainOf(r *record.Record, s Status) {
	if s.Drain == nil && len(s.SkippedPods) == 0 {
		return
	}
	r.Drain = &record.Drain{SkippedPods: s.SkippedPods}
	if s.Drain == nil {
		return
	}
	r.Drain.Evicted, r.Drain.Total = s.Drain.Evicted, s.Drain.Total
	r.MoreBlockers = s.Drain.MoreBlockers
	r.Blockers = BlockersOf(*s.Drain)
}

// BlockersOf is what is in the way of a drain, as audit records have it; record.Observe keeps account of it over time.
func BlockersOf(p DrainProgress) []record.Blocker {
	var blockers []record.Blocker
	for _, b := range p.Blockers {
		blockers = append(blockers, record.Blocker{Pod: b.Pod, Owner: b.Owner, Reason: b.Reason, Message: b.Message, Since: b.Since})
	}
	return blockers
}

// othersOf are those who share the maintenance at present, whoever was meant to at its beginning.
func othersOf(s Status) []string {
	if len(s.Requestors) == 0 {
		return s.Spec.AdditionalRequestors
	}
	var others []string
	for _, r := range s.Requestors {
		if r.Name != s.Spec.Requestor {
			others = append(others, r.Name)
		}
	}
	return others
}

// specificationOf never keeps a record from being written: what cannot be shown is replaced by why.
func specificationOf(s Status) json.RawMessage {
	if s.Spec.Node == "" {
		return nil
	}
	data, err := json.Marshal(s.Spec)
	if err != nil {
		return json.RawMessage(strconv.Quote("cannot be shown: " + err.Error()))
	}
	return data
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
