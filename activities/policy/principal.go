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

	"drydock/api"
	"drydock/rules/spec"
)

const (
	// maxText bounds what of a word is compared and judged, in bytes, and a principal.
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

// principalOf is who sent a word, as the server verified it; empty where it verified nobody. It looks through the history
// of the run, newest events first. Of several messages with the same words that came together it is not known which one
// was read: where they are not all of one sender, nobody is verified. So whoever is named did send these words.
func (a *Activities) principalOf(ctx context.Context, word Word, before int64) (string, error) {
	run := activity.GetInfo(ctx).WorkflowExecution
	request := &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: a.Namespace, MaximumPageSize: pageSize,
		Execution: &commonpb.WorkflowExecution{WorkflowId: run.ID, RunId: run.RunID},
	}
	var senders []string
	for range maxPages {
		page, err := a.Temporal.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, request)
		if cannotRead(err) {
			activity.GetLogger(ctx).Warn("the history cannot be read: nobody is verified", "error", err)
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("looking for who sent %s: %w", word.Name, err)
		}
		for _, event := range page.GetHistory().GetEvents() {
			switch {
			case before > 0 && event.GetEventId() > before:
			case word.isIn(event):
				senders = append(senders, principal(event.GetPrincipal()))
			case event.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_STARTED && len(senders) > 0:
				return sameOf(senders), nil
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			break
		}
	}
	return sameOf(senders), nil
}

// cannotRead tells a server that never shows histories to this worker from one that is away.
func cannotRead(err error) bool {
	var denied *serviceerror.PermissionDenied
	var unknown *serviceerror.Unimplemented
	return errors.As(err, &denied) || errors.As(err, &unknown)
}

// isIn tells whether an event is a signal with these words.
func (w Word) isIn(event *historypb.HistoryEvent) bool {
	signal := event.GetWorkflowExecutionSignaledEventAttributes()
	if signal == nil || signal.GetSignalName() != w.Name {
		return false
	}
	var payload api.Simple
	if all := signal.GetInput().GetPayloads(); len(all) > 0 && len(all[0].GetData()) > 0 {
		if spec.DecodeStrict(all[0].GetData(), &payload) != nil {
			return false // the workflow has refused it
		}
	}
	return WordOf(w.Name, payload) == w
}

// principal is "<type>:<name>", by which no two are the same.
func principal(p *commonpb.Principal) string {
	if p.GetName() == "" {
		return ""
	}
	text := p.GetType() + ":" + p.GetName()
	if len(text) > maxText {
		return ""
	}
	return text
}

func sameOf(senders []string) string {
	if slices.Sort(senders); len(senders) == 0 || len(slices.Compact(senders)) > 1 {
		return ""
	}
	return senders[0]
}
