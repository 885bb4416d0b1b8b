package api

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
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

var (
	runID     = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	attemptID = regexp.MustCompile(`^[1-9][0-9]{0,8}$`)
)

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
		holderName(r.Kind, r.Requestor), field("priority", spec.Priority(r.Priority)),
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
	errs = append(errs, spec.WindowNames("windows", r.Windows), field("expectedDuration", spec.ExpectedDuration(r.ExpectedDuration)),
		short("ignoreWindows", r.IgnoreWindows, spec.MaxText))
	if r.Gang != nil {
		errs = append(errs, gang(*r.Gang))
	}
	if r.Remediation && r.Gang != nil {
		errs = append(errs, errors.New("gang: a remediation goes by itself"))
	}
	if r.Remediation && !spec.IsRemediationRequestor(r.Requestor) {
		errs = append(errs, fmt.Errorf("requestor: %s: a remediation is of health-<check>", quoted(r.Requestor)))
	}
	if r.Kind != schedule.KindMaintenance && (r.Gang != nil || r.Remediation) {
		errs = append(errs, fmt.Errorf("gang, remediation: these are of maintenances, and not of kind %s", r.Kind))
	}
	if id := r.WorkflowID(cluster); len(id) > maxID {
		errs = append(errs, fmt.Errorf("node, requestor: the workflow ID has %d bytes, more than %d", len(id), maxID))
	}
	return errors.Join(errs...)
}

// holderName checks by which name a kind of workflow asks: it says which workflow that is. A profile's is whole, and may be none for a
// maintenance.
func holderName(kind schedule.HolderKind, requestor string) error {
	check, ofCheck := strings.CutPrefix(requestor, remediationRequestor)
	profile, ofProfile := strings.CutPrefix(requestor, ProfileRequestorPrefix)
	switch {
	case kind == schedule.KindMaintenance:
		return field("requestor", spec.RequestorName(requestor))
	case kind == schedule.KindControlPlane && ofCheck:
		return field("requestor", health.CheckName(check))
	case kind == schedule.KindProfile && ofProfile:
		return field("requestor", state.CheckName(profile))
	case kind == schedule.KindControlPlane, kind == schedule.KindProfile:
		return fmt.Errorf("requestor: %s asks for no slot of kind %s", quoted(requestor), kind)
	default:
		return fmt.Errorf("kind: %s is no kind of holder: want %q, %q, or none for a maintenance", quoted(string(kind)), schedule.KindControlPlane, schedule.KindProfile)
	}
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

// Validate checks a holder that another scheduler has handed over.
func (h Holder) Validate(cluster string) error {
	err := errors.Join(
		field("runId", RunID(h.RunID)), field("node", spec.NodeName(h.Node)), holderName(h.Kind, h.Requestor), field("requestId", RequestID(h.RequestID)),
	)
	if id := h.WorkflowID(cluster); len(id) > maxID {
		err = errors.Join(err, fmt.Errorf("node, requestor: the workflow ID has %d bytes, more than %d", len(id), maxID))
	}
	if h.Gang != "" {
		err = errors.Join(err, gang(schedule.Gang{Name: h.Gang, Size: 1}))
	}
	if run, _, _ := strings.Cut(h.RequestID, "/"); err == nil && run != h.RunID {
		err = fmt.Errorf("requestId: %s is not one of run %s", quoted(h.RequestID), quoted(h.RunID))
	}
	return err
}

const (
	// MaxTargets bounds what a NodeTarget lists, and maxSelectors, in bytes, what its selectors take up.
	MaxTargets   = 1000
	maxSelectors = 64 << 10
)

// Validate checks what a shared maintenance goes by. The error has one line per wrong field.
func (t NodeTarget) Validate() error {
	var errs []error
	errs = append(errs, short("run", t.Run, maxName))
	if t.Revision < 0 || t.Revision == 0 && !t.Report {
		errs = append(errs, fmt.Errorf("revision: %d: want 1 or more, the latest counts; or 0 with report, to ask", t.Revision))
	}
	size := 0
	for i, e := range t.Targets {
		errs = append(errs, short(fmt.Sprintf("targets[%d].podSelector", i), e.PodSelector, spec.MaxText))
		size += len(e.PodSelector)
	}
	if len(t.Targets) > MaxTargets || size > maxSelectors {
		errs = append(errs, fmt.Errorf("targets: %d entries with %d bytes of selectors: at most %d and %d are taken", len(t.Targets), size, MaxTargets, maxSelectors))
	} else if _, err := drainplan.New(t.Targets, nil); err != nil {
		errs = append(errs, fmt.Errorf("targets: %w", err))
	}
	if t.Gang != nil {
		errs = append(errs, gang(*t.Gang))
	}
	return errors.Join(errs...)
}

// gang checks a gang; the error has one line per wrong field.
func gang(g schedule.Gang) error {
	err := g.Validate()
	if err == nil {
		return nil
	}
	var errs []error
	for line := range strings.Lines(err.Error()) {
		errs = append(errs, errors.New("gang."+strings.TrimSpace(line)))
	}
	return errors.Join(errs...)
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
