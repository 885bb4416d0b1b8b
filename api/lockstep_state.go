package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/spec"
)

// Validate checks all that a lockstep makes commands of, and compiles the tiers. The error has one line per wrong field.
func (i PlanIntent) Validate(now time.Time) (drainplan.Plan, error) {
	errs := []error{field("name", plan.CheckName(i.Name)), field("runId", RunID(i.RunID))}
	switch {
	case i.CreatedAt.IsZero():
		errs = append(errs, errors.New("createdAt: required: the older of two plans comes first"))
	case i.CreatedAt.After(now.Add(maxAhead)):
		errs = append(errs, fmt.Errorf("createdAt: %s is in the future", i.CreatedAt.UTC().Format(time.RFC3339)))
	}
	if i.Revision < 1 {
		errs = append(errs, fmt.Errorf("revision: %d: want 1 or more", i.Revision))
	}
	if !slices.Contains(plan.Stages, i.Stage) {
		errs = append(errs, fmt.Errorf("stage: %s is not one of %q", quoted(string(i.Stage)), plan.Stages))
	}
	if i.Stage == StageIdle {
		return drainplan.Plan{}, errors.Join(errs...)
	}
	tiers, err := i.tiers()
	errs = append(errs, err, i.nodes(), i.maintenance())
	return tiers, errors.Join(errs...)
}

func (i PlanIntent) tiers() (drainplan.Plan, error) {
	switch text, _ := json.Marshal(i.Tiers); {
	case len(i.Tiers) == 0:
		return drainplan.Plan{}, errors.New("tiers: required: the drain plan with the standard entries")
	case len(i.Tiers) > plan.MaxTiers:
		return drainplan.Plan{}, fmt.Errorf("tiers: %d entries: at most %d are taken", len(i.Tiers), plan.MaxTiers)
	case len(text) > plan.MaxTiersText:
		return drainplan.Plan{}, fmt.Errorf("tiers: %d bytes: at most %d are taken", len(text), plan.MaxTiersText)
	}
	return drainplan.New(i.Tiers, nil)
}

func (i PlanIntent) nodes() error {
	if len(i.Nodes) > plan.MaxNodes {
		return fmt.Errorf("nodes: %d entries: at most %d are taken", len(i.Nodes), plan.MaxNodes)
	}
	seen := make(map[string]bool, len(i.Nodes))
	for at, name := range i.Nodes {
		if err := spec.NodeName(name); err != nil {
			return fmt.Errorf("nodes[%d]: %s is not a node name", at, quoted(name))
		}
		if seen[name] {
			return fmt.Errorf("nodes[%d]: %s is named twice", at, quoted(name))
		}
		seen[name] = true
	}
	return nil
}

func (i PlanIntent) maintenance() error {
	if len(i.Maintenance) == 0 {
		return nil
	}
	if len(i.Maintenance) > spec.MaxInput {
		return fmt.Errorf("maintenance: %d bytes: at most %d are taken", len(i.Maintenance), spec.MaxInput)
	}
	var fields map[string]json.RawMessage
	if !bytes.HasPrefix(bytes.TrimSpace(i.Maintenance), []byte("{")) || json.Unmarshal(i.Maintenance, &fields) != nil {
		return errors.New("maintenance: want a JSON object")
	}
	for _, own := range []string{"node", "requestor", "lockstep"} {
		if _, given := fields[own]; given {
			return fmt.Errorf("maintenance.%s: is the lockstep's to say", own)
		}
	}
	return nil
}

// Validate checks what a shared maintenance says of itself.
func (p NodeProgress) Validate() error {
	errs := []error{field("node", spec.NodeName(p.Node)), field("runId", RunID(p.RunID))}
	if p.Revision < 0 || p.Pending < 0 || p.Evacuating < 0 {
		errs = append(errs, errors.New("revision, pending, evacuating: want 0 or more"))
	}
	if text, _ := json.Marshal(p.Targets); len(text) > MaxTargetsText {
		errs = append(errs, fmt.Errorf("targets: %d bytes: at most %d are taken", len(text), MaxTargetsText))
	}
	return errors.Join(errs...)
}

// MaxTargetsText bounds the targets of a node as JSON, in bytes: those of several plans come together.
const MaxTargetsText = 64 << 10

// QueryHeld asks the lockstep which maintenances and plans it counts on; the answer is a page of LockstepHeld.
const QueryHeld = "held"

// HeldRequest selects a page of them.
type HeldRequest struct {
	Offset int `json:"offset,omitempty"`
}

// LockstepHeld are the shared maintenances that the lockstep takes for running, and the plans that it has heard of.
type LockstepHeld struct {
	Nodes []HeldNode `json:"nodes"`
	Plans []HeldPlan `json:"plans,omitempty"`
	// NextOffset is where the next page begins, 0 after the last.
	NextOffset int `json:"nextOffset,omitempty"`
}

// HeldNode is a node and the first run of its shared maintenance; empty is one that is not known yet.
type HeldNode struct {
	Node  string `json:"node"`
	RunID string `json:"runId,omitempty"`
}

// HeldPlan is a plan and the first run of its chain.
type HeldPlan struct {
	Name  string `json:"name"`
	RunID string `json:"runId"`
}

// LockstepRequest selects a page of the lockstep's nodes, in the order of their names; Plan those of one plan. The zero
// value is the first page.
type LockstepRequest struct {
	Plan   string `json:"plan,omitempty"`
	Offset int    `json:"offset,omitempty"`
	// Limit is how many at most; 0 is 100, and no page has more than 1000.
	Limit int `json:"limit,omitempty"`
}

// LockstepState is the answer to the state query of the lockstep.
type LockstepState struct {
	// Rebuilding says in words what has to be found out before anything is decided; empty is nothing.
	Rebuilding string         `json:"rebuilding,omitempty"`
	Plans      []LockstepPlan `json:"plans"`
	NodesAll   int            `json:"nodesAll"`
	Nodes      []LockstepNode `json:"nodes"`
	// NextOffset is where the next page begins, 0 after the last.
	NextOffset int `json:"nextOffset,omitempty"`
	// Unwanted counts nodes with a running maintenance that no plan wants.
	Unwanted int `json:"unwanted,omitempty"`
	// Troubles are what fails and is tried again.
	Troubles []Trouble `json:"troubles,omitempty"`
	// Notes are the latest of what was refused, ignored or is worth to know.
	Notes []RecordedDecision `json:"notes,omitempty"`
}

// LockstepPlan is a plan as the lockstep sees it.
type LockstepPlan struct {
	Name      string    `json:"name"`
	RunID     string    `json:"runId"`
	CreatedAt time.Time `json:"createdAt"`
	Revision  int       `json:"revision"`
	Stage     Stage     `json:"stage"`
	// Tier is the one that it is at, of Tiers.
	Tier  int `json:"tier"`
	Tiers int `json:"tiers"`
	Nodes int `json:"nodes"`
	// Left counts nodes whose maintenance has ended by itself.
	Left      int    `json:"left,omitempty"`
	Forwarded string `json:"forwarded,omitempty"`
}

// LockstepNode is a node as the lockstep sees it.
type LockstepNode struct {
	Node  string `json:"node"`
	RunID string `json:"runId,omitempty"`
	// State says what the lockstep does with it.
	State    string            `json:"state"`
	Phase    Phase             `json:"phase,omitempty"`
	Plans    []string          `json:"plans,omitempty"`
	Revision int               `json:"revision,omitempty"`
	Targets  []drainplan.Entry `json:"targets,omitempty"`
	Drained  bool              `json:"drained,omitempty"`
	Gang     string            `json:"gang,omitempty"`
	Message  string            `json:"message,omitempty"`
}
