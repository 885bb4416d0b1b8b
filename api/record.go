package api

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"drydock.dev/drydock/rules/record"
)

// RecordOf is the audit record of a maintenance as far as its status knows it: audit records and histories have no other
// source than the answer to the status query.
func RecordOf(s Status, cluster string) record.Record {
	r := record.Record{
		Schema: record.Schema, WorkflowID: s.WorkflowID, RunID: s.RunID, Cluster: cluster,
		Node: s.Spec.Node, Requestor: s.Spec.Requestor, AdditionalRequestors: othersOf(s),
		Reason: s.Spec.Reason, Ticket: s.Spec.Ticket, Type: s.Spec.Type,
		Phase: string(s.Phase), Failure: s.Failure, Attempts: s.Attempt, CreatedAt: s.Since,
		MorePhases: s.TransitionsDropped, NodeUID: s.NodeUID, Occupied: s.Occupied,
	}
	if _, node, requestor, err := ParseMaintenanceID(s.WorkflowID); r.Node == "" && err == nil {
		// Its input was refused, and the ID is all there is.
		r.Node, r.Requestor = node, requestor
	}
	if s.Spec.Node != "" {
		r.Specification = shown(s.Spec)
	}
	switch {
	case !s.CreatedAt.IsZero():
		r.CreatedAt = s.CreatedAt
	case len(s.Transitions) > 0:
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
	for _, e := range slices.Concat(s.EarlierRungs, s.Escalation) {
		r.Escalations = append(r.Escalations, record.Escalation{At: e.At, Do: e.Do, By: e.By, Why: e.Why})
	}
	r.Messages, r.Starter = messagesOf(s.Messages), senderOf(s.Starter)
	drainOf(&r, s)
	lifecycleOf(&r, s)
	return r.Bounded()
}

func messagesOf(all []Received) (messages []record.Message) {
	for _, m := range all {
		messages = append(messages, record.Message{At: m.At, Name: m.Name, By: m.By, Identity: m.Identity, Comment: m.Comment, Effect: m.Effect})
	}
	return messages
}

func senderOf(s *Sender) *record.Sender {
	if s == nil {
		return nil
	}
	return &record.Sender{Identity: s.Identity, Principal: s.Principal}
}

// lifecycleOf adds the published states, and who decided about what.
func lifecycleOf(r *record.Record, s Status) {
	r.Owner = s.Spec.Owner
	if a := s.Approval; a != nil {
		r.Approval = &record.Approval{
			By: a.By, Identity: a.Identity, Principal: a.Principal, Comment: a.Comment, At: a.At, Denied: a.Denied,
		}
	}
	for _, state := range s.States {
		r.States = append(r.States, record.State{
			ID: state.ID, Sequence: state.Sequence, State: string(state.State), At: state.At, Message: state.Message,
		})
	}
	for _, hook := range s.Hooks {
		r.Hooks = append(r.Hooks, record.Hook{Name: hook.Name, When: hook.When, Outcome: hook.Outcome, At: hook.At, By: hook.By})
	}
	for _, w := range s.Work {
		r.Work = append(r.Work, record.Work{
			Name: w.Name, Kind: string(w.Kind), Attempt: w.Attempt, At: w.StartedAt, EndedAt: timeOf(w.EndedAt),
			Outcome: w.Outcome, Output: w.Output, Job: w.Job, BootIDBefore: w.BootIDBefore,
		})
	}
	for _, sent := range s.Channels {
		r.Notifications = append(r.Notifications, record.Notification{
			Channel: sent.Channel, Event: string(sent.State), At: sent.At, Outcome: sent.Outcome,
		})
	}
	if v := s.Validation; v != nil {
		for _, result := range v.Results {
			r.Validation = append(r.Validation, record.Check{Name: result.Name, OK: result.OK, Message: result.Message, At: s.Since})
		}
	}
}

func drainOf(r *record.Record, s Status) {
	r.Blockers, r.MoreBlockers = s.BlockersSeen, s.MoreBlockersSeen
	before := s.EarlierDrains
	if s.Drain == nil && len(s.SkippedPods) == 0 && len(s.EarlierPods) == 0 && before == (EarlierDrains{}) {
		return
	}
	r.Drain = &record.Drain{
		SkippedPods: s.SkippedPods, Evicted: before.Evicted, Deleted: before.Deleted, Total: before.Total, MorePods: before.MorePods,
	}
	for _, pod := range s.EarlierPods {
		r.Drain.Pods = append(r.Drain.Pods, record.Pod{Pod: pod.Pod, At: pod.At, How: pod.How})
	}
	if s.Drain == nil {
		return
	}
	// What an earlier attempt left on the node, this one was about as well.
	r.Drain.Evicted, r.Drain.Deleted = before.Evicted+s.Drain.Evicted, before.Deleted+s.Drain.Deleted
	r.Drain.Total = before.Evicted + before.Deleted + s.Drain.Total
	for _, pod := range s.Drain.Pods {
		r.Drain.Pods = append(r.Drain.Pods, record.Pod{Pod: pod.Pod, At: pod.At, How: pod.How})
	}
	r.Drain.MorePods += s.Drain.MorePods
	if len(r.Blockers) == 0 {
		r.Blockers, r.MoreBlockers = BlockersOf(*s.Drain), s.Drain.MoreBlockers
	}
}

// BlockersOf is what is in the way of a drain, as audit records have it; record.Observe keeps account of it over time.
func BlockersOf(p DrainProgress) []record.Blocker {
	var blockers []record.Blocker
	for _, b := range p.Blockers {
		blockers = append(blockers, record.Blocker{Pod: b.Pod, Owner: b.Owner, Reason: b.Reason, Message: b.Message, Since: b.Since})
	}
	return blockers
}

// othersOf are those who share the maintenance at present; they may differ from those of the input.
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

// shown is a specification as JSON. It never keeps a record from being written: what cannot be shown is replaced by why.
func shown(specification any) json.RawMessage {
	data, err := json.Marshal(specification)
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

// RecordOfRemediation is the audit record of a remediation that has ended at a time.
func RecordOfRemediation(s RemediationStatus, cluster string, endedAt time.Time) record.Record {
	r := record.Record{
		Schema: record.Schema, WorkflowID: s.WorkflowID, RunID: s.RunID, Cluster: cluster, Node: s.Node, NodeUID: s.Progress.UID,
		Requestor: RemediationRequestor(s.Check), Reason: s.Why, Phase: string(Failed), Failure: s.Progress.Failure,
		CreatedAt: s.Progress.StartedAt, EndedAt: endedAt,
		Remediation: &record.Remediation{Check: s.Check, Why: s.Why, Since: s.Since, Recovered: s.Progress.Recovered},
	}
	if s.Progress.Ended && s.Progress.Recovered {
		r.Phase = string(Completed)
	}
	for _, step := range s.Progress.Steps {
		if len(r.Remediation.Steps) == record.MaxSteps {
			r.Remediation.MoreSteps++
			continue
		}
		kept := record.RemediationStep{
			Step: step.Index + 1, What: step.WorkflowID, StartedAt: step.StartedAt, TimedOut: step.TimedOut, Succeeded: step.Succeeded, Failure: step.Failure,
		}
		if o := step.Resource; o != nil {
			kept.What = o.Kind + " " + o.Namespace + "/" + o.Name
		}
		r.Remediation.Steps = append(r.Remediation.Steps, kept)
	}
	r.Specification = shown(s.Steps)
	return r.Bounded()
}
