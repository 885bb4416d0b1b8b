package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/rules/drainplan"
)

// Rungs are the names of the escalation's rungs.
var Rungs = []string{Notify, BypassBudget, Kill, GiveBack, Fail}

// EndsDrain reports whether a rung ends the drain, so that none can follow it.
func EndsDrain(rung string) bool { return rung == GiveBack || rung == Fail }

// KnownRung refuses a rung that does not exist.
func KnownRung(rung string) error {
	if !slices.Contains(Rungs, rung) {
		return fmt.Errorf("do: %q is not one of %s", rung, strings.Join(Rungs, ", "))
	}
	return nil
}

// RungFits refuses a rung that has no meaning in a drain mode: where nothing is evicted, nothing can be forced.
func RungFits(rung, mode string) error {
	if (rung == BypassBudget || rung == Kill) && mode != ModeEvict {
		return fmt.Errorf("do: %s needs the drain mode %s, and it is %s", rung, ModeEvict, mode)
	}
	return nil
}

// PodName checks a pod's name with its namespace in front.
func PodName(name string) error {
	namespace, pod, found := strings.Cut(name, "/")
	if !found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(pod)) > 0 {
		return fmt.Errorf("pod: %q is not of the form <namespace>/<name>", name)
	}
	return nil
}

// Compile orders the tiers and adds the standard entries of the included pod types.
func (plan Plan) Compile() (drainplan.Plan, error) { return drainplan.New(plan.Tiers, plan.Include) }

// Tiers are the drain's tiers, compiled.
func (d Drain) Tiers() (drainplan.Plan, error) {
	if d.Plan == nil {
		return drainplan.Simple(), nil
	}
	return d.Plan.Compile()
}

// WaitsForStatic reports whether static pods keep the node from being drained.
func (d Drain) WaitsForStatic() bool { return d.Plan != nil && d.Plan.Static == WaitForStatic }

// normalizePlan brings the plan of a drain into the form that is decoded. Nulls and duplicate fields must have been refused
// before: it would drop them.
func normalizePlan(data []byte) ([]byte, error) {
	object, drain := fieldsOf(data), fieldsOf(fieldsOf(data)["drain"])
	if len(drain["plan"]) == 0 {
		return data, nil
	}
	var err error
	if drain["plan"], err = NormalPlan("drain.plan", drain["plan"], []drainplan.PodType{drainplan.Default}); err != nil {
		return nil, err
	}
	if object["drain"], err = json.Marshal(drain); err != nil {
		return nil, err
	}
	return json.Marshal(object)
}

// NormalPlan brings the forms in which a Plan may be written into its own: the KEP's list of entries becomes an object that
// includes all pod types, label selectors written as objects become text, and absent fields get their defaults, include the
// one that is given. What it does not understand it leaves for the strict decoder to refuse. The path is where it was
// written, for the errors. Nulls and duplicate fields must have been refused before.
func NormalPlan(path string, data json.RawMessage, include []drainplan.PodType) (json.RawMessage, error) {
	var written any
	if err := decodeExactly(data, &written); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	plan, _ := written.(map[string]any)
	tiers, at := plan["tiers"], path+".tiers"
	if list, ok := written.([]any); ok {
		plan = map[string]any{"include": drainplan.Types(), "tiers": list}
		tiers, at = list, path
	}
	if plan == nil {
		return data, nil
	}
	if err := normalizeTiers(at, tiers); err != nil {
		return nil, err
	}
	setAbsent(plan, "include", include)
	setAbsent(plan, "static", SkipStatic)
	return json.Marshal(plan)
}

// normalizeTiers changes the tiers in place; the path is where they were written, for the errors.
func normalizeTiers(path string, tiers any) error {
	list, _ := tiers.([]any)
	for i, item := range list {
		path := fmt.Sprintf("%s[%d]", path, i)
		tier, ok := item.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: want an object, got %s", path, kind(item))
		}
		if err := normalizeSelector(tier); err != nil {
			return fmt.Errorf("%s.podSelector: %w", path, err)
		}
		if _, given := tier["podPriority"]; !given {
			return fmt.Errorf("%s.podPriority: required: pods of this priority or less leave in this tier", path)
		}
		setAbsent(tier, "podType", drainplan.Default)
	}
	return nil
}

func setAbsent(object map[string]any, field string, value any) {
	if _, given := object[field]; !given {
		object[field] = value
	}
}

// decodeExactly keeps numbers as they are written: as a float, 1000.0 and 1e3 would become whole numbers, which the
// strict decoder refuses.
func decodeExactly(data []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return decoder.Decode(v)
}

// fieldsOf are the fields of a JSON object; none of anything else.
func fieldsOf(data []byte) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return nil
	}
	return fields
}

var operators = map[metav1.LabelSelectorOperator]selection.Operator{
	metav1.LabelSelectorOpIn: selection.In, metav1.LabelSelectorOpNotIn: selection.NotIn,
	metav1.LabelSelectorOpExists: selection.Exists, metav1.LabelSelectorOpDoesNotExist: selection.DoesNotExist,
}

// normalizeSelector writes a label selector that is given as an object as text.
func normalizeSelector(tier map[string]any) error {
	object, ok := tier["podSelector"].(map[string]any)
	if !ok {
		return nil
	}
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var selector metav1.LabelSelector
	if err := DecodeStrict(text, &selector); err != nil {
		return err
	}
	compiled := labels.NewSelector()
	add := func(key string, operator selection.Operator, values []string) error {
		requirement, err := labels.NewRequirement(key, operator, values)
		if err == nil {
			compiled = compiled.Add(*requirement)
		}
		return err
	}
	// In the order of their keys, so that the text is the same in every replay.
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		if err := add(key, selection.Equals, []string{selector.MatchLabels[key]}); err != nil {
			return fmt.Errorf("matchLabels: %w", err)
		}
	}
	for _, e := range selector.MatchExpressions {
		operator, known := operators[e.Operator]
		if !known {
			return fmt.Errorf("matchExpressions: operator %q is not one of In, NotIn, Exists, DoesNotExist", e.Operator)
		}
		if err := add(e.Key, operator, e.Values); err != nil {
			return fmt.Errorf("matchExpressions: %w", err)
		}
	}
	tier["podSelector"] = compiled.String()
	return nil
}
