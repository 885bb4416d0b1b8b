package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/spec"
)

const (
	// MaxTiers bounds the tiers of a drain plan, the standard entries included: they come back in the targets of each node.
	MaxTiers = 100
	// MaxTiersText bounds what they take as JSON, in bytes.
	MaxTiersText = 16 << 10
)

// togethersOwn are the fields of a maintenance that a plan of strategy AllAtOnce says for all of its nodes.
var togethersOwn = []string{"additionalRequestors", "lockstep"}

// Together reports whether the plan's nodes go through its stages together.
func (p Plan) Together() bool { return p.Strategy.Type == AllAtOnce }

// Reserved refuses the name of those who share maintenances to a plan whose maintenances are its own.
func (p Plan) Reserved() error {
	if p.Requestor == spec.PlansRequestor && !p.Together() {
		return fmt.Errorf("requestor: %q is that of the maintenances which plans of strategy %s share: choose another name, or leave it out",
			spec.PlansRequestor, AllAtOnce)
	}
	return nil
}

// Tiers are the drain plan with its standard entries. A plan that was decoded has no error.
func (p Plan) Tiers() (drainplan.Plan, error) {
	if p.DrainPlan == nil {
		return drainplan.Plan{}, nil
	}
	return p.DrainPlan.Compile()
}

// SharedInput is what the maintenances of a plan of strategy AllAtOnce have in common: their input without the node, and
// without the tiers, which the lockstep of all plans decides. Unless it says so, no time is up while the plan holds its nodes.
func (p Plan) SharedInput(now time.Time) (json.RawMessage, error) {
	fields, err := p.fieldsOf("", now)
	if err != nil {
		return nil, err
	}
	delete(fields, "node")
	return json.Marshal(fields)
}

// sharedInputOf is the input of the maintenance that a node has for all plans of strategy AllAtOnce.
func (p Plan) sharedInputOf(node string, now time.Time) ([]byte, error) {
	fields, err := p.fieldsOf(node, now)
	if err != nil {
		return nil, err
	}
	fields["lockstep"] = json.RawMessage("true")
	return json.Marshal(fields)
}

// alone has the drain of one node follow the plan's tiers.
func (p Plan) alone(fields map[string]json.RawMessage) error {
	drain, err := drainFields(fields["drain"])
	if err != nil {
		return err
	}
	if drain["plan"], err = json.Marshal(p.DrainPlan); err != nil {
		return err
	}
	fields["drain"], err = json.Marshal(drain)
	return err
}

// validateTogether checks what a plan of strategy AllAtOnce has of its own.
func (p Plan) validateTogether(wrong *problems) {
	given := reflect.ValueOf(p.Strategy)
	for i, field := range reflect.VisibleFields(given.Type()) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "type" && !given.Field(i).IsZero() {
			wrong.add("strategy."+name, "is of strategy %s: the nodes of %s go through its stages together", Rolling, AllAtOnce)
		}
	}
	if p.Requestor != spec.PlansRequestor {
		wrong.add("requestor", "%.70q: a node has one maintenance for all plans of strategy %s, and that is of %s: leave it out", p.Requestor, AllAtOnce, spec.PlansRequestor)
	}
	switch p.Stage {
	case Complete:
		wrong.add("stage", "%s gives back what a plan holds, and one that begins holds nothing: begin with %s", Complete, strings.Join(stageNames(FirstStages), ", "))
	default:
		wrong.oneOf("stage", string(p.Stage), stageNames(FirstStages)...)
	}
	p.validateDrainPlan(wrong)
}

func (p Plan) validateDrainPlan(wrong *problems) {
	if p.DrainPlan == nil {
		wrong.add("drainPlan", "is missing")
		return
	}
	if p.DrainPlan.Static != spec.SkipStatic {
		wrong.add("drainPlan.static", "%.40q: static pods are told of and not waited for: leave it out", p.DrainPlan.Static)
	}
	tiers, err := p.DrainPlan.Compile()
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			*wrong = append(*wrong, errors.New("drainPlan."+strings.TrimSpace(line)))
		}
		return
	}
	switch text, _ := json.Marshal(tiers.Entries()); {
	case tiers.Len() == 0:
		wrong.add("drainPlan", "has no tiers and includes no pod types, so that no pod would leave: leave it out to have all leave")
	case tiers.Len() > MaxTiers:
		wrong.add("drainPlan", "has %d tiers: at most %d are taken", tiers.Len(), MaxTiers)
	case len(text) > MaxTiersText:
		wrong.add("drainPlan", "has %d bytes: at most %d are taken", len(text), MaxTiersText)
	}
}

// refuseStages refuses what only a plan of strategy AllAtOnce has.
func (p Plan) refuseStages(wrong *problems) {
	if p.Stage != "" {
		wrong.add("stage", "is of strategy %s: a plan that is %s begins its nodes in their turn", AllAtOnce, Rolling)
	}
	if p.DrainPlan != nil {
		wrong.add("drainPlan", "is of strategy %s: write the tiers into maintenance.drain.plan", AllAtOnce)
	}
}
