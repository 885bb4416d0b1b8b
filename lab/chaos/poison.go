package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"k8s.io/apimachinery/pkg/util/uuid"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/record"
)

// forged is in all that is made up, so that it is known where it comes out.
const forged = "forged-by-chaos"

// execution is the present run of a maintenance of this attempt.
type execution struct{ id, node, requestor, run, first string }

// executions are the maintenances of this attempt that were started.
func (a *attempt) executions(ctx context.Context) (running, ended []execution, err error) {
	for _, m := range a.maintained() {
		described, err := a.temporal.Client.DescribeWorkflowExecution(ctx, m.id, "")
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) {
			continue // its start is on the way
		}
		if err != nil {
			return nil, nil, err
		}
		info := described.WorkflowExecutionInfo
		e := execution{id: m.id, node: m.node, requestor: m.requestor, run: info.Execution.RunId, first: info.FirstRunId}
		if info.Status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
			running = append(running, e)
		} else {
			ended = append(ended, e)
		}
	}
	return running, ended, nil
}

// message is a signal that nobody who is in their right mind sends.
type message struct {
	name    string
	payload any
}

// poisonAll sends everybody what may be wrong with a message, and starts workflows with made-up inputs.
func (a *attempt) poisonAll(ctx context.Context) error {
	running, _, err := a.executions(ctx)
	if err != nil {
		return err
	}
	for _, e := range running {
		if err := a.send(ctx, e.id, toMaintenance(e, a.cell.when == after)); err != nil {
			return err
		}
		if err := a.startForged(ctx, e); err != nil {
			return err
		}
	}
	if a.plans() {
		if err := a.send(ctx, a.planID(), toPlan(a.nodes[0])); err != nil {
			return err
		}
	}
	if err := errors.Join(ward{a}.poison(ctx), profiled{a}.poison(ctx), a.caller.poison(ctx)); err != nil {
		return err
	}
	return a.send(ctx, api.SchedulerID(a.cluster), append(toScheduler(a.nodes[0]), givenBack(running)...))
}

// givenBack says of the slots of maintenances that run that they are given back.
func givenBack(running []execution) (messages []message) {
	for _, e := range running {
		messages = append(messages, message{api.SignalSlotRelease, api.SlotRelease{RequestID: e.first + "/1"}})
	}
	return messages
}

func (l *lane) send(ctx context.Context, id string, messages []message) error {
	for _, m := range messages {
		err := l.temporal.Client.SignalWorkflow(ctx, id, "", m.name, m.payload)
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) {
			return nil // it ended meanwhile
		}
		if err != nil {
			return fmt.Errorf("%s to %s: %w", m.name, id, err)
		}
	}
	return nil
}

func newUUID() string { return string(uuid.NewUUID()) }

// endless is a text of 100 KB that takes up six times as much in JSON.
func endless() string { return forged + strings.Repeat("<", 100<<10) }

// nonsense are payloads that no message has.
func nonsense(name string) []message {
	return []message{
		{name, nil}, {name, forged}, {name, -1}, {name, []int{1}}, {name, json.RawMessage(`{"id":7}`)},
		{name, map[string]any{"id": forged, "unknown": endless()}}, {name, map[string]any{"by": endless(), "comment": endless()}},
	}
}

// toMaintenance are messages to a maintenance. With held, a forged freeze names its own request.
func toMaintenance(e execution, held bool) []message {
	request, another := e.first+"/1", newUUID()+"/1"
	frozen := another
	if held {
		frozen = request
	}
	messages := []message{
		{"chaos-knows-no-such-signal", endless()},
		{api.SignalSlotGranted, api.SlotAnswer{RequestID: request}},
		{api.SignalSlotGranted, api.SlotAnswer{RequestID: another}},
		{api.SignalSlotPending, api.SlotAnswer{RequestID: request, Reason: endless()}},
		{api.SignalSlotRefused, api.SlotAnswer{RequestID: another, Reason: forged}},
		{api.SignalSlotRefused, api.SlotAnswer{RequestID: request, Reason: forged}},
		{api.SignalHold, api.FreezeNotice{RequestID: frozen, Revision: 1 << 40, Reasons: []string{endless()}}},
		{api.SignalNodeChanged, api.NodeChange{RequestID: another, Missing: true}},
		{api.SignalNodeChanged, api.NodeChange{RequestID: request, Missing: true}},
		{api.SignalNodeChanged, api.NodeChange{RequestID: request, Uncordoned: true}},
		{api.SignalDrainBlocked, blocked()},
		{api.SignalTarget, api.NodeTarget{Revision: 1 << 40, Targets: []drainplan.Entry{{PodType: drainplan.DaemonSet, PodPriority: 1<<31 - 1}}, Last: true}},
		{api.MsgCancel, api.Cancel{Run: newUUID(), Release: true}},
		{api.MsgDone, api.Done{Run: newUUID(), Message: api.Message{By: endless()}}},
		{api.MsgFailed, api.FailedMessage{Run: newUUID(), Reason: endless()}},
		{api.MsgRetryNow, api.Message{By: endless(), Comment: endless()}},
		{api.MsgCancel, json.RawMessage(`{"release":"yes"}`)},
		{api.MsgLeave, api.Membership{Requestor: "nobody/" + forged}},
	}
	for _, name := range []string{api.SignalSlotGranted, api.SignalHold, api.SignalDrainBlocked, api.SignalNodeChanged, api.SignalTarget} {
		messages = append(messages, nonsense(name)...)
	}
	return messages
}

// blocked says that more blocks a drain than any drain would say.
func blocked() api.DrainProgress {
	p := api.DrainProgress{At: time.Now(), Total: -1, Remaining: 1 << 30}
	for i := range 500 {
		p.Blockers = append(p.Blockers, api.Blocker{
			Pod: fmt.Sprintf("%s/%d", forged, i), Reason: forged, Message: strings.Repeat("<", 200),
		})
	}
	return p
}

func toScheduler(node string) []message {
	id := newUUID()
	request := func(run, id, node, requestor string) message {
		return message{api.SignalSlotRequest, map[string]any{
			"id": id, "runId": run, "node": node, "requestor": requestor, "created": time.Now(),
		}}
	}
	messages := []message{
		{"chaos-knows-no-such-signal", endless()},
		request(forged, forged+"/1", node, forged),
		request("", "", node, forged),
		request(id, newUUID()+"/1", node, forged),
		request(id, id+"/1", endless(), forged),
		request(id, id+"/1", node, endless()),
		request(id, id+"/2", "no-such-node", forged),
		{api.SignalSlotRelease, api.SlotRelease{RequestID: id + "/1", By: forged, Why: "out of malice"}},
		{api.SignalSlotRelease, api.SlotRelease{RequestID: endless(), By: endless(), Why: endless()}},
	}
	for _, name := range []string{api.SignalSlotRequest, api.SignalSlotRelease} {
		messages = append(messages, nonsense(name)...)
	}
	return messages
}

// startForged starts workflows that are to record, and to tell, what did not happen.
func (a *attempt) startForged(ctx context.Context, e execution) error {
	ref := api.Reference{WorkflowID: e.id, RunID: e.first}
	made := record.Record{
		Schema: record.Schema, WorkflowID: e.id, RunID: e.first, Node: e.node, Requestor: forged, Reason: forged, Phase: string(api.Failed),
	}
	told := notices.Event{
		ID: forged, Sequence: 99, State: notices.MaintenanceComplete, At: time.Now(), Node: e.node, Reason: forged, WorkflowID: e.id, RunID: e.first,
	}
	for _, s := range []struct {
		kind  string
		input any
	}{
		{api.AuditRecordType, made},
		{api.AuditRecordType, api.Reference{WorkflowID: api.SchedulerID(a.cluster), RunID: e.first}},
		{api.NotificationType, map[string]any{"plan": map[string]string{"channel": "events"}, "waiting": []any{told}}},
		{api.NotificationType, api.NotificationInput{Channel: forged, Maintenance: &ref}},
		{api.NotificationType, endless()},
	} {
		if _, err := a.startWorkflow(ctx, a.cluster+"/"+forged+"/"+newUUID(), s.kind, s.input); err != nil {
			return fmt.Errorf("starting a forged %s: %w", s.kind, err)
		}
	}
	return nil
}
