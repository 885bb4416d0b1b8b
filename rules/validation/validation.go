// Package validation decides whether a node may return to service after a maintenance: what is checked, what each
// check found, and when everything has held for long enough.
package validation

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	names "k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/rules/period"
)

// AllDaemonSets is the value of Validation.DaemonSets that means every DaemonSet.
const AllDaemonSets = "all"

// MaxEntries bounds each list: every entry costs a request at every look.
const MaxEntries = 64

// Validation is what must hold on a node before it is given back. Nothing is checked where it is Empty.
type Validation struct {
	// Ready wants the node Ready. It is true if anything else is checked, since the control plane knows only the past state of a
	// node that is not Ready; `false` switches that off. A condition `Ready` in `conditions` takes its place.
	Ready *bool `json:"ready,omitempty" jsonschema:"default=true"`
	// Conditions are those of the node that must have their status.
	Conditions []Condition `json:"conditions,omitempty" jsonschema:"maxItems=64"`
	// NewBootID wants the node restarted since it was cordoned first.
	NewBootID bool `json:"newBootID,omitempty"`
	// DaemonSets are `all`, or a selector over DaemonSets' labels: those that want a pod on the node have a Ready one there.
	DaemonSets string `json:"daemonSets,omitempty"`
	// Allocatable are amounts of resources that the node must offer to pods.
	Allocatable []Resource `json:"allocatable,omitempty" jsonschema:"maxItems=64"`
	// Checks are names of the worker's [checks](#checks) that must pass.
	Checks []string `json:"checks,omitempty" jsonschema:"maxItems=64,uniqueItems=true,format=label"`
	// Signal waits for somebody's `validated` or `validation-failed`.
	Signal bool `json:"signal,omitempty"`
	// Soak is how long everything that is checked must keep holding; 0s is satisfied by the first check that succeeds. It is less
	// than `deadline`.
	Soak period.Duration `json:"soak"`
	// Deadline is the time after which the validation has failed.
	Deadline period.Duration `json:"deadline"`
	// Every is the time between two looks.
	Every period.Duration `json:"every"`
}

// Condition is a condition of the node.
type Condition struct {
	// Type is that of the condition, such as `Ready`.
	Type string `json:"type" jsonschema:"required,format=key"`
	// Status is what it must be.
	Status string `json:"status,omitempty" jsonschema:"enum=True,enum=False,enum=Unknown,default=True"`
	// ForAtLeast is how long the condition must have had its status.
	ForAtLeast period.Duration `json:"forAtLeast,omitzero"`
}

// Resource is an amount of one resource, or of each whose name matches.
type Resource struct {
	// Name is that of the resource, such as `nvidia.com/gpu`.
	Name string `json:"name,omitempty" jsonschema:"format=key"`
	// NameRegex is a regular expression that the whole name must match: at least one resource does, and each that does
	// has the amount.
	NameRegex string `json:"nameRegex,omitempty"`
	// AtLeast is a Kubernetes quantity, such as "8" or "64Gi".
	AtLeast string `json:"atLeast" jsonschema:"required,format=quantity"`
}

// Defaults are merged under the worker's defaults and the input.
const Defaults = `{"soak": "0s", "deadline": "30m", "every": "10s"}`

// Empty reports whether nothing is checked, so that the node is given back at once.
func (v Validation) Empty() bool {
	return (v.Ready == nil || !*v.Ready) && len(v.Conditions) == 0 && !v.NewBootID && v.DaemonSets == "" && len(v.Allocatable) == 0 &&
		len(v.Checks) == 0 && !v.Signal
}

// readyCondition is the type of the condition that says that a node is Ready.
const readyCondition = "Ready"

// WantsReady reports whether the node has to be Ready, said or implied. What conditions say of it comes first.
func (v Validation) WantsReady() bool {
	named := slices.ContainsFunc(v.Conditions, func(c Condition) bool { return c.Type == readyCondition })
	return !named && !v.Empty() && (v.Ready == nil || *v.Ready)
}

// Looks is what is checked in the cluster: with what is implied, and without the wait for a confirmation.
func (v Validation) Looks() Validation {
	v.Ready, v.Signal = new(v.WantsReady()), false
	return v
}

// LooksAt reports whether a condition of the node matters.
func (v Validation) LooksAt(condition string) bool {
	return condition == readyCondition && v.WantsReady() ||
		slices.ContainsFunc(v.Conditions, func(c Condition) bool { return c.Type == condition })
}

// Validate checks a validation with its defaults filled in; the error joins one line per wrong field.
func (v Validation) Validate() error {
	var p problems
	p.bound("conditions", len(v.Conditions))
	for i, c := range v.Conditions {
		c.validate(fmt.Sprintf("conditions[%d]", i), &p)
	}
	if v.DaemonSets != AllDaemonSets {
		if _, err := labels.Parse(v.DaemonSets); err != nil {
			p.add("daemonSets", "%q is neither %q nor a label selector: %v", v.DaemonSets, AllDaemonSets, err)
		}
	}
	p.bound("allocatable", len(v.Allocatable))
	for i, r := range v.Allocatable {
		r.validate(fmt.Sprintf("allocatable[%d]", i), &p)
	}
	p.names("checks", v.Checks)
	if v.Every == 0 {
		p.add("every", "must be more than 0s: it is the time between two looks")
	}
	if v.Deadline == 0 {
		p.add("deadline", "must be more than 0s: a node whose validation never fails would be held for ever")
	}
	if v.Soak > 0 && v.Empty() {
		p.add("soak", "there is nothing that has to keep holding: add conditions, daemonSets, allocatable or checks")
	}
	if v.Deadline > 0 && v.Soak >= v.Deadline {
		p.add("soak", "%s must be shorter than the deadline (%s), or the validation cannot pass", v.Soak, v.Deadline)
	}
	return errors.Join(p...)
}

var statuses = []string{"True", "False", "Unknown"}

func (c Condition) validate(field string, p *problems) {
	if wrong := names.IsQualifiedName(c.Type); len(wrong) > 0 {
		p.add(field+".type", "%q is not a condition type such as \"Ready\": %s", c.Type, wrong[0])
	}
	if c.Status != "" && !slices.Contains(statuses, c.Status) {
		p.add(field+".status", "%q is not one of %s", c.Status, strings.Join(statuses, ", "))
	}
}

// wanted is the status that the condition must have.
func (c Condition) wanted() string {
	if c.Status == "" {
		return "True"
	}
	return c.Status
}

func (r Resource) validate(field string, p *problems) {
	switch {
	case (r.Name == "") == (r.NameRegex == ""):
		p.add(field, "want exactly one of name and nameRegex")
	case r.NameRegex != "":
		if _, err := regexp.Compile(r.NameRegex); err != nil {
			p.add(field+".nameRegex", "%v", err)
		}
	default:
		if wrong := names.IsQualifiedName(r.Name); len(wrong) > 0 {
			p.add(field+".name", "%q is not the name of a resource such as \"nvidia.com/gpu\": %s", r.Name, wrong[0])
		}
	}
	if amount, err := resource.ParseQuantity(r.AtLeast); err != nil {
		p.add(field+".atLeast", "%q is not a quantity: write it like \"8\", \"500m\" or \"64Gi\"", r.AtLeast)
	} else if amount.Sign() <= 0 {
		p.add(field+".atLeast", "%q asks for nothing: want more than 0", r.AtLeast)
	}
}

// Matches reports whether the entry is about a resource of that name.
func (r Resource) Matches(name string) bool {
	if r.NameRegex == "" {
		return r.Name == name
	}
	re, err := regexp.Compile(`^(?:` + r.NameRegex + `)$`)
	return err == nil && re.MatchString(name)
}

// String is the entry as a person would name it.
func (r Resource) String() string {
	if r.NameRegex == "" {
		return r.Name
	}
	return "/" + r.NameRegex + "/"
}

// problems gathers one error per wrong field.
type problems []error

func (p *problems) add(field, format string, args ...any) {
	*p = append(*p, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
}

func (p *problems) bound(field string, n int) {
	if n > MaxEntries {
		p.add(field, "has %d entries: at most %d are looked at", n, MaxEntries)
	}
}

// names checks names of the worker's configuration.
func (p *problems) names(field string, list []string) {
	p.bound(field, len(list))
	for i, name := range list {
		if err := Name(name); err != nil {
			p.add(fmt.Sprintf("%s[%d]", field, i), "%v", err)
		}
		if slices.Contains(list[:i], name) {
			p.add(fmt.Sprintf("%s[%d]", field, i), "%q is named twice", name)
		}
	}
}

// Name checks the name of a check, a hook or a work: a DNS label, since it becomes a part of the names of Jobs.
func Name(name string) error {
	if wrong := names.IsDNS1123Label(name); len(wrong) > 0 {
		return fmt.Errorf("%q is not a name: %s", name, wrong[0])
	}
	return nil
}
