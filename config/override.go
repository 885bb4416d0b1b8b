package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// Environment lists the variables that Load reads.
func Environment() []string {
	var names []string
	eachTagged(reflect.ValueOf(&Config{}).Elem(), "env", func(name string, _ reflect.Value) { names = append(names, name) })
	slices.Sort(names)
	return names
}

// PutFlags takes the values of flags over the file and the environment: get returns that of one, empty if it was not given.
func (c *Config) PutFlags(get func(name string) string) error { return c.put("flag", get) }

// put sets the fields whose tag names something that has a value.
func (c *Config) put(tag string, get func(name string) string) error {
	var problems []error
	eachTagged(reflect.ValueOf(c).Elem(), tag, func(name string, field reflect.Value) {
		if text := get(name); text != "" {
			if err := set(field, text); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", name, err))
			}
		}
	})
	return errors.Join(problems...)
}

func eachTagged(v reflect.Value, tag string, found func(name string, field reflect.Value)) {
	for field, value := range v.Fields() {
		if name := field.Tag.Get(tag); name != "" {
			found(name, value)
		} else if value.Kind() == reflect.Struct {
			eachTagged(value, tag, found)
		}
	}
}

func set(field reflect.Value, text string) error {
	switch {
	case field.CanInt():
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%.20q: want a whole number", text)
		}
		field.SetInt(int64(n))
	case field.CanFloat():
		n, err := strconv.ParseFloat(text, field.Type().Bits())
		if err != nil {
			return fmt.Errorf("%.20q: want a number", text)
		}
		field.SetFloat(n)
	default:
		field.SetString(text)
	}
	return nil
}
