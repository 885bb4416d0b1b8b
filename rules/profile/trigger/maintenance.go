package trigger

import (
	"encoding/json"
	"strings"

	"drydock/rules/profile/conf"
	"drydock/rules/spec"
)

var _ = register(Kind{Name: "maintenance", optional: true, read: func(o *conf.Object) Trigger {
	var m Maintenance
	input, err := o.JSON()
	if err == nil {
		err = spec.CheckDefaults(input)
	}
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			o.Refuse("", "write the fields of a maintenance, without node and requestor", "%s", line)
		}
	}
	m.Input = input
	return m
}})

// Maintenance starts a NodeMaintenance of the node and waits until it is Ready; it is done when the profile leaves the state.
type Maintenance struct {
	// Input is the maintenance's, in JSON, without what identifies one.
	Input json.RawMessage
}

// Describe is part of Trigger.
func (m Maintenance) Describe() string {
	return "start a maintenance of the node, and wait until it is ready"
}
