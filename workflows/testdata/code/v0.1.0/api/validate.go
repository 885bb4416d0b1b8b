package api

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/spec"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

const (
	// maxID is how long a workflow ID may be: a Temporal server refuses more than 1,000 bytes, and the IDs of what a
	// maintenance starts are longer than its own.
	maxID = 1000
	// maxName and maxWords bound, in bytes, what somebody is called and says in a message.
	maxName  = 253
	maxWords = 1024
	// maxAhead is how far a request may come from the future: clocks differ.
	maxAhead = time.Hour
)

var runID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

var attemptID = regexp.MustCompile(`^[1-9][0-9]{0,8}$`)

// RunID checks the ID of a run, which is a UUID: a Temporal server refuses a command that names another.
func RunID(id string) error {
	if !runID.MatchString(id) {
		return fmt.Errorf("%s is not the ID of a run (a UUID)", quoted(id))
	}
	return nil
}

// RequestID checks the ID of a slot request: <runId>/<attempt>.
func RequestID(id string) error {
	run, attempt, found := strings.Cut(id, "/")
	if !found || !runID.MatchString(run) || !attemptID.MatchString(attempt) {
		return fmt.Errorf("%s is not of the form <runId>/<attempt>", quoted(id))
	}
	return nil
}

// Validate checks all that a scheduler makes commands of; cluster is its own, now its time. The error has one line per
// wrong field.
func (r SlotRequest) Validate(cluster string, now time.Time) error {
	errs := []error{
		field("runId", RunID(r.RunID)), field("id", RequestID(r.ID)), field("node", spec.NodeName(r.Node)),
		field("requestor", spec.RequestorName(r.Requestor)), field("priority", spec.Priority(r.Priority)),
	}
	if run, _, _ := strings.Cut(r.ID, "/"); errs[1] == nil && run != r.RunID {
		errs = append(errs, fmt.Errorf("id: %s is not one of run %s", quoted(r.ID), quoted(r.RunID)))
	}
	switch {
	case r.Created.IsZero():
		errs = append(errs, errors.New("created: required: requests are ranked by it"))
	case r.Created.After(now.Add(maxAhead)):
		errs = append(errs, fmt.Errorf("created: %s is in the future", r.Created.UTC().Format(time.RFC3339)))
	}
	if id := MaintenanceID(cluster, r.Node, r.Requestor); len(id) > maxID {
		errs = append(errs, fmt.Errorf("node, requestor: the workflow ID has %d bytes, more than %d", len(id), maxID))
	}
	return errors.Join(errs...)
}

// Validate checks what frees a slot. Requests of any form may be withdrawn, as far as they are known.
func (r SlotRelease) Validate() error {
	errs := []error{short("by", r.By, maxName), short("why", r.Why, maxWords)}
	if r.RequestID == "" {
		errs = append(errs, errors.New("requestId: required"))
	}
	return errors.Join(append(errs, short("requestId", r.RequestID, maxName))...)
}

// Validate checks a mark of a cluster's own that is to become a holder.
func (m StrayMark) Validate(cluster string) error {
	errs := []error{
		field("runId", RunID(m.RunID)), field("node", spec.NodeName(m.Node)), field("requestor", spec.RequestorName(m.Requestor)),
	}
	if id := MaintenanceID(cluster, m.Node, m.Requestor); m.WorkflowID != id {
		errs = append(errs, fmt.Errorf("workflowId: %s is not that of a maintenance of the node by the requestor", quoted(m.WorkflowID)))
	} else if len(id) > maxID {
		errs = append(errs, fmt.Errorf("workflowId: %d bytes are more than %d", len(id), maxID))
	}
	return errors.Join(errs...)
}

// Validate checks a holder that another scheduler tells of.
func (h Holder) Validate(cluster string) error {
	mark := StrayMark{Node: h.Node, RunID: h.RunID, Requestor: h.Requestor, WorkflowID: MaintenanceID(cluster, h.Node, h.Requestor)}
	err := errors.Join(mark.Validate(cluster), field("requestId", RequestID(h.RequestID)))
	if run, _, _ := strings.Cut(h.RequestID, "/"); err == nil && run != h.RunID {
		err = fmt.Errorf("requestId: %s is not one of run %s", quoted(h.RequestID), quoted(h.RunID))
	}
	return err
}

func field(name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func short(field, text string, most int) error {
	if len(text) > most {
		return fmt.Errorf("%s: %d bytes are more than %d", field, len(text), most)
	}
	return nil
}

// quoted shows the beginning of what somebody sent.
func quoted(text string) string {
	const most = 80
	if len(text) > most {
		return fmt.Sprintf("%q...", strings.ToValidUTF8(text[:most], ""))
	}
	return fmt.Sprintf("%q", text)
}
