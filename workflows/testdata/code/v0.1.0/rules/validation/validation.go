package validation

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/period"
	"errors"
	"fmt"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	names "k8s.io/apimachinery/pkg/util/validation"
	"regexp"
	"slices"
	"strings"
)

// AllDaemonSets is the value of Validation.DaemonSets that means every DaemonSet.
const AllDaemonSets = "all"

// MaxEntries bounds each list: every entry costs a request at every look.
const MaxEntries = 64

// Validation is what must hold on a node before it is given back. Nothing of it is looked at where it is Empty.
type Validation struct {
	// Ready looks whether the node is Ready, which goes with everything else unless it is false: of a node that is not, the
	// control plane only knows what was so before. Absent, it is implied where anything is to be looked at.
	Ready *bool `json:"ready,omitempty"`
	// Conditions of the node that must have their status.
	Conditions []Condition `json:"conditions,omitempty"`
	// NewBootID: the node was restarted since it was cordoned.
	NewBootID bool `json:"newBootID,omitempty"`
	// DaemonSets are those whose pods on the node must be there and Ready, if they are for this node: AllDaemonSets or
	// a selector over the DaemonSets' labels.
	DaemonSets string `json:"daemonSets,omitempty"`
	// Allocatable are amounts that the node must offer to pods.
	Allocatable []Resource `json:"allocatable,omitempty"`
	// Checks are names of checks in the worker's configuration.
	Checks []string `json:"checks,omitempty"`
	// Signal waits for somebody's "validated" or "validation-failed".
	Signal bool `json:"signal,omitempty"`
	// Soak is how long all of it must keep holding; 0 is satisfied by the first good look.
	Soak period.Duration `json:"soak"`
	// Deadline is the time after the beginning at which the validation has failed.
	Deadline period.Duration `json:"deadline"`
	// Every is the time between two looks.
	Every period.Duration `json:"every"`
}

// Condition is a condition of the node.
type Condition struct {
	Type string `json:"type"`
	// Status is "True", "False" or "Unknown"; absent is "True".
	Status string `json:"status,omitempty"`
	// ForAtLeast is how long the condition must have had its status.
	ForAtLeast period.Duration `json:"forAtLeast,omitzero"`
}

// Resource is an amount of one resource, or of each whose name matches.
type Resource struct {
	Name string `json:"name,omitempty"`
	// NameRegex is a regular expression that the whole name must match: at least one resource does, and each that does
	// has the amount.
	NameRegex string `json:"nameRegex,omitempty"`
	// AtLeast is a Kubernetes quantity, such as "8" or "64Gi".
	AtLeast string `json:"atLeast"`
}

// Defaults are merged under the worker's defaults and the input.
const Defaults = `{"soak": "0s", "deadline": "30m", "every": "10s"}`

// Empty tells whether nothing is to be looked at, so that the node is given back at once.
func (v Validation) Empty() bool {
	return (v.Ready == nil || !*v.Ready) && len(v.Conditions) == 0 && !v.NewBootID && v.DaemonSets == "" && len(v.Allocatable) == 0 &&
		len(v.Checks) == 0 && !v.Signal
}

// readyCondition is the type of the condition that says that a node is Ready.
const readyCondition = "Ready"

// WantsReady tells whether the node has to be Ready, said or implied. What conditions say of it comes first.
func (v Validation) WantsReady() bool {
	named := slices.ContainsFunc(v.Conditions, func(c Condition) bool { return c.Type == readyCondition })
	return !named && !v.Empty() && (v.Ready == nil || *v.Ready)
}

// Looks is what is looked at, with what is implied, and without waiting for somebody's word.
func (v Validation) Looks() Validation {
	v.Ready, v.Signal = new(v.WantsReady()), false
	return v
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

// Name checks the name of a check or a hook: a DNS label, since it becomes a part of the names of Jobs.
func Name(name string) error {
	if wrong := names.IsDNS1123Label(name); len(wrong) > 0 {
		return fmt.Errorf("%q is not a name: %s", name, wrong[0])
	}
	return nil
}
