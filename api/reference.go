package api

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Reference names a maintenance: its workflow, and the first run of it, which continuing as new and a reset do not
// change.
type Reference struct {
	WorkflowID string `json:"workflowId"`
	RunID      string `json:"runId"`
}

// Check refuses what cannot be a maintenance, and returns its cluster. The error names the field.
func (r Reference) Check() (cluster string, err error) {
	cluster, node, requestor, err := ParseMaintenanceID(r.WorkflowID)
	if err == nil && MaintenanceID(cluster, node, requestor) != r.WorkflowID {
		err = fmt.Errorf("workflow ID %.300q is not of the form [<cluster>/]%s/<node>/<requestor>", r.WorkflowID, maintenancePrefix)
	}
	if err != nil {
		return "", fmt.Errorf("workflowId: %w", err)
	}
	if !runID.MatchString(r.RunID) {
		return "", fmt.Errorf("runId: %.40q is not the ID of a run: want that of the maintenance's first run", r.RunID)
	}
	return cluster, nil
}

// Moment is a place among the events of a maintenance. Time orders them, and Sequence those of one instant: after a reset
// of the maintenance, a sequence may stand for another event than before.
type Moment struct {
	Sequence int       `json:"sequence"`
	At       time.Time `json:"at"`
}

// Compare is negative where m is before other, and 0 where it is the same.
func (m Moment) Compare(other Moment) int {
	return cmp.Or(m.At.Compare(other.At), cmp.Compare(m.Sequence, other.Sequence))
}

// EventReference names an event of a maintenance.
type EventReference struct {
	Reference
	Moment
	// Times counts how often it was sent before: a state may be sent repeatedly while it lasts.
	Times int `json:"times,omitempty"`
}

// Check refuses what cannot be an event of a maintenance. The error names the field.
func (r EventReference) Check() (cluster string, err error) {
	if cluster, err = r.Reference.Check(); err != nil {
		return "", err
	}
	switch {
	case r.Sequence < 1:
		return "", fmt.Errorf("sequence: %d: want 1 or more", r.Sequence)
	case r.At.IsZero():
		return "", errors.New("at: is missing: want the time of the event")
	case r.Times < 0:
		return "", fmt.Errorf("times: %d is negative", r.Times)
	}
	return cluster, nil
}

// ID is the same for the same event, told as often.
func (r EventReference) ID() string {
	return fmt.Sprintf("%s/%d", EventID(r.WorkflowID, r.RunID, r.Moment), r.Times)
}

// EventID is the ID of an event, which it has wherever and however often it is sent.
func EventID(workflowID, runID string, m Moment) string {
	return fmt.Sprintf("%s/%s/%d/%d", workflowID, runID, m.Sequence, m.At.UnixMilli())
}
