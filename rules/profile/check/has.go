package check

import (
	"fmt"

	"drydock.dev/drydock/rules/profile/conf"
)

func readHasAnnotation(o *conf.Object, _ Environment) Check {
	return has{what: "annotation", key: o.Required("key", "the key of an annotation"), value: o.Text("value")}
}

func readHasLabel(o *conf.Object, _ Environment) Check {
	return has{what: "label", key: o.Required("key", "the key of a label"), value: o.Text("value")}
}

func readAnyLabel(o *conf.Object, _ Environment) Check {
	return anyLabel{key: o.Required("key", "the key of a label"), value: o.Text("value")}
}

// has looks for a label or an annotation of the node, as what says; without a value any will do.
type has struct{ what, key, value string }

// Hold is part of Check.
func (h has) Hold(c Case) Result {
	all := c.Node.Labels
	if h.what == "annotation" {
		all = c.Node.Annotations
	}
	value, there := all[h.key]
	switch {
	case !there:
		return Result{Reason: fmt.Sprintf("%s %s not present", h.what, h.key)}
	case h.value != "" && value != h.value:
		return Result{Reason: fmt.Sprintf("%s %s is %q, and %q is wanted", h.what, h.key, value, h.value)}
	}
	return Result{Holds: true}.info(h.key, value)
}

// anyLabel looks for a label on any node.
type anyLabel struct{ key, value string }

// Hold is part of Check.
func (a anyLabel) Hold(c Case) Result {
	if m := c.View.withLabel(a.key, a.value); m != nil {
		return Result{Holds: true}.info("node", m.Name)
	}
	if a.value == "" {
		return Result{Reason: fmt.Sprintf("label %s is on no node", a.key)}
	}
	return Result{Reason: fmt.Sprintf("label %s is %q on no node", a.key, a.value)}
}
