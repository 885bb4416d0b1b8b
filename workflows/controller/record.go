package controller

import "drydock.dev/drydock/api"

// RecordKind is that of the keys of the starts of audit records.
const RecordKind = "record"

// Recorder is embedded by a controller that has an audit record kept before it ends.
type Recorder struct {
	// Recorded: an audit record is kept, or its workflow cannot be started. RecordTries counts the starts that failed.
	Recorded    bool `json:"recorded,omitempty"`
	RecordTries int  `json:"recordTries,omitempty"`
}

// Record starts the workflow that reads the record from this one, and outlives it. Somebody who has taken its ID must not suppress the record:
// another ID is tried.
func (r *Recorder) Record(i Info, id, what string, attributed bool) Effect {
	id = api.FurtherID(id, r.RecordTries+1)
	start := Start{
		Meta: Meta{Key: Key{Kind: RecordKind, Of: id}, Summary: "record of " + what},
		Type: api.AuditRecordType, ID: id, Input: api.Reference{WorkflowID: i.WorkflowID, RunID: i.Run}, Once: true,
	}
	if attributed {
		start.Attributes = map[string]string{api.AttributeKind.GetName(): api.KindRecord, api.AttributeCluster.GetName(): i.Cluster}
	}
	return start
}

// TakeRecord takes whether the workflow was started, and reports whether that has failed.
func (r *Recorder) TakeRecord(o Outcome) (failed bool) {
	if o.What != Done {
		return false
	}
	if failed = o.Err != nil; failed {
		r.RecordTries++
	}
	r.Recorded = !failed || r.RecordTries > 1 // another ID is tried once
	return failed
}
