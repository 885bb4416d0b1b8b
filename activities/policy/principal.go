package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
)

const (
	// maxText bounds what of a word is compared and judged, in bytes.
	maxText = 1024
	// pageSize and maxPages bound the part of a history in which a message is looked for.
	pageSize = 200
	maxPages = 50
)

// Word is a message by which it is found in the history.
type Word struct {
	Name    string `json:"name"`
	By      string `json:"by,omitempty"`
	Comment string `json:"comment,omitempty"`
	Run     string `json:"run,omitempty"`
}

// WordOf is what of a message is judged.
func WordOf(name string, p api.Simple) Word {
	return Word{Name: name, By: cut(p.By), Comment: cut(p.Comment), Run: cut(p.Run)}
}

func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "")
}

// senderOf is who sent a word, as its event in the run's history says: a signal's, or that of an update that was accepted.
// It looks through the history, newest events first. Of several messages with the same words that arrived together it is not
// known which one was read: where their senders differ, nobody is named. So a sender that is named did send these words.
func (a *Activities) senderOf(ctx context.Context, word Word, before int64) (api.Sender, error) {
	run := activity.GetInfo(ctx).WorkflowExecution
	request := &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: a.Namespace, MaximumPageSize: pageSize,
		Execution: &commonpb.WorkflowExecution{WorkflowId: run.ID, RunId: run.RunID},
	}
	search := search{word: word, before: before}
	for range maxPages {
		page, err := a.Temporal.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, request)
		if cannotRead(err) {
			activity.GetLogger(ctx).Warn("the history cannot be read: the sender is not known", "error", err)
			return api.Sender{}, nil
		}
		if err != nil {
			return api.Sender{}, fmt.Errorf("looking for who sent %s: %w", word.Name, err)
		}
		for _, event := range page.GetHistory().GetEvents() {
			if search.look(event) {
				return search.sender(), nil
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			break
		}
	}
	return search.sender(), nil
}

// search looks for the senders of a word, from the newest event of a history to the oldest. Before is the event of the
// workflow task that read it; 0 where that is not known.
type search struct {
	word                   Word
	before                 int64
	identities, principals []string
	// scheduled is how many had been found where the last task was scheduled.
	scheduled int
	// workers are the principals that answered the run's tasks: the worker's own, who approve nothing.
	workers []string
}

// look takes the next event, and reports whether there is nothing more to find.
func (s *search) look(event *historypb.HistoryEvent) (over bool) {
	if p := execution.WorkerOf(event); p != "" {
		s.workers = append(s.workers, p)
	}
	task := event.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_STARTED
	switch id := event.GetEventId(); {
	case s.before > 0 && id > s.before:
		// An update is accepted by the task that reads it; what a later one accepted is another word.
		if task {
			s.identities, s.principals = nil, nil
		} else if identity, found := s.word.isUpdate(event); found {
			// Its event is written in the worker's name: nobody verified the sender.
			s.found(execution.SenderOf(identity, nil))
		}
	case s.before > 0 && id == s.before:
	case event.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED:
		s.scheduled = len(s.principals)
	case isReset(event):
		// What follows until a task is scheduled was sent to a run before the reset. The server writes it again, in the name of the one who
		// reset the workflow.
		clear(s.principals[s.scheduled:])
	case s.word.isSignal(event):
		s.found(execution.SenderOf(event.GetWorkflowExecutionSignaledEventAttributes().GetIdentity(), event.GetPrincipal()))
	case task:
		return len(s.principals) > 0
	}
	return false
}

func (s *search) found(sender api.Sender) {
	s.identities, s.principals = append(s.identities, sender.Identity), append(s.principals, sender.Principal)
}

func (s *search) sender() api.Sender {
	sender := api.Sender{Identity: sameOf(s.identities), Principal: sameOf(s.principals)}
	if slices.Contains(s.workers, sender.Principal) {
		sender.Principal = ""
	}
	return sender
}

// cannotRead reports whether the server never shows histories to this worker, rather than being unavailable.
func cannotRead(err error) bool {
	var denied *serviceerror.PermissionDenied
	var unknown *serviceerror.Unimplemented
	return errors.As(err, &denied) || errors.As(err, &unknown)
}

// isReset reports whether an event is the one at which a workflow was reset.
func isReset(event *historypb.HistoryEvent) bool {
	return event.GetWorkflowTaskFailedEventAttributes().GetCause() == enums.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW
}

// isSignal reports whether an event is a signal with these words.
func (w Word) isSignal(event *historypb.HistoryEvent) bool {
	signal := event.GetWorkflowExecutionSignaledEventAttributes()
	return signal.GetSignalName() == w.Name && w.isIn(signal.GetInput())
}

// isUpdate reports whether an event is an accepted update with these words, and the identity of its sender.
func (w Word) isUpdate(event *historypb.HistoryEvent) (identity string, is bool) {
	update := event.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest()
	is = update.GetInput().GetName() == w.Name && w.isIn(update.GetInput().GetArgs())
	return update.GetMeta().GetIdentity(), is
}

// isIn reports whether a payload has these words.
func (w Word) isIn(input *commonpb.Payloads) bool {
	var payload api.Simple
	if all := input.GetPayloads(); len(all) > 0 && len(all[0].GetData()) > 0 {
		if spec.DecodeStrict(all[0].GetData(), &payload) != nil {
			return false // the workflow has refused it
		}
	}
	return WordOf(w.Name, payload) == w
}

func sameOf(senders []string) string {
	if slices.Sort(senders); len(senders) == 0 || len(slices.Compact(senders)) > 1 {
		return ""
	}
	return senders[0]
}
