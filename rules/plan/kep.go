package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/spec"
)

// The type of KEP-4212's object. The KEP names no API group yet, so that any is taken.
const (
	kepKind    = "NodeMaintenance"
	kepVersion = "v1alpha1"
)

// IncludeAnnotation names on KEP-4212's object the pod types whose standard entries its drain plan has, where they are not all: a
// plan of ours may leave some out, the KEP's may not.
const IncludeAnnotation = "drydock.dev/include"

// kepObject is what is taken of KEP-4212's object.
type kepObject struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Metadata   kepMetadata `json:"metadata"`
	Spec       kepSpec     `json:"spec"`
}

type kepMetadata struct {
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations"`
}

type kepSpec struct {
	NodeSelector *corev1.NodeSelector `json:"nodeSelector"`
	Stage        Stage                `json:"stage"`
	DrainPlan    []any                `json:"drainPlan"`
	Reason       string               `json:"reason"`
}

// IsKEP reports whether an object is KEP-4212's, and not the input of a plan.
func IsKEP(object map[string]any) bool { return object["kind"] != nil || object["apiVersion"] != nil }

// FromKEP is KEP-4212's object as the input of a plan, with the plan's name. Its status is not looked at, nor what an API server adds
// to its metadata. Everything else is decoded strictly, and the error names every field that is wrong.
func FromKEP(object map[string]any) (name string, plan map[string]any, err error) {
	object = shallow(object, func(field string) bool { return field != "status" })
	if metadata, ok := object["metadata"].(map[string]any); ok {
		object["metadata"] = shallow(metadata, func(field string) bool { return field == "name" || field == "annotations" })
	}
	data, err := json.Marshal(object)
	if err != nil {
		return "", nil, err
	}
	var k kepObject
	if err := spec.DecodeStrict(data, &k); err != nil {
		return "", nil, err
	}
	plan = map[string]any{"strategy": map[string]any{"type": AllAtOnce}}
	var wrong problems
	if k.Kind != kepKind {
		wrong.add("kind", "%.60q: want %s, as KEP-4212 has it", k.Kind, kepKind)
	}
	if k.APIVersion != kepVersion && !strings.HasSuffix(k.APIVersion, "/"+kepVersion) {
		wrong.add("apiVersion", "%.60q: want %s, as KEP-4212 has it", k.APIVersion, kepVersion)
	}
	if k.Spec.NodeSelector == nil {
		wrong.add("spec.nodeSelector", "required: it chooses the nodes")
	} else {
		chooseAsKEP(plan, *k.Spec.NodeSelector, &wrong)
	}
	if k.Spec.Stage != "" {
		plan["stage"] = k.Spec.Stage
	}
	if k.Spec.Reason != "" {
		plan["reason"] = k.Spec.Reason
	}
	include, err := included(k.Metadata.Annotations)
	wrong.check("metadata.annotations["+IncludeAnnotation+"]", err)
	if tiers := k.Spec.DrainPlan; len(tiers) > 0 || len(include) < len(drainplan.Types()) {
		plan["drainPlan"] = map[string]any{"tiers": append([]any{}, tiers...), "include": include}
	}
	if name = k.Metadata.Name; name == "" {
		wrong.add("metadata.name", "required: it is the plan's name")
	}
	return name, plan, wrong.joined()
}

func shallow(object map[string]any, keep func(field string) bool) map[string]any {
	kept := map[string]any{}
	for field, value := range object {
		if keep(field) {
			kept[field] = value
		}
	}
	return kept
}

// included are the pod types of the annotation, all where there is none.
func included(annotations map[string]string) ([]drainplan.PodType, error) {
	text, given := annotations[IncludeAnnotation]
	if !given {
		return drainplan.Types(), nil
	}
	types := []drainplan.PodType{}
	for word := range strings.SplitSeq(text, ",") {
		if word == "" {
			continue
		}
		if !slices.Contains(drainplan.Types(), drainplan.PodType(word)) {
			return nil, fmt.Errorf("%.60q is no pod type: want some of %v, with commas between them", word, drainplan.Types())
		}
		types = append(types, drainplan.PodType(word))
	}
	return types, nil
}

// chooseAsKEP puts how KEP-4212's object chooses its nodes into a plan. What -o kep writes for names, for names that are left alone
// and for all nodes becomes that again: a field of a NodeSelector takes one name only.
func chooseAsKEP(plan map[string]any, selector corev1.NodeSelector, wrong *problems) {
	for i, term := range selector.NodeSelectorTerms {
		if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
			wrong.add(fmt.Sprintf("spec.nodeSelector.nodeSelectorTerms[%d]", i), "is empty, and so chooses no node")
		}
	}
	if spared, rest := spared(selector); spared != nil {
		selector = rest
		plan["exclude"] = slices.DeleteFunc(slices.Clone(spared), func(name string) bool { return name == "" })
	}
	plan["nodeSelector"] = selector
	if len(selector.NodeSelectorTerms) != 1 {
		return
	}
	term := selector.NodeSelectorTerms[0]
	switch {
	case len(term.MatchExpressions)+len(term.MatchFields) == 0:
		delete(plan, "nodeSelector")
		plan["all"] = true
	case len(term.MatchExpressions) == 0 && len(term.MatchFields) == 1 && isOfNames(term.MatchFields[0], corev1.NodeSelectorOpIn):
		delete(plan, "nodeSelector")
		plan["nodes"] = term.MatchFields[0].Values
	}
}

func isOfNames(field corev1.NodeSelectorRequirement, operator corev1.NodeSelectorOperator) bool {
	return field.Key == metav1.ObjectNameField && field.Operator == operator
}

// spared are the names that every term leaves alone, and the selector without them; nil if the terms differ in that.
func spared(selector corev1.NodeSelector) (names []string, rest corev1.NodeSelector) {
	for i, term := range selector.NodeSelectorTerms {
		at := slices.IndexFunc(term.MatchFields, func(f corev1.NodeSelectorRequirement) bool { return isOfNames(f, corev1.NodeSelectorOpNotIn) })
		if at < 0 || i > 0 && !slices.Equal(names, term.MatchFields[at].Values) {
			return nil, selector
		}
		names = term.MatchFields[at].Values
		term.MatchFields = slices.Delete(slices.Clone(term.MatchFields), at, at+1)
		rest.NodeSelectorTerms = append(rest.NodeSelectorTerms, term)
	}
	return names, rest
}
