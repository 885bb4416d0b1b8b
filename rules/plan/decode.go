package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/spec"
)

const (
	// MaxInput bounds a plan's input, in bytes: it is carried from run to run.
	MaxInput = 512 << 10
	// MaxNodes bounds the nodes of a plan.
	MaxNodes = 15000
	// maxTries and maxCanary bound numbers that have no meaning beyond.
	maxTries  = 100
	maxCanary = 1000
)

var planName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,51}[a-z0-9])?$`)

// CheckName checks the name of a plan, which becomes a part of workflow IDs and of the requestor's name.
func CheckName(name string) error {
	if !planName.MatchString(name) {
		return fmt.Errorf("%q is not the name of a plan: want lower-case letters, digits, '.' and '-', at most 53, a letter or digit at both ends", name)
	}
	return nil
}

// RequestorOf is the requestor of the maintenances of a plan that names none.
func RequestorOf(name string) string { return requestorPrefix + name }

// OfRequestor is the name of the plan whose maintenances have a requestor by default.
func OfRequestor(requestor string) (name string, ofPlan bool) {
	return strings.CutPrefix(requestor, requestorPrefix)
}

const requestorPrefix = "plan-"

// Decode reads a plan's JSON input strictly, fills what is absent, and validates the whole for a plan of that name. The
// error names every field that is wrong.
func Decode(name string, input []byte) (Plan, error) {
	var p Plan
	if len(input) > MaxInput {
		return p, fmt.Errorf("the input has %d bytes: at most %d are taken", len(input), MaxInput)
	}
	input, err := normalize(input)
	if err != nil {
		return p, err
	}
	if err := spec.DecodeStrict(input, &p); err != nil {
		return p, err
	}
	merged := []byte("{}")
	for _, layer := range append(p.defaults(), string(input)) {
		if merged, err = jsonpatch.MergePatch(merged, []byte(layer)); err != nil {
			return p, fmt.Errorf("merging defaults: %w", err)
		}
	}
	p = Plan{}
	if err := spec.DecodeStrict(merged, &p); err != nil {
		return p, err
	}
	switch {
	case p.Requestor != "":
	case p.Together():
		p.Requestor = spec.PlansRequestor
	default:
		p.Requestor = RequestorOf(name)
	}
	return p, errors.Join(CheckName(name), p.Validate())
}

// defaults are the layers under the input of such a plan.
func (p Plan) defaults() []string {
	switch {
	case p.Together():
		return []string{togetherDefaults}
	case p.Strategy.OnBlocked == SkipBlocked || p.Strategy.OnBlocked == AbortBlocked:
		return []string{Defaults, blockedDefaults}
	default:
		return []string{Defaults}
	}
}

// normalize brings the forms in which a drain plan may be written into the one that is decoded.
func normalize(input []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(input, &fields); err != nil {
		return input, nil //nolint:nilerr // the strict decoder says what is wrong with it
	}
	var word string
	if json.Unmarshal(fields["strategy"], &word) == nil && word != "" {
		return nil, fmt.Errorf("strategy: %.40q is not an object: write {type: %s} or {type: %s}", word, AllAtOnce, Rolling)
	}
	if len(fields["drainPlan"]) == 0 {
		return input, nil
	}
	var object map[string]any
	if err := spec.DecodeStrict(input, &object); err != nil {
		return nil, err
	}
	var err error
	if fields["drainPlan"], err = spec.NormalPlan("drainPlan", fields["drainPlan"], drainplan.Types()); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// problems collects what is wrong, a line each.
type problems []error

func (p *problems) add(field, format string, args ...any) {
	*p = append(*p, fmt.Errorf(field+": "+format, args...))
}

func (p *problems) check(field string, err error) {
	if err != nil {
		*p = append(*p, fmt.Errorf("%s: %w", field, err))
	}
}

// joined is nil if nothing is wrong.
func (p *problems) joined() error {
	slices.SortFunc(*p, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(*p...)
}

func (p *problems) oneOf(field, value string, known ...string) {
	if !slices.Contains(known, value) {
		p.add(field, "%q is not one of %s", value, strings.Join(known, ", "))
	}
}

// Validate checks a plan with its defaults filled in; the error joins one line per wrong field.
func (p Plan) Validate() error {
	var wrong problems
	p.Selection.validate(&wrong)
	wrong.check("requestor", spec.RequestorName(p.Requestor))
	for _, shown := range p.texts() {
		if len(shown.text) > spec.MaxText {
			wrong.add(shown.field, "has %d bytes: at most %d are taken", len(shown.text), spec.MaxText)
		}
	}
	if p.Notify != nil {
		for i, name := range *p.Notify {
			wrong.check(fmt.Sprintf("notify[%d]", i), spec.ChannelName(name))
		}
	}
	if p.Object != nil {
		if err := p.Object.Validate(); err != nil {
			wrong = append(wrong, err)
		}
		if p.ReportTo != nil {
			wrong.add("reportTo", "a Kubernetes object cannot ask for it: read the object's status instead")
		}
	}
	if p.Together() {
		p.validateTogether(&wrong)
	} else {
		p.Strategy.validate(&wrong)
		p.refuseStages(&wrong)
	}
	p.validateMaintenance(&wrong)
	return wrong.joined()
}

func (s Strategy) validate(wrong *problems) {
	wrong.oneOf("strategy.type", s.Type, Rolling, AllAtOnce)
	if s.MaxParallel.Of(100) == 0 {
		wrong.add("strategy.maxParallel", "%s lets no node go: want 1 or more", s.MaxParallel)
	}
	wrong.oneOf("strategy.order", s.Order, ByName, ByZone, FewestPods)
	wrong.oneOf("strategy.onBlocked", s.OnBlocked, WaitBlocked, SkipBlocked, AbortBlocked)
	switch {
	case s.OnBlocked == WaitBlocked && (s.BlockedAfter != 0 || s.ComeBackAfter != 0 || s.Tries != 0):
		wrong.add("strategy.onBlocked", "wait leaves a blocked node to the maintenance's escalation: leave out blockedAfter, comeBackAfter and tries, or say skip")
	case (s.OnBlocked == SkipBlocked || s.OnBlocked == AbortBlocked) && s.BlockedAfter == 0:
		wrong.add("strategy.blockedAfter", "must be more than 0s: it is the time since the cordon after which a node is given back")
	}
	if s.Tries < 0 || s.Tries > maxTries {
		wrong.add("strategy.tries", "%d is not from 1 to %d", s.Tries, maxTries)
	}
	if c := s.Canary; c != nil && (c.Nodes < 1 || c.Nodes > maxCanary) {
		wrong.add("strategy.canary.nodes", "%d is not from 1 to %d", c.Nodes, maxCanary)
	}
}

// validateMaintenance checks what the maintenances share, by the input of one of them.
func (p Plan) validateMaintenance(wrong *problems) {
	if len(p.Maintenance) > spec.MaxInput {
		wrong.add("maintenance", "has %d bytes: at most %d are taken", len(p.Maintenance), spec.MaxInput)
		return
	}
	given, err := p.template()
	if err != nil {
		wrong.check("maintenance", err)
		return
	}
	own := []string{"node", "requestor", "object", "reportTo"}
	if p.Together() {
		own = append(own, togethersOwn...)
	}
	for _, own := range own {
		if _, named := given[own]; named {
			wrong.add("maintenance."+own, "is the plan's to say: leave it out")
		}
	}
	if len(*wrong) > 0 {
		return
	}
	inputOf := p.InputOf
	if p.Together() {
		inputOf = p.sharedInputOf
	}
	input, err := inputOf("any", time.Time{})
	if err == nil {
		_, err = spec.Decode(input, nil)
	}
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			*wrong = append(*wrong, errors.New(p.InPlan(strings.TrimSuffix(line, "\n"))))
		}
	}
}

// InPlan is what is wrong with the input of a maintenance, named by the fields of the plan.
func (p Plan) InPlan(wrong string) string {
	given, err := p.template()
	if err != nil {
		return "maintenance." + wrong
	}
	for _, of := range p.shared("") {
		rest, is := strings.CutPrefix(wrong, of.field)
		if _, own := given[of.field]; is && !own && rest != "" && strings.ContainsAny(rest[:1], ":[.") {
			return wrong
		}
	}
	return "maintenance." + wrong
}

// field is a field of a maintenance's input.
type field struct {
	field string
	value any
}

// shared are the fields that a plan gives the maintenance of a node, where that has none of its own.
func (p Plan) shared(node string) []field {
	all := []field{{"node", node}}
	if p.Together() {
		all = append(all, field{"readyTimeout", "0s"})
	} else {
		all = append(all, field{"requestor", p.Requestor})
	}
	for _, shown := range p.texts() {
		if shown.text != "" {
			all = append(all, field{shown.field, shown.text})
		}
	}
	if len(p.Windows) > 0 {
		all = append(all, field{"windows", p.Windows})
	}
	if p.Notify != nil {
		all = append(all, field{"notify", *p.Notify})
	}
	if p.ReportTo != nil {
		all = append(all, field{"reportTo", *p.ReportTo})
	}
	return all
}

// shown is a text that is shown everywhere.
type shown struct{ field, text string }

func (p Plan) texts() []shown {
	return []shown{{"reason", p.Reason}, {"ticket", p.Ticket}, {"owner", p.Owner}}
}

// template are the fields that the plan's maintenances share.
func (p Plan) template() (map[string]json.RawMessage, error) {
	given := map[string]json.RawMessage{}
	if len(p.Maintenance) > 0 {
		if err := spec.DecodeStrict(p.Maintenance, &given); err != nil {
			return nil, err
		}
	}
	return given, nil
}

// InputOf is the input of the maintenance of one node that is begun now. A notBefore that is over has had its effect. With
// AllAtOnce it is that of a maintenance which would drain one node alone as the plan drains all of them.
func (p Plan) InputOf(node string, now time.Time) ([]byte, error) {
	fields, err := p.fieldsOf(node, now)
	switch {
	case err != nil:
		return nil, err
	case p.Together():
		err = p.alone(fields)
	case p.Strategy.OnBlocked != WaitBlocked:
		fields["drain"], err = p.blocked(fields["drain"])
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// fieldsOf are the fields of a maintenance that are the plan's, and those that it gives all of them.
func (p Plan) fieldsOf(node string, now time.Time) (map[string]json.RawMessage, error) {
	fields, err := p.template()
	if err != nil {
		return nil, err
	}
	var notBefore time.Time
	if json.Unmarshal(fields["notBefore"], &notBefore) == nil && notBefore.Before(now) {
		delete(fields, "notBefore")
	}
	for _, of := range p.shared(node) {
		if _, given := fields[of.field]; given {
			continue
		}
		if fields[of.field], err = json.Marshal(of.value); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// blocked is a drain that gives up a node which does not empty.
func (p Plan) blocked(drain json.RawMessage) (json.RawMessage, error) {
	fields, err := drainFields(drain)
	if err != nil {
		return nil, err
	}
	if _, given := fields["escalation"]; given {
		return nil, fmt.Errorf("drain.escalation: onBlocked %s ends a drain after blockedAfter: leave one of them out", p.Strategy.OnBlocked)
	}
	fields["escalation"] = fmt.Appendf(nil, `[{"after":%q,"do":%q}]`, p.Strategy.BlockedAfter, spec.Fail)
	return json.Marshal(fields)
}

func drainFields(drain json.RawMessage) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if len(drain) == 0 {
		return fields, nil
	}
	if err := json.Unmarshal(drain, &fields); err != nil {
		return nil, fmt.Errorf("drain: %w", err)
	}
	return fields, nil
}
