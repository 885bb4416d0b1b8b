package schedule

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/rules/spec"
)

// DefaultRemediations is the limit on remediations where none is set.
var DefaultRemediations = Percent(10)

// WithDefaults returns the limits with MaxParallel 1 and Remediations 10% where they are not set. The other limits have no
// default: absent means that there is none.
func (l Limits) WithDefaults() Limits {
	if l.MaxParallel.IsZero() {
		l.MaxParallel = Count(1)
	}
	if l.Remediations.IsZero() {
		l.Remediations = DefaultRemediations
	}
	return l
}

// Group returns the group that a key of Grouper.Keys belongs to.
func (l Limits) Group(key string) (Group, bool) {
	name := GroupName(key)
	for _, g := range l.Groups {
		if g.Name == name {
			return g, true
		}
	}
	return Group{}, false
}

// Nodes says in words which nodes the group has.
func (g Group) Nodes() string {
	var parts []string
	if g.NodeSelector != "" {
		parts = append(parts, g.NodeSelector)
	}
	if len(g.GroupBy) > 0 {
		parts = append(parts, "each "+strings.Join(g.GroupBy, "+"))
	}
	return strings.Join(parts, ", ")
}

// Validate joins an error for everything that is wrong, each beginning with the field, such as
// groups[1].nodeSelector.
func (l Limits) Validate() error {
	errs := []error{
		checkParallel("maxParallel", l.MaxParallel),
		checkUnavailable("maxUnavailable", l.MaxUnavailable),
		checkAmount("remediations", l.Remediations),
	}
	errs = append(errs, spec.WindowNames("windows", l.Windows))
	names := make(map[string]int, len(l.Groups))
	for i, g := range l.Groups {
		at := groupField(i)
		if first, taken := names[g.Name]; taken && g.Name != "" {
			errs = append(errs, fmt.Errorf("%s.name: %q is the name of %s already", at, g.Name, groupField(first)))
		} else {
			names[g.Name] = i
		}
		errs = append(errs, g.validate(at)...)
	}
	if err := l.Quotas.Validate(); err != nil {
		for line := range strings.Lines(err.Error()) {
			errs = append(errs, errors.New("quotas."+strings.TrimSpace(line)))
		}
	}
	return errors.Join(errs...)
}

func groupField(i int) string { return fmt.Sprintf("groups[%d]", i) }

func (g Group) validate(at string) []error {
	errs := []error{
		checkName(at+".name", g.Name),
		checkSelector(at+".nodeSelector", g.NodeSelector),
		checkParallel(at+".maxParallel", g.MaxParallel),
		checkUnavailable(at+".maxUnavailable", g.MaxUnavailable),
	}
	errs = append(errs, spec.WindowNames(at+".windows", g.Windows))
	if g.NodeSelector == "" && len(g.GroupBy) == 0 {
		errs = append(errs, fmt.Errorf("%s: nodeSelector or groupBy is required: it says which nodes the group has", at))
	}
	if g.MaxParallel.IsZero() && g.MaxUnavailable.IsZero() && len(g.Windows) == 0 {
		errs = append(errs, fmt.Errorf("%s: maxParallel, maxUnavailable or windows is required: without them the group limits nothing", at))
	}
	keys := make(map[string]int, len(g.GroupBy))
	for i, key := range g.GroupBy {
		field := fmt.Sprintf("%s.groupBy[%d]", at, i)
		if first, taken := keys[key]; taken {
			errs = append(errs, fmt.Errorf("%s: %q repeats groupBy[%d]", field, key, first))
			continue
		}
		keys[key] = i
		if problems := content.IsLabelKey(key); len(problems) > 0 {
			errs = append(errs, fmt.Errorf("%s: %q is not a label key: %s", field, key, strings.Join(problems, "; ")))
		}
	}
	return errs
}

// checkName keeps names to characters that cannot be confused with the brackets of a group key.
func checkName(field, name string) error {
	if name == "" {
		return fmt.Errorf("%s: required", field)
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%s: %q is not a name: %s", field, name, strings.Join(problems, "; "))
	}
	return nil
}

func checkSelector(field, selector string) error {
	if _, err := labels.Parse(selector); err != nil {
		return fmt.Errorf("%s: %q is not a label selector: %w", field, selector, err)
	}
	return nil
}

// checkParallel refuses 0, because it reads as a stop here and as no limit elsewhere.
func checkParallel(field string, a Amount) error {
	if a == Count(0) || a == Percent(0) {
		return fmt.Errorf("%s: %s is refused: elsewhere 0 means no limit; write \"unlimited\" for that, or freeze to stop new maintenances", field, a)
	}
	return checkAmount(field, a)
}

// checkUnavailable accepts 0: it stops nodes from becoming unavailable, and maintenance goes on where they are
// already (maintenance-operator, stopping maintenance on additional nodes).
func checkUnavailable(field string, a Amount) error {
	if a == Unlimited() {
		return fmt.Errorf("%s: unlimited is refused: leave the field out instead", field)
	}
	return checkAmount(field, a)
}

func checkAmount(field string, a Amount) error {
	if err := a.validate(); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}
