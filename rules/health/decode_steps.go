package health

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/rules/spec"
)

func labelKey(key string) error {
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
		return fmt.Errorf("%.320q is not the key of a label: %s", key, wrong[0])
	}
	return nil
}

func (s Spec) validateRemediations(wrong *problems) {
	const all = "remediationTemplate, maintenance, escalatingRemediations"
	given := 0
	for _, there := range []bool{s.RemediationTemplate != nil, s.Maintenance != nil, len(s.EscalatingRemediations) > 0} {
		if there {
			given++
		}
	}
	if given != 1 {
		wrong.add(all, "want exactly one of them, got %d", given)
	}
	deleting := !s.MaxUnhealthy.IsZero()
	if s.RemediationTemplate != nil {
		s.RemediationTemplate.validate(wrong, "remediationTemplate", deleting)
	}
	if s.Maintenance != nil {
		s.Maintenance.validate(wrong, "maintenance")
	}
	if len(s.EscalatingRemediations) > maxSteps {
		wrong.add("escalatingRemediations", "%d entries: at most %d are taken", len(s.EscalatingRemediations), maxSteps)
		return
	}
	orders := map[int]bool{}
	for i, e := range s.EscalatingRemediations {
		at := fmt.Sprintf("escalatingRemediations[%d]", i)
		if (e.RemediationTemplate == nil) == (e.Maintenance == nil) {
			wrong.add(at, "want exactly one of remediationTemplate and maintenance")
		}
		if e.RemediationTemplate != nil {
			e.RemediationTemplate.validate(wrong, at+".remediationTemplate", deleting)
		}
		if e.Maintenance != nil {
			e.Maintenance.validate(wrong, at+".maintenance")
		}
		if orders[e.Order] {
			wrong.add(at+".order", "%d is there twice", e.Order)
		}
		orders[e.Order] = true
		if e.Timeout.Std() < MinTimeout {
			wrong.add(at+".timeout", "%s is too short: want at least %s", e.Timeout, MinTimeout)
		}
	}
}

func (t TemplateRef) validate(wrong *problems, at string, countsUnhealthy bool) {
	wrong.word(at+".apiVersion", t.APIVersion)
	if t.APIVersion != "" && strings.Count(t.APIVersion, "/") > 1 {
		wrong.add(at+".apiVersion", "%.80q: want group/version", t.APIVersion)
	}
	wrong.word(at+".kind", t.Kind)
	if t.Kind != "" && (!strings.HasSuffix(t.Kind, "Template") || t.Kind == "Template") {
		wrong.add(at+".kind", "%.80q does not end in Template: the object that is made has the kind without it", t.Kind)
	}
	wrong.word(at+".name", t.Name)
	if t.Namespace != "" {
		wrong.word(at+".namespace", t.Namespace)
	}
	if countsUnhealthy && strings.EqualFold(t.Kind, deletesMachines) {
		wrong.add(at+".kind", "%s deletes nodes, which maxUnhealthy cannot count: set minHealthy", t.Kind)
	}
}

// repairsOwn are fields of a maintenance that a check says.
var repairsOwn = []string{"node", "requestor", "additionalRequestors", "type", "lockstep", "object", "approval", "notBefore"}

// validate checks what the maintenances have in common, by the input of one.
func (r Repair) validate(wrong *problems, at string) {
	input := r.Input
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	if len(input) > spec.MaxInput {
		wrong.add(at+".input", "has %d bytes: at most %d are taken", len(input), spec.MaxInput)
		return
	}
	var given map[string]json.RawMessage
	if !bytes.HasPrefix(bytes.TrimSpace(input), []byte("{")) || json.Unmarshal(input, &given) != nil {
		wrong.add(at+".input", "want a JSON object")
		return
	}
	for _, own := range repairsOwn {
		if _, named := given[own]; named {
			wrong.add(at+".input."+own, "is the check's to say: leave it out")
			return
		}
	}
	input, err := r.InputOf("any", "health-any")
	if err == nil {
		_, err = spec.Decode(input, nil)
	}
	wrong.under(at+".input", err)
}

// InputOf is the input of the maintenance that remediates a node.
func (r Repair) InputOf(node, requestor string) (json.RawMessage, error) {
	given := map[string]json.RawMessage{}
	if len(r.Input) > 0 {
		if err := json.Unmarshal(r.Input, &given); err != nil {
			return nil, fmt.Errorf("input: %w", err)
		}
	}
	for name, value := range map[string]string{"node": node, "requestor": requestor, "type": spec.Unplanned} {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		given[name] = text
	}
	return json.Marshal(given)
}

// none is the value of a label that a node does not have.
const none = "(none)"

// GroupOf is the group of a node with such labels: the values of the labels by, joined by "/".
func GroupOf(labels map[string]string, by []string) string {
	values := make([]string, len(by))
	for i, key := range by {
		if values[i] = labels[key]; values[i] == "" {
			values[i] = none
		}
	}
	return strings.Join(values, "/")
}

// templates are those that a check needs, each once, in the order of its steps.
func (s Spec) templates() []TemplateRef {
	var refs []TemplateRef
	for _, step := range s.Steps() {
		if step.Template != nil && !slices.Contains(refs, *step.Template) {
			refs = append(refs, *step.Template)
		}
	}
	return refs
}
