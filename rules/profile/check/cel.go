package check

import (
	"drydock.dev/drydock/rules/profile/conf"
)

func readCel(o *conf.Object, e Environment) Check {
	c := cel{text: o.Required("expression", "a condition in CEL over node, profile, state, since and now")}
	if c.text == "" || e.CEL == nil {
		return c
	}
	var err error
	if c.expression, err = e.CEL(c.text); err != nil {
		o.Refuse("expression", "", "%s", err)
	}
	return c
}

// cel judges the node by an expression in CEL. Only the worker compiles it.
type cel struct {
	text       string
	expression Expression
}

// Hold is part of Check.
func (k cel) Hold(c Case) Result {
	if k.expression == nil {
		return failed("the expression was not compiled: only the worker evaluates it")
	}
	holds, err := k.expression.Judge(c)
	if err != nil {
		return failed("%s", err)
	}
	r := Result{Holds: holds}
	if !holds {
		r.Reason = "it requires " + k.text
	}
	return r
}
