// Package conf reads a configuration file of SAP's maintenance-controller the way it is read there: YAML 1.1, values of the
// environment in place, lenient types. Unlike there it finds all that is wrong, and says where.
package conf

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong, or that somebody should know.
type Problem struct {
	// Path is where, such as profiles[0] (os-patching).in-maintenance.enter.
	Path string `json:"path"`
	// Text says what is wrong, Next what to do about it.
	Text string `json:"text"`
	Next string `json:"next,omitempty"`
	// Variable is the one that has no value, where that is the problem.
	Variable string `json:"variable,omitempty"`
}

// Error is the problem in one line.
func (p Problem) Error() string {
	text := p.Text
	if p.Path != "" {
		text = p.Path + ": " + text
	}
	if p.Next != "" {
		text += ": " + p.Next
	}
	return text
}

// Problems gathers what is wrong. The zero value has none.
type Problems struct{ list []Problem }

// Add notes a problem.
func (p *Problems) Add(path, next, format string, args ...any) {
	p.list = append(p.list, Problem{Path: path, Text: fmt.Sprintf(format, args...), Next: next})
}

// Note adds a problem that is one already.
func (p *Problems) Note(problem Problem) { p.list = append(p.list, problem) }

// List are the problems in the order of the file, each once.
func (p *Problems) List() []Problem {
	var list []Problem
	for _, problem := range p.list {
		if !slices.Contains(list, problem) {
			list = append(list, problem)
		}
	}
	return list
}

// Join is all of them as one error, a line each, or nil.
func (p *Problems) Join() error {
	var all []error
	for _, problem := range p.List() {
		all = append(all, problem)
	}
	return errors.Join(all...)
}

// AsProblems are the problems that an error of this package joins.
func AsProblems(err error) []Problem {
	var one Problem
	var many interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &many):
		var all []Problem
		for _, e := range many.Unwrap() {
			all = append(all, AsProblems(e)...)
		}
		return all
	case errors.As(err, &one):
		return []Problem{one}
	}
	return []Problem{{Text: err.Error()}}
}

// Named is the path of an element of a list that has a name.
func Named(path string, index int, name string) string {
	at := fmt.Sprintf("%s[%d]", path, index)
	if name = strings.Join(strings.Fields(name), " "); name != "" {
		at += " (" + cut(name) + ")"
	}
	return at
}

// longest bounds, in bytes, what a message repeats of a file.
const longest = 80

func cut(text string) string {
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "..."
}
