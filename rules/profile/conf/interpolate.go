package conf

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// reference is ${NAME}, or with an operator ${NAME:default}, ${NAME:+alternative}, ${NAME:?message}. Either side may have
// references in it.
type reference struct {
	name, other pieces
	operator    string
}

// pieces are a text in which each element is a string or a *reference.
type pieces []any

// isText reports that there is nothing to look up.
func (p pieces) isText() (string, bool) {
	switch len(p) {
	case 0:
		return "", true
	case 1:
		text, ok := p[0].(string)
		return text, ok
	}
	return "", false
}

func (p pieces) with(text string) pieces {
	if text == "" {
		return p
	}
	if n := len(p); n > 0 {
		if before, ok := p[n-1].(string); ok {
			p[n-1] = before + text
			return p
		}
	}
	return append(p, text)
}

// maxNesting bounds references within references.
const maxNesting = 20

// parse finds the references of a text. $$ is a dollar sign, $} a brace; a dollar sign before anything else is one too.
func parse(text string) (pieces, error) {
	p := parser{rest: text}
	found, err := p.text(0)
	if err == nil && p.rest != "" {
		err = errors.New("a brace too many")
	}
	return found, err
}

type parser struct{ rest string }

// text reads up to the end, or within a reference up to what ends its present side.
func (p *parser) text(depth int, until ...byte) (pieces, error) {
	if depth > maxNesting {
		return nil, errors.New("references are nested too deep")
	}
	var found pieces
	for p.rest != "" {
		switch c := p.rest[0]; {
		case slices.Contains(until, c):
			return found, nil
		case c != '$' || len(p.rest) == 1:
			found = found.with(p.rest[:1])
			p.rest = p.rest[1:]
		case p.rest[1] == '{':
			p.rest = p.rest[2:]
			r, err := p.reference(depth)
			if err != nil {
				return nil, err
			}
			found = append(found, r)
		case p.rest[1] == '$' || p.rest[1] == '}':
			found = found.with(p.rest[1:2])
			p.rest = p.rest[2:]
		default:
			found = found.with("$")
			p.rest = p.rest[1:]
		}
	}
	if len(until) > 0 {
		return nil, errors.New("a reference ${ has no } at its end")
	}
	return found, nil
}

func (p *parser) reference(depth int) (*reference, error) {
	var r reference
	var err error
	if r.name, err = p.text(depth+1, ':', '}'); err != nil {
		return nil, err
	}
	if len(r.name) == 0 {
		return nil, errors.New("a reference ${} names nothing")
	}
	if p.rest[0] == ':' {
		for _, operator := range []string{":+", ":?", ":"} {
			if strings.HasPrefix(p.rest, operator) {
				r.operator = operator
				break
			}
		}
		p.rest = p.rest[len(r.operator):]
		if r.other, err = p.text(depth+1, '}'); err != nil {
			return nil, err
		}
	}
	p.rest = p.rest[1:]
	return &r, nil
}

// variables are what references are looked up in: the top of the file first, then the environment.
type variables struct {
	top map[string]any
	env func(string) (string, bool)
	// looked are the keys at the top that were.
	looked map[string]bool
}

// unset reports that a reference has no value. The file may have a message for that.
type unset struct{ name, message string }

func (u unset) Error() string {
	if u.message != "" {
		return u.message
	}
	return fmt.Sprintf("${%s} has no value: the environment variable is unset or empty, and no key at the top of the file has its name", cut(u.name))
}

// found is a scalar that came out of a reference; there texts of lists are taken apart at commas.
type found string

// resolve is a value with its references replaced. What is not a text stays as it is: its elements are resolved when they are read.
func (v *variables) resolve(raw any, active []string) (any, error) {
	text, ok := raw.(string)
	if !ok {
		return raw, nil
	}
	parts, err := parse(text)
	if err != nil {
		return nil, err
	}
	if plain, ok := parts.isText(); ok {
		return plain, nil
	}
	if r, ok := parts[0].(*reference); ok && len(parts) == 1 && r.operator == "" {
		name, err := v.join(r.name, active)
		if err != nil {
			return nil, err
		}
		return v.lookup(name, active)
	}
	joined, err := v.join(parts, active)
	return found(joined), err
}

func (v *variables) lookup(name string, active []string) (any, error) {
	if slices.Contains(active, name) {
		return nil, fmt.Errorf("${%s} leads back to itself", cut(name))
	}
	if value, ok := v.top[name]; ok && value != nil {
		v.looked[name] = true
		return v.resolve(value, append(slices.Clone(active), name))
	}
	if value, ok := v.env(name); ok && value != "" {
		return found(unquoted(value)), nil
	}
	return nil, unset{name: name}
}

// unquoted is a value without the quotes around it, as in a file of variables that keeps them.
func unquoted(value string) string {
	value = strings.TrimSpace(value)
	if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] && strings.Count(value, value[:1]) == 2 {
		return value[1 : n-1]
	}
	return value
}

func (v *variables) join(p pieces, active []string) (string, error) {
	var all strings.Builder
	for _, piece := range p {
		if text, ok := piece.(string); ok {
			all.WriteString(text)
			continue
		}
		text, err := v.value(piece.(*reference), active)
		if err != nil {
			return "", err
		}
		all.WriteString(text)
	}
	return all.String(), nil
}

// value is what stands in a text for a reference.
func (v *variables) value(r *reference, active []string) (string, error) {
	text, err := v.named(r, active)
	set := err == nil && text != ""
	switch {
	case r.operator == ":+" && !set:
		return "", nil
	case r.operator == ":+", r.operator == ":" && !set:
		return v.join(r.other, active)
	case r.operator == ":?" && !set:
		message, err := v.join(r.other, active)
		if err != nil {
			return "", err
		}
		// Whatever is wrong with the name, the message is what the file wants to be said.
		name, _ := v.join(r.name, active)
		return "", unset{name, message}
	}
	return text, err
}

func (v *variables) named(r *reference, active []string) (string, error) {
	name, err := v.join(r.name, active)
	if err != nil {
		return "", err
	}
	value, err := v.lookup(name, active)
	if err != nil {
		return "", err
	}
	text, ok := textOf(value)
	if !ok {
		return "", fmt.Errorf("${%s} is a list or has keys of its own: a text is wanted", cut(name))
	}
	return text, nil
}
