// Package nhc translates between medik8s' NodeHealthCheck objects and health checks.
package nhc

import (
	"encoding/json"
	"errors"
	"fmt"
)

// What a NodeHealthCheck is in Kubernetes.
const (
	Group      = "remediation.medik8s.io"
	APIVersion = Group + "/v1alpha1"
	Kind       = "NodeHealthCheck"
)

// Is reports whether an object is a NodeHealthCheck, or a list as kubectl writes it.
func Is(object map[string]any) bool {
	_, kind := object["kind"]
	_, version := object["apiVersion"]
	return kind || version
}

// Check is a health check as it was read: its name and its fields, not decoded yet.
type Check struct {
	Name string
	Spec json.RawMessage
}

// Read reads the health checks of a NodeHealthCheck, or of a list of them. The fields of the spec keep their names; what a
// server adds to an object, and the status, are left out. The error names the field.
func Read(object map[string]any) ([]Check, error) {
	kind, _ := object["kind"].(string)
	switch kind {
	case Kind:
		check, err := readOne(object)
		return []Check{check}, err
	case "List", Kind + "List":
		return readList(object)
	default:
		return nil, fmt.Errorf("kind: %.40q: want %s of %s, or leave kind and apiVersion out for a health check", kind, Kind, APIVersion)
	}
}

func readList(object map[string]any) ([]Check, error) {
	items, ok := object["items"].([]any)
	if !ok || len(items) == 0 {
		return nil, errors.New("items: want a list of " + Kind + " objects")
	}
	var (
		checks   []Check
		problems []error
	)
	for i, item := range items {
		one, _ := item.(map[string]any)
		check, err := readOne(one)
		if err != nil {
			problems = append(problems, fmt.Errorf("items[%d].%w", i, err))
		}
		checks = append(checks, check)
	}
	return checks, errors.Join(problems...)
}

func readOne(object map[string]any) (Check, error) {
	kind, _ := object["kind"].(string)
	version, _ := object["apiVersion"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	fields, isObject := object["spec"].(map[string]any)
	switch {
	case kind != Kind:
		return Check{}, fmt.Errorf("kind: %.40q: want %s", kind, Kind)
	case version != APIVersion:
		return Check{}, fmt.Errorf("apiVersion: %.60q: want %s", version, APIVersion)
	case name == "":
		return Check{}, errors.New("metadata.name: is missing")
	case !isObject:
		return Check{}, errors.New("spec: is missing")
	}
	own := map[string]any{}
	for field, value := range fields {
		if !isEmpty(value) {
			own[field] = value
		}
	}
	reduce(own["remediationTemplate"])
	steps, _ := own["escalatingRemediations"].([]any)
	for _, step := range steps {
		if s, ok := step.(map[string]any); ok {
			reduce(s["remediationTemplate"])
		}
	}
	encoded, err := json.Marshal(own)
	return Check{Name: name, Spec: encoded}, err
}

// isEmpty reports whether a value means the same as an absent one.
func isEmpty(value any) bool {
	list, isList := value.([]any)
	return value == nil || isList && len(list) == 0
}

// reduce leaves of an ObjectReference what finds a template: the rest of it is not looked at there either.
func reduce(reference any) {
	fields, ok := reference.(map[string]any)
	if !ok {
		return
	}
	for _, field := range []string{"uid", "resourceVersion", "fieldPath"} {
		delete(fields, field)
	}
}
