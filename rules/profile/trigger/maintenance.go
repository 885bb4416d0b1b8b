package trigger

import (
	"encoding/json"
	"regexp"
	"strings"

	"drydock.dev/drydock/rules/profile/conf"
	"drydock.dev/drydock/rules/spec"
)

func readMaintenance(o *conf.Object) Trigger {
	var m Maintenance
	input, err := o.JSON()
	if err != nil {
		o.Unresolved("", err)
		return m
	}
	for _, field := range spec.Identities() {
		if o.Has(field) {
			o.Refuse(field, "take it away", "the profile and the node say that")
		}
	}
	if others, err := o.JSON(spec.Identities()...); err == nil {
		refuse(o, spec.CheckDefaults(others))
	}
	m.Input = input
	return m
}

// fieldName is how lines begin that say what is wrong with a field.
var fieldName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9.\[\]]*$`)

// refuse notes what is wrong with the fields of a maintenance, a line each.
func refuse(o *conf.Object, err error) {
	if err == nil {
		return
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		field, text, found := strings.Cut(line, ": ")
		if !found || !fieldName.MatchString(field) {
			field, text = "", line
		}
		o.Refuse(field, "write it as in a maintenance's input", "%s", text)
	}
}

// Maintenance starts a NodeMaintenance of the node and waits until it is Ready; it is done when the profile leaves the state.
type Maintenance struct {
	// Input is the maintenance's, in JSON, without what identifies one.
	Input json.RawMessage
}

// Describe is part of Trigger.
func (m Maintenance) Describe() string {
	return "start a maintenance of the node, and wait until it is ready"
}
