package sections

import (
	"errors"
	"fmt"
)

// Problems gathers one error per wrong field.
type Problems []error

// Add says what is wrong with a field.
func (p *Problems) Add(field, format string, args ...any) {
	*p = append(*p, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
}

// Check adds an error of a field; nil is none.
func (p *Problems) Check(field string, err error) {
	if err != nil {
		*p = append(*p, fmt.Errorf("%s: %w", field, err))
	}
}

// Under adds the lines of an error whose lines may name fields already, with the section in front of each.
func (p *Problems) Under(section string, err error) {
	*p = append(*p, Under(section, err)...)
}

// Join is one error of them all; nil if there are none.
func (p *Problems) Join() error { return errors.Join(*p...) }
