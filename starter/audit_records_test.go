package starter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
)

// chronicle is a Temporal that remembers maintenances.
type chronicle struct {
	temporalclient.Client
	views []client.View
	// forgotten are listed and not there any more, silent do not answer, working tells that a worker runs.
	forgotten, silent []string
	working           bool
	// down: the worker has just stopped.
	down bool
	// takes is how long an answer takes.
	takes time.Duration

	mu      sync.Mutex
	queries []string
	// atOnce counts the queries under way, most is the highest it was.
	atOnce, most int
	asked        int
}

func (c *chronicle) info(v client.View) *workflowpb.WorkflowExecutionInfo {
	info := &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: v.WorkflowID, RunId: v.RunID}, Status: v.Execution, StartTime: timestamppb.New(v.Started),
	}
	if !v.Running() {
		info.CloseTime = timestamppb.New(v.Closed)
	}
	return info
}

func (c *chronicle) ListWorkflow(_ context.Context, request *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queries = append(c.queries, request.GetQuery())
	answer := &workflowservice.ListWorkflowExecutionsResponse{}
	for _, v := range c.views {
		answer.Executions = append(answer.Executions, c.info(v))
	}
	return answer, nil
}

func (c *chronicle) find(run string) (client.View, error) {
	i := slices.IndexFunc(c.views, func(v client.View) bool { return v.RunID == run })
	if i < 0 || slices.Contains(c.forgotten, run) {
		return client.View{}, serviceerror.NewNotFound("no such run")
	}
	return c.views[i], nil
}

func (c *chronicle) DescribeWorkflowExecution(_ context.Context, _, run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	v, err := c.find(run)
	if err != nil {
		return nil, err
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: c.info(v)}, nil
}

func (c *chronicle) DescribeTaskQueue(context.Context, string, enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	answer := &workflowservice.DescribeTaskQueueResponse{}
	if c.working {
		answer.Pollers = []*taskqueuepb.PollerInfo{{LastAccessTime: timestamppb.New(startertest.Noon)}}
	}
	return answer, nil
}

func (c *chronicle) QueryWorkflow(_ context.Context, _, run, _ string, _ ...any) (converter.EncodedValue, error) {
	c.mu.Lock()
	c.atOnce++
	c.asked++
	c.most = max(c.most, c.atOnce)
	c.mu.Unlock()
	if c.takes > 0 {
		<-time.After(c.takes)
	}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.atOnce--
	}()
	v, err := c.find(run)
	if err != nil {
		return nil, err
	}
	if c.down {
		return nil, serviceerror.NewDeadlineExceeded("context deadline exceeded")
	}
	if slices.Contains(c.silent, run) {
		return nil, errors.New("query timed out")
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(v.Status)
	return temporalclient.NewValue(payloads), err
}

// chronicledRun is a run whose result is that of its view.
type chronicledRun struct {
	temporalclient.WorkflowRun
	view client.View
}

func (r chronicledRun) GetWithOptions(_ context.Context, result any, _ temporalclient.WorkflowRunGetOptions) error {
	*result.(*api.Result) = *r.view.Result
	return nil
}

func (c *chronicle) GetWorkflow(_ context.Context, _, run string) temporalclient.WorkflowRun {
	v, err := c.find(run)
	if err != nil {
		panic(err)
	}
	return chronicledRun{view: v}
}

// past is a maintenance that completed some hours ago.
func past(run string, hours int, change ...func(*client.View)) client.View {
	v := startertest.Ended(api.Completed, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, "")
	v.RunID, v.Closed = run, startertest.Before(time.Duration(hours)*time.Hour)
	v.Started = v.Closed.Add(-time.Hour)
	ended := v.Closed.Add(-time.Second)
	v.Result.Transitions = []api.Transition{
		{Phase: api.Pending, At: v.Started}, {Phase: api.Draining, At: v.Started.Add(time.Minute)}, {Phase: api.Completed, At: ended},
	}
	v.Status = &api.Status{
		WorkflowID: v.WorkflowID, RunID: run, Phase: api.Completed, Since: ended, Attempt: 1, Transitions: v.Result.Transitions,
		Spec:     spec.Maintenance{Node: v.Node, Requestor: v.Requestor, Type: spec.Planned, Ticket: "OPS-" + run},
		Messages: []api.Received{{At: ended, Name: "done", By: "ops@host", Effect: "ops is done"}},
	}
	for _, c := range change {
		c(&v)
	}
	return v
}

func connectionTo(c *chronicle) *invocation.Connection {
	return &invocation.Connection{Client: client.New(c, client.Options{Now: startertest.ClockAtNoon}), Program: "drydock", Clock: startertest.ClockAtNoon}
}

func tickets(records []record.Record) string {
	var all []string
	for _, r := range records {
		ticket := r.Ticket
		if ticket == "" {
			ticket = "?"
		}
		all = append(all, ticket)
	}
	return strings.Join(all, " ")
}

func TestRecordsFromTemporal(t *testing.T) {
	goesOn := startertest.View(api.Draining, func(s *api.Status) { s.RunID, s.Spec.Ticket = "9", "OPS-9" })
	goesOn.RunID = "9"
	c := &chronicle{working: true, views: []client.View{past("1", 30), goesOn, past("2", 3)}}
	var said bytes.Buffer
	records, err := recordsOfTemporal(t.Context(), connectionTo(c), client.RecordFilter{Node: "worker-01", Limit: 10}, &said, nil)
	if err != nil || said.Len() > 0 {
		t.Fatalf("%v, said %q", err, said.String())
	}
	if got := tickets(records); got != "OPS-9 OPS-2 OPS-1" {
		t.Errorf("got %s, want the newest first", got)
	}
	if r := records[0]; r.Ended() || !r.AsOf.Equal(startertest.Noon) || r.Phase != "Draining" {
		t.Errorf("the one that goes on: %+v", r)
	}
	r := records[1]
	if !r.EndedAt.Equal(startertest.Before(3*time.Hour).Add(-time.Second)) || r.Phase != "Completed" || len(r.Messages) != 1 || len(r.Phases) != 3 || r.Specification == nil {
		t.Errorf("one that ended: %+v", r)
	}
	for _, r := range records {
		if err := r.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestRecordsWithoutAWorkerHaveTheEnd(t *testing.T) {
	c := &chronicle{views: []client.View{past("1", 30), past("2", 3)}}
	var said bytes.Buffer
	records, err := recordsOfTemporal(t.Context(), connectionTo(c), client.RecordFilter{}, &said, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != 2 || records[0].Phase != "Completed" || len(records[0].Phases) != 3 || records[0].Specification != nil || len(records[0].Messages) != 0 {
		t.Errorf("%+v", records)
	}
	want := `Warning: no worker is polling task queue "drydock" in namespace "default": start drydock-worker; of 2 maintenances only the phases and the end are known: ` +
		"node-maintenance/worker-01/ops (run 1), node-maintenance/worker-01/ops (run 2)\n"
	if diff := cmp.Diff(want, said.String()); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

func TestManyWithoutAWorkerAreOneWarning(t *testing.T) {
	c := &chronicle{working: true, down: true}
	for i := range 100 {
		c.views = append(c.views, past(fmt.Sprint(i), i+1))
	}
	var said bytes.Buffer
	records, err := recordsOfTemporal(t.Context(), connectionTo(c), client.RecordFilter{}, &said, nil)
	if err != nil || len(records) != 100 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	if c.asked > client.HistoriesAtOnce {
		t.Errorf("%d were asked, though the first one got no answer", c.asked)
	}
	if got := said.String(); strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "; of 100 maintenances only the phases and the end are known\n") {
		t.Error(got)
	}
}

func TestOneThatDoesNotAnswerOrIsForgottenStopsNoOther(t *testing.T) {
	c := &chronicle{working: true, views: []client.View{past("1", 30), past("2", 3), past("3", 2)}, silent: []string{"1"}, forgotten: []string{"2"}}
	var said bytes.Buffer
	records, err := recordsOfTemporal(t.Context(), connectionTo(c), client.RecordFilter{}, &said, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := tickets(records); got != "OPS-3 ?" {
		t.Errorf("got %s", got)
	}
	for _, want := range []string{
		"no answer from the maintenance of worker-01: query timed out; of 1 maintenance only the phases and the end are known: ", "(run 1)",
		"Temporal has forgotten it meanwhile; 1 maintenance left out: node-maintenance/worker-01/ops (run 2)",
	} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q is not in %q", want, said.String())
		}
	}
}

func TestManyRecordsAreReadAFewAtATimeAndToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &chronicle{working: true, takes: time.Second}
		for i := range 2 * manyRecords {
			c.views = append(c.views, past(fmt.Sprint(i), i+1))
		}
		var said bytes.Buffer
		records, err := recordsOfTemporal(t.Context(), connectionTo(c), client.RecordFilter{}, &said, recordProgress(terminal.NewDisplay(&said, startertest.ClockAtNoon)))
		if err != nil || len(records) != 2*manyRecords {
			t.Fatalf("%d records, %v", len(records), err)
		}
		if c.most != client.HistoriesAtOnce {
			t.Errorf("%d were asked at once, want %d", c.most, client.HistoriesAtOnce)
		}
		if n := strings.Count(said.String(), "\n"); n != 20 || !strings.Contains(said.String(), "100 of 100 read") {
			t.Errorf("%d lines of progress:\n%s", n, said.String())
		}
	})
}

// sinkFile is a file of an audit sink.
func sinkFile(t *testing.T, end string, views ...client.View) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var lines bytes.Buffer
	for _, v := range views {
		line, err := v.Record("", startertest.Noon).Encode()
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	lines.WriteString(end)
	if err := os.WriteFile(path, lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// drydock runs a command line.
func drydock(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, said bytes.Buffer
	code = Run(t.Context(), invocation.Process{Args: append([]string{"drydock"}, args...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &said})
	return code, out.String(), said.String()
}

func TestHistoryFromFiles(t *testing.T) {
	first := sinkFile(t, `{"torn":`, past("1", 30), past("2", 3))
	second := sinkFile(t, "", past("2", 3), past("3", 2, func(v *client.View) { v.Node, v.Status.Spec.Node = "worker-02", "worker-02" }))
	code, out, said := drydock(t, "history", "worker-01", "--from", first, "--from", second, "-o", "json")
	var records []record.Record
	if err := json.Unmarshal([]byte(out), &records); code != exit.OK || err != nil || tickets(records) != "OPS-2 OPS-1" {
		t.Errorf("code %d, %v, %s", code, err, out)
	}
	if !strings.Contains(said, "Warning: not read: "+first+":3: the last line is not whole") {
		t.Errorf("the torn line is not told of: %q", said)
	}
	if code, out, _ := drydock(t, "history", "worker-01", "--from", second); code != exit.OK || strings.Count(out, "\n") != 2 || !strings.Contains(out, "[OPS-2]") {
		t.Errorf("code %d:\n%s", code, out)
	}
	if code, out, _ := drydock(t, "history", "worker-01", "--from", first, "--limit", "1", "-o", "markdown"); code != exit.OK || !strings.HasPrefix(out, "## Maintenance of worker-01 by ops\n") || strings.Count(out, "\n## ") != 0 {
		t.Errorf("code %d:\n%s", code, out)
	}
	if code, out, _ := drydock(t, "history", "worker-01", "--from", first, "--details"); code != exit.OK || strings.Count(out, "Messages:") != 2 {
		t.Errorf("code %d:\n%s", code, out)
	}
}

func TestHistoryOfNothing(t *testing.T) {
	file := sinkFile(t, "", past("1", 30))
	code, out, said := drydock(t, "history", "worker-09", "--from", file)
	if code != exit.OK || out != "" || said != "No maintenance of worker-09 is on record.\n" {
		t.Errorf("code %d, %q, %q", code, out, said)
	}
	if code, out, _ := drydock(t, "history", "worker-09", "--from", file, "-o", "json"); code != exit.OK || out != "[]\n" {
		t.Errorf("code %d, %q", code, out)
	}
}

func TestReportFromFiles(t *testing.T) {
	file := sinkFile(t, "", past("1", 30), past("2", 3))
	for requestor, want := range map[string]int{"": 1, "ops": 1, "nobody": 0} {
		var out bytes.Buffer
		a := invocation.New(invocation.Process{Stdout: &out, Stderr: t.Output()})
		a.Clock = startertest.ClockAtNoon
		o := reportOptions{app: a, requestor: requestor, recordFlags: recordFlags{output: terminal.Output{Format: terminal.FormatJSON}, from: []string{file}, since: input.Span(24 * time.Hour)}}
		if err := o.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		var report record.Report
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			t.Fatal(err)
		}
		if report.Maintenances != want || !report.Until.Equal(startertest.Noon) || !report.Since.Equal(startertest.Before(24*time.Hour)) {
			t.Errorf("of %q: %+v", requestor, report)
		}
		if want > 0 && report.Total.P50 != spec.Duration(time.Hour-time.Second) {
			t.Errorf("took %s", report.Total.P50)
		}
	}
}

func TestReportIsShown(t *testing.T) {
	report := record.Summarize([]record.Record{past("1", 30).Record("", startertest.Noon), past("2", 3).Record("", startertest.Noon)}, startertest.Before(30*24*time.Hour), startertest.Noon)
	for _, format := range []string{terminal.FormatTable, terminal.FormatMarkdown} {
		o := reportOptions{recordFlags: recordFlags{output: terminal.Output{Format: format}}}
		var out bytes.Buffer
		if err := o.show(&out, report); err != nil || !strings.Contains(out.String(), "2 maintenances of 1 node") {
			t.Errorf("%s: %v\n%s", format, err, out.String())
		}
	}
}

func TestHistoryTables(t *testing.T) {
	goesOn := startertest.View("")
	goesOn.Status = nil
	failed := past("3", 5, func(v *client.View) {
		v.Result.Phase, v.Result.Message, v.Failure = api.Failed, "pod a/b lacks consent", "pod a/b lacks consent"
	})
	records := []record.Record{goesOn.Record("", startertest.Noon), past("1", 3).Record("", startertest.Noon), failed.Record("", startertest.Noon)}
	for name, o := range map[string]historyOptions{
		"history":         {recordFlags: recordFlags{output: terminal.Output{Format: terminal.FormatTable}}},
		"history_details": {recordFlags: recordFlags{output: terminal.Output{Format: terminal.FormatTable}}, details: true},
	} {
		startertest.Golden(t, name, func(w io.Writer) {
			if err := o.show(w, records, startertest.Noon); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRecordCommandsRefuseWhatMakesNoSense(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"history"}, exit.Usage, "missing NODE: history NODE"},
		{[]string{"history", "no/node"}, exit.Usage, "no/node"},
		{[]string{"history", "worker-01", "-o", "xml"}, exit.Usage, "want one of table, wide, json, yaml, markdown"},
		{[]string{"history", "worker-01", "--limit", "-1"}, exit.Usage, "--limit -1: want 0 or more"},
		{[]string{"history", "worker-01", "--since", "soon"}, exit.Usage, "want a time like 30d, 12h or 90m"},
		{[]string{"history", "worker-01", "--from", "/no/such/file"}, exit.Failed, "--from: no audit records: there is no file /no/such/file"},
		{[]string{"report", "--requestor", "a b"}, exit.Usage, "--requestor: "},
		{[]string{"report", "worker-01"}, exit.Usage, "worker-01"},
		{[]string{"report", "--address", "127.0.0.1:1"}, exit.Failed, "127.0.0.1:1 is not reachable"},
	} {
		if code, _, said := drydock(t, c.args...); code != c.code || !strings.Contains(said, c.want) {
			t.Errorf("%v: code %d, %q, want %q", c.args, code, said, c.want)
		}
	}
}
