package client

import (
	"slices"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/rules/spec"
)

// past is a maintenance that completed some hours ago.
func past(run string, hours int, change ...func(*View)) View {
	v := endedView(api.Completed, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, "")
	v.RunID, v.Closed = run, before(time.Duration(hours)*time.Hour)
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

func TestRecordQueries(t *testing.T) {
	since := time.Date(2026, 6, 1, 12, 0, 0, 0, time.FixedZone("east", 3600))
	const some = `WorkflowType="NodeMaintenance" AND WorkflowId STARTS_WITH "blue/node-maintenance/`
	for want, f := range map[string]RecordFilter{
		some + `worker-1/" AND ExecutionStatus != "ContinuedAsNew"`:                                                                        {Node: "worker-1"},
		some + `worker-1/" AND ExecutionStatus != "ContinuedAsNew" AND (ExecutionStatus="Running" OR CloseTime >= "2026-06-01T11:00:00Z")`: {Node: "worker-1", Since: since},
		some + `" AND ExecutionStatus != "ContinuedAsNew" AND CloseTime >= "2026-06-01T11:00:00Z"`:                                         {Since: since, Ended: true},
	} {
		f.Cluster = "blue"
		if got := f.query(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestRecordsThatEndedOtherwise(t *testing.T) {
	terminated := past("1", 2, func(v *View) {
		v.Execution, v.Result, v.Failure = enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, nil, "the workflow was terminated by hand"
		v.Status.Phase, v.Status.Transitions = api.Draining, v.Status.Transitions[:2]
	})
	r := terminated.Record("blue", noon)
	if r.Phase != "Failed" || r.Failure != "the workflow was terminated by hand" || !r.EndedAt.Equal(terminated.Closed) || r.Cluster != "blue" {
		t.Errorf("terminated: %+v", r)
	}
	if total := record.Total(r); total != time.Hour {
		t.Errorf("terminated: took %s", total)
	}
	refused := past("2", 2, func(v *View) {
		v.Execution, v.Result, v.Failure = enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, nil, "node: required"
		v.Status = &api.Status{WorkflowID: v.WorkflowID, RunID: "2", Phase: api.Pending, Since: v.Started, Spec: spec.Maintenance{Node: v.Node, Requestor: v.Requestor}}
	})
	r = refused.Record("", noon)
	if r.Phase != "Failed" || r.Failure != "node: required" || r.Specification != nil || r.Validate() != nil {
		t.Errorf("refused: %+v", r)
	}
}

func TestFiltersChooseRecords(t *testing.T) {
	shared, other, open := past("1", 5).Record("", noon), past("2", 4).Record("blue", noon), viewOf(api.Ready).Record("", noon)
	shared.AdditionalRequestors, other.Node = []string{"net"}, "worker-02"
	all := []record.Record{shared, other, open, shared}
	for name, c := range map[string]struct {
		filter RecordFilter
		want   string
	}{
		"all":            {RecordFilter{}, "run-1 2 1"},
		"a node":         {RecordFilter{Node: "worker-02"}, "2"},
		"a cluster":      {RecordFilter{Cluster: "blue"}, "2"},
		"whoever shared": {RecordFilter{Requestor: "net"}, "1"},
		"since":          {RecordFilter{Since: before(4*time.Hour + 30*time.Minute)}, "run-1 2"},
		"ended":          {RecordFilter{Ended: true}, "2 1"},
		"the newest":     {RecordFilter{Limit: 2}, "run-1 2"},
		"nobody's":       {RecordFilter{Requestor: "none"}, ""},
	} {
		var runs []string
		for _, r := range c.filter.Of(slices.Clone(all)) {
			runs = append(runs, r.RunID)
		}
		if got := strings.Join(runs, " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestARefusedInputIsToldFromAMaintenanceThatFailed(t *testing.T) {
	refused := endedView(api.Failed, enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, "")
	refused.Result, refused.Failure, refused.Refused = nil, `notify[0]: no channel "oncall"`, true
	if r := refused.Record("", noon); !r.Refused() || r.Failure != refused.Failure || !r.EndedAt.Equal(refused.Closed) {
		t.Errorf("%+v", r)
	}
	// Of one that was terminated before anybody could be asked nothing is known.
	terminated := endedView(api.Failed, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, "")
	terminated.Result = nil
	if r := terminated.Record("", noon); r.Refused() {
		t.Errorf("%+v", r)
	}
}
