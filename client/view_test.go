package client

import (
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
)

// One length of a maintenance, wherever it is shown: from its first start to its own end, and not from its first step, nor
// from its last run to the close of its workflow.
func TestAMaintenanceHasOneLength(t *testing.T) {
	created, ended := noon.Add(-10*time.Minute), noon.Add(-5*time.Minute)
	transitions := []api.Transition{{Phase: api.Pending, At: ended.Add(-time.Second)}, {Phase: api.Cancelled, At: ended}}
	asked := endedView(api.Cancelled, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, "")
	asked.Started, asked.Closed = noon.Add(-7*time.Minute), noon // its last run
	asked.Result.CreatedAt, asked.Result.Transitions = created, transitions
	answered := asked
	answered.Status = &api.Status{Phase: api.Cancelled, Since: ended, CreatedAt: created, Transitions: transitions}
	for name, v := range map[string]View{"by its result": asked, "by its status": answered} {
		r := v.Record("", noon)
		if !v.Began().Equal(created) || !v.Ended().Equal(ended) || !r.CreatedAt.Equal(created) || !r.EndedAt.Equal(ended) {
			t.Errorf("%s: %s to %s, recorded %s to %s", name, v.Began(), v.Ended(), r.CreatedAt, r.EndedAt)
		}
	}
	if kept := api.RecordOf(*answered.Status, ""); !kept.CreatedAt.Equal(created) || !kept.EndedAt.Equal(ended) {
		t.Errorf("the audit file has %s to %s", kept.CreatedAt, kept.EndedAt)
	}
	older := endedView(api.Completed, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, "")
	if !older.Began().Equal(older.Started) || !older.Ended().Equal(older.Closed) {
		t.Errorf("where nothing else is known: %s to %s", older.Began(), older.Ended())
	}
}
