package policy

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/mocks"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/policy"
	"drydock.dev/drydock/rules/spec"
)

// rules are those of the tests.
var rules = []policy.Rule{
	{Name: "production-needs-approval", When: `node.labels[?"env"].orValue("") == "production"`, Require: "maintenance.approval", Message: "ask somebody"},
	{Name: "no-slip", Require: "approval.by != maintenance.requestor"},
	{Name: "no-force", Require: "!maintenance.drain.force"},
}

func judgeOf(t *testing.T, s *k8stest.Server, all ...policy.Rule) *Judge {
	t.Helper()
	compiled, err := policy.Compile(all)
	if err != nil {
		t.Fatal(err)
	}
	return &Judge{Policy: compiled, Client: s.Client(t)}
}

func production() *corev1.Node {
	node := activitytest.Node("n1")
	node.Labels = map[string]string{"env": "production"}
	return node
}

// specification is the JSON of a maintenance with its defaults.
func specification(t *testing.T, input string) (spec.Maintenance, json.RawMessage) {
	t.Helper()
	m, err := spec.Decode([]byte(input), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return m, text
}

// begin runs Begin where it runs, in an activity.
func begin(t *testing.T, j *Judge, m spec.Maintenance) string {
	t.Helper()
	text, err := activitytest.Call(t, func(ctx context.Context, _ string) (string, error) { return j.Begin(ctx, m), nil }, "")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestBeginJudgesWhatIsKnown(t *testing.T) {
	s := k8stest.New(production())
	j := judgeOf(t, s, rules...)
	plain, _ := specification(t, `{"node":"n1"}`)
	forced, _ := specification(t, `{"node":"n1","approval":true,"drain":{"force":true}}`)
	if got := begin(t, j, plain); got != "policy production-needs-approval: ask somebody" {
		t.Errorf("refused %q", got)
	}
	if got := begin(t, j, forced); got != "policy no-force: it requires !maintenance.drain.force" {
		t.Errorf("refused %q", got)
	}
	s.Delete(production())
	if got := begin(t, j, plain); got != "" {
		t.Errorf("refused for a node that is not there: %q", got)
	}
	s.Refuse(http.StatusInternalServerError)
	if got := begin(t, j, plain); got != "" {
		t.Errorf("refused because the API server is away: %q", got)
	}
	if got := begin(t, j, forced); !strings.Contains(got, "no-force") {
		t.Errorf("a rule that needs no node was not judged: %q", got)
	}
	if begin(t, nil, plain) != "" || begin(t, judgeOf(t, s), forced) != "" {
		t.Error("refused without a policy")
	}
}

// Nobody is refused because Temporal could not say for a moment who it was: the rule is judged before the node is held.
func TestBeginLeavesAStarterWhoIsNotKnown(t *testing.T) {
	started := activitytest.Started("ann@desk", nil)
	started.Principal = &commonpb.Principal{Type: "jwt", Name: "ann"}
	histories := &activitytest.Histories{Err: errors.New("away")}
	temporal := &mocks.Client{}
	temporal.On("WorkflowService").Return(histories)
	j := judgeOf(t, k8stest.New(production()),
		policy.Rule{Name: "known", Require: `has(starter.principal)`}, policy.Rule{Name: "not-ann", Require: `starter.principal != "jwt:ann"`},
		policy.Rule{Name: "no-force", Require: "!maintenance.drain.force"})
	j.Starters = execution.NewStarters(temporal, "default")
	plain, text := specification(t, `{"node":"n1"}`)
	forced, _ := specification(t, `{"node":"n1","drain":{"force":true}}`)
	if got := begin(t, j, plain); got != "" {
		t.Errorf("refused because Temporal is away: %q", got)
	}
	if got := begin(t, j, forced); got != "policy no-force: it requires !maintenance.drain.force" {
		t.Errorf("refused %q", got)
	}
	judge := func(ctx context.Context, _ string) (string, error) { return "", j.Judge(ctx, text) }
	if _, err := activitytest.Call(t, judge, ""); err == nil || activitytest.ErrorType(err) != "" {
		t.Errorf("before the node is held: %v, want an error that is tried again", err)
	}
	histories.Err, histories.First = nil, map[string]*historypb.HistoryEvent{activitytest.RunID: started}
	if _, err := activitytest.Call(t, judge, ""); activitytest.ErrorType(err) != api.ErrorPolicyRefused || !strings.Contains(err.Error(), "not-ann") {
		t.Errorf("before the node is held: %v, want a refusal", err)
	}
	if got := begin(t, j, plain); !strings.Contains(got, "policy not-ann") {
		t.Errorf("a starter who is known is not judged: %q", got)
	}
}

func TestARuleThatNeedsNoNodeCostsNoRequest(t *testing.T) {
	s := k8stest.New(production())
	m, _ := specification(t, `{"node":"n1"}`)
	begin(t, judgeOf(t, s, rules[2]), m)
	if got := s.Requests("GET"); len(got) != 0 {
		t.Errorf("requests %v", got)
	}
}

func TestJudgeLooksAtTheNodeAsItIs(t *testing.T) {
	node := activitytest.Node("n1")
	s := k8stest.New(node)
	j := judgeOf(t, s, rules...)
	_, m := specification(t, `{"node":"n1"}`)
	judge := func() error {
		_, err := activitytest.Call(t, func(ctx context.Context, _ string) (string, error) { return "", j.Judge(ctx, m) }, "")
		return err
	}
	if err := judge(); err != nil {
		t.Error(err)
	}
	s.Set(production())
	if err := judge(); activitytest.ErrorType(err) != api.ErrorPolicyRefused || !strings.Contains(err.Error(), "policy production-needs-approval: ask somebody") {
		t.Errorf("error = %v", err)
	}
	s.Refuse(http.StatusInternalServerError)
	if err := judge(); err == nil || activitytest.ErrorType(err) != "" {
		t.Errorf("error = %v, want one worth a retry", err)
	}
	s.Refuse(0)
	s.Delete(node)
	if err := j.Judge(t.Context(), m); !errors.Is(err, k8s.ErrNodeGone) {
		t.Errorf("error = %v", err)
	}
	for _, wrong := range []string{`""`, `{}`, `{"node":3}`, `null`} {
		if err := j.Judge(t.Context(), json.RawMessage(wrong)); activitytest.ErrorType(err) != api.ErrorPolicyRefused {
			t.Errorf("%s: error = %v", wrong, err)
		}
	}
}

// server is a Temporal server with the history of one run, oldest event first.
type server struct {
	workflowservice.WorkflowServiceClient
	history []*historypb.HistoryEvent
	err     error
	pages   int
}

func (s *server) GetWorkflowExecutionHistoryReverse(
	_ context.Context, in *workflowservice.GetWorkflowExecutionHistoryReverseRequest, _ ...grpc.CallOption,
) (*workflowservice.GetWorkflowExecutionHistoryReverseResponse, error) {
	if s.err != nil {
		return nil, s.err
	}
	if in.Namespace != "default" || in.Execution.WorkflowId != activitytest.WorkflowID || in.Execution.RunId != activitytest.RunID {
		return nil, serviceerror.NewNotFound("no such run")
	}
	s.pages++
	left := len(s.history)
	if len(in.NextPageToken) > 0 {
		var err error
		if left, err = strconv.Atoi(string(in.NextPageToken)); err != nil {
			return nil, err
		}
	}
	page := &workflowservice.GetWorkflowExecutionHistoryReverseResponse{History: &historypb.History{}}
	for range min(left, int(in.MaximumPageSize)) {
		left--
		page.History.Events = append(page.History.Events, s.history[left])
	}
	if left > 0 {
		page.NextPageToken = []byte(strconv.Itoa(left))
	}
	return page, nil
}

// historyOf numbers events.
func historyOf(events ...*historypb.HistoryEvent) *server {
	for i, e := range events {
		e.EventId = int64(i + 1)
	}
	return &server{history: events}
}

func task() *historypb.HistoryEvent {
	return &historypb.HistoryEvent{EventType: enums.EVENT_TYPE_WORKFLOW_TASK_STARTED}
}

// signal is a signal of somebody whom the server verified; empty is nobody.
func signal(name, payload, by string) *historypb.HistoryEvent {
	attributes := &historypb.WorkflowExecutionSignaledEventAttributes{SignalName: name}
	if payload != "" {
		attributes.Input = &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: []byte(payload)}}}
	}
	e := &historypb.HistoryEvent{
		EventType:  enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{WorkflowExecutionSignaledEventAttributes: attributes},
	}
	if by != "" {
		e.Principal = &commonpb.Principal{Type: "jwt", Name: by}
	}
	return e
}

// reset is where a workflow was reset, and scheduled where a task was scheduled after that.
func reset() *historypb.HistoryEvent {
	return &historypb.HistoryEvent{
		EventType: enums.EVENT_TYPE_WORKFLOW_TASK_FAILED,
		Attributes: &historypb.HistoryEvent_WorkflowTaskFailedEventAttributes{WorkflowTaskFailedEventAttributes: &historypb.WorkflowTaskFailedEventAttributes{
			Cause: enums.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW,
		}},
	}
}

func scheduled() *historypb.HistoryEvent {
	return &historypb.HistoryEvent{EventType: enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED}
}

// update is an update that was accepted, of somebody's.
func update(name, payload, identity string) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{
		EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionUpdateAcceptedEventAttributes{
			WorkflowExecutionUpdateAcceptedEventAttributes: &historypb.WorkflowExecutionUpdateAcceptedEventAttributes{
				AcceptedRequest: &updatepb.Request{
					Meta:  &updatepb.Meta{Identity: identity},
					Input: &updatepb.Input{Name: name, Args: &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: []byte(payload)}}}},
				},
			},
		},
		// The worker's own: it has written the event.
		Principal: &commonpb.Principal{Type: "jwt", Name: "worker"},
	}
}

// from names the client of a signal's sender.
func from(identity string, signal *historypb.HistoryEvent) *historypb.HistoryEvent {
	signal.GetWorkflowExecutionSignaledEventAttributes().Identity = identity
	return signal
}

func TestTheSenderOfAWord(t *testing.T) {
	const nothing = `{}`
	word := Word{Name: api.MsgApprove}
	for name, c := range map[string]struct {
		history *server
		before  int64
		want    api.Sender
	}{
		"a signal":                         {historyOf(from("7@host@", signal("approve", "", "")), task()), 2, api.Sender{Identity: "7@host@"}},
		"a verified signal":                {historyOf(from("7@host@", signal("approve", "", "amy")), task()), 2, api.Sender{Identity: "7@host@", Principal: "jwt:amy"}},
		"signals of two":                   {historyOf(from("7@host@", signal("approve", "", "")), from("8@host@", signal("approve", "", "")), task()), 3, api.Sender{}},
		"an update":                        {historyOf(task(), task(), update("approve", nothing, "ui")), 2, api.Sender{Identity: "ui"}},
		"another update":                   {historyOf(task(), task(), update("deny", nothing, "ui")), 2, api.Sender{}},
		"an update that a later task took": {historyOf(task(), task(), task(), update("approve", nothing, "ui")), 2, api.Sender{}},
		"an update and a signal":           {historyOf(task(), from("7@host@", signal("approve", "", "amy")), task(), update("approve", nothing, "ui")), 3, api.Sender{}},
		"where it is not known when":       {historyOf(task(), update("approve", nothing, "ui")), 0, api.Sender{}},
	} {
		got, err := activitytest.Call(t, activitiesWith(nil, c.history).JudgeApproval, ApprovalInput{Word: word, Before: c.before})
		if err != nil || got.Sender != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

func activitiesWith(j *Judge, s *server) *Activities {
	temporal := &mocks.Client{}
	temporal.On("WorkflowService").Return(s)
	return &Activities{Judge: j, Temporal: temporal, Namespace: "default"}
}

const amy = `{"by":"amy","comment":"fine"}`

func TestThePrincipalIsWhoSentTheWord(t *testing.T) {
	long := make([]*historypb.HistoryEvent, 0, 500)
	for range 450 {
		long = append(long, signal("status", "", "somebody"))
	}
	word := Word{Name: api.MsgApprove, By: "amy", Comment: "fine"}
	for name, c := range map[string]struct {
		history *server
		before  int64
		want    string
	}{
		"verified":                           {historyOf(task(), signal("approve", amy, "amy@example.com"), task()), 3, "jwt:amy@example.com"},
		"nobody is verified":                 {historyOf(signal("approve", amy, ""), task()), 2, ""},
		"an update has no event":             {historyOf(task()), 1, ""},
		"another message of the same words":  {historyOf(signal("deny", amy, "bob")), 0, ""},
		"other words":                        {historyOf(signal("approve", `{"by":"amy"}`, "bob")), 0, ""},
		"words that were refused":            {historyOf(signal("approve", `{"by":"amy","comment":"fine","x":1}`, "bob")), 0, ""},
		"the same words, said later":         {historyOf(signal("approve", amy, "mallory"), task(), signal("approve", amy, "amy")), 2, "jwt:mallory"},
		"the same words, said before":        {historyOf(signal("approve", amy, "mallory"), task(), signal("approve", amy, "amy"), task()), 4, "jwt:amy"},
		"the same words of two, at once":     {historyOf(signal("approve", amy, "mallory"), signal("approve", amy, "amy"), task()), 3, ""},
		"of one who was not verified, too":   {historyOf(signal("approve", amy, ""), signal("approve", amy, "amy"), task()), 3, ""},
		"the same words of one, twice":       {historyOf(signal("approve", amy, "amy"), signal("approve", amy, "amy"), task()), 3, "jwt:amy"},
		"far back":                           {historyOf(append([]*historypb.HistoryEvent{signal("approve", amy, "amy")}, long...)...), 0, "jwt:amy"},
		"applied again by a reset":           {historyOf(task(), reset(), signal("approve", amy, "bob"), scheduled(), task()), 5, ""},
		"said after a reset":                 {historyOf(task(), reset(), scheduled(), signal("approve", amy, "bob"), task()), 5, "jwt:bob"},
		"applied again, and said again":      {historyOf(task(), reset(), signal("approve", amy, "bob"), scheduled(), signal("approve", amy, "amy"), task()), 6, ""},
		"said before a reset":                {historyOf(signal("approve", amy, "amy"), scheduled(), task(), reset(), scheduled(), task()), 3, "jwt:amy"},
		"a name that is too long to be kept": {historyOf(signal("approve", amy, strings.Repeat("x", maxText))), 0, ""},
		"a server that shows no history":     {&server{err: serviceerror.NewPermissionDenied("no", "")}, 0, ""},
		"a server that cannot":               {&server{err: serviceerror.NewUnimplemented("no")}, 0, ""},
	} {
		got, err := activitytest.Call(t, activitiesWith(nil, c.history).JudgeApproval, ApprovalInput{Word: word, Before: c.before})
		if err != nil || got.Principal != c.want || got.Refused != "" {
			t.Errorf("%s: %+v, %v; want %q", name, got, err, c.want)
		}
	}
	if _, err := activitytest.Call(t, activitiesWith(nil, &server{err: serviceerror.NewUnavailable("away")}).JudgeApproval,
		ApprovalInput{Word: word}); err == nil || activitytest.ErrorType(err) != "" {
		t.Errorf("error = %v, want one worth a retry", err)
	}
}

func TestTheSearchForAPrincipalIsBounded(t *testing.T) {
	var long []*historypb.HistoryEvent
	for range pageSize*maxPages + 1000 {
		long = append(long, task())
	}
	s := historyOf(long...)
	got, err := activitytest.Call(t, activitiesWith(nil, s).JudgeApproval, ApprovalInput{Word: Word{Name: api.MsgApprove}})
	if err != nil || got.Principal != "" || s.pages != maxPages {
		t.Errorf("%+v, %v after %d pages", got, err, s.pages)
	}
}

func TestLongWordsAreCompared(t *testing.T) {
	text := strings.Repeat("ä", 2000)
	word := WordOf(api.MsgApprove, api.Simple{Message: api.Message{By: "amy", Comment: text}})
	if len(word.Comment) > maxText || !strings.HasPrefix(text, word.Comment) {
		t.Errorf("%d bytes are kept", len(word.Comment))
	}
	payload, err := json.Marshal(api.Simple{Message: api.Message{By: "amy", Comment: text}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := activitytest.Call(t, activitiesWith(nil, historyOf(signal("approve", string(payload), "amy"))).JudgeApproval, ApprovalInput{Word: word})
	if err != nil || got.Principal != "jwt:amy" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestJudgeApproval(t *testing.T) {
	verified := policy.Rule{Name: "verified", Require: "has(approval.principal)", Message: "nobody was verified"}
	ofNode := policy.Rule{Name: "of-node", Require: `approval.comment != "" || node.labels["env"] == "test"`}
	_, byOps := specification(t, `{"node":"n1","requestor":"ops","approval":true}`)
	for name, c := range map[string]struct {
		rules []policy.Rule
		word  Word
		by    string
		node  *corev1.Node
		want  string
	}{
		"two people":               {rules, Word{Name: "approve", By: "amy"}, "", production(), ""},
		"the requestor itself":     {rules, Word{Name: "approve", By: "ops"}, "", production(), "policy no-slip: it requires approval.by != maintenance.requestor"},
		"the requestor may deny":   {rules, Word{Name: "deny", By: "ops"}, "", production(), ""},
		"nobody was verified":      {[]policy.Rule{verified}, Word{Name: "approve", By: "amy"}, "", nil, "policy verified: nobody was verified"},
		"somebody was verified":    {[]policy.Rule{verified}, Word{Name: "approve", By: "amy"}, "amy", nil, ""},
		"a rule of the node":       {[]policy.Rule{ofNode}, Word{Name: "approve", By: "amy"}, "", production(), "policy of-node: it requires"},
		"a rule of a missing node": {[]policy.Rule{ofNode}, Word{Name: "approve", By: "amy"}, "", nil, "policy of-node: it speaks of the node, and there is no node n1"},
	} {
		s := k8stest.New()
		if c.node != nil {
			s.Set(c.node)
		}
		history := historyOf(signal(c.word.Name, `{"by":"`+c.word.By+`"}`, c.by), task())
		in := ApprovalInput{Word: c.word, At: time.Now(), Before: 2, Maintenance: byOps}
		got, err := activitytest.Call(t, activitiesWith(judgeOf(t, s, c.rules...), history).JudgeApproval, in)
		if err != nil || !strings.HasPrefix(got.Refused, c.want) || (c.want == "") != (got.Refused == "") {
			t.Errorf("%s: %+v, %v; want %q", name, got, err, c.want)
		}
	}
	s := k8stest.New(production())
	s.Deny("get", "nodes")
	in := ApprovalInput{Word: Word{Name: "approve"}, Maintenance: byOps}
	if _, err := activitytest.Call(t, activitiesWith(judgeOf(t, s, ofNode), historyOf()).JudgeApproval, in); activitytest.ErrorType(err) != api.ErrorMissingPermission {
		t.Errorf("error = %v", err)
	}
}

func TestJudgeAmendment(t *testing.T) {
	for input, want := range map[string]string{
		`{"node":"n1"}`:                                    "",
		`{"node":"n1","drain":{"force":true}}`:             "policy no-force: it requires !maintenance.drain.force",
		`{"node":"n2","notBefore":"2026-03-01T22:00:00Z"}`: "",
	} {
		_, asked := specification(t, input)
		a := &Activities{Judge: judgeOf(t, k8stest.New(), rules[2])}
		got, err := activitytest.Call(t, a.JudgeAmendment, AmendmentInput{Maintenance: asked})
		if err != nil || got.Refused != want {
			t.Errorf("%s: %+v, %v; want %q", input, got, err, want)
		}
		// A worker whose configuration has lost its rules refuses nothing.
		if got, err := activitytest.Call(t, (&Activities{}).JudgeAmendment, AmendmentInput{Maintenance: asked}); err != nil || got.Refused != "" {
			t.Errorf("without rules: %+v, %v", got, err)
		}
	}
}
