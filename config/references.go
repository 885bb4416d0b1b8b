package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/secret"
)

// checkGroups refuses channels for groups that do not exist: they would never get an event.
func (c Config) checkGroups() []error {
	var known []string
	for _, g := range c.Scheduler.Limits.Groups {
		known = append(known, g.Name)
	}
	slices.Sort(known)
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(c.Channels)) {
		for i, group := range c.Channels[name].Filter.Groups {
			if group != "" && !slices.Contains(known, schedule.GroupName(group)) {
				problems = append(problems, fmt.Errorf("channels.%s.filter.groups[%d]: there is no group %q: scheduler.groups has %s",
					name, i, group, listed(known)))
			}
		}
	}
	return problems
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// CheckSecretFiles reads every file that is named as a secret once; the error joins one line per field whose file cannot be
// read. Variables of the environment are not looked at: they are the worker's.
func (c Config) CheckSecretFiles() error {
	var problems []error
	eachSecret(reflect.ValueOf(c), "", func(field string, v secret.Value) {
		if v.File == "" {
			return
		}
		if _, err := v.Read(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", field, err))
		}
	})
	return errors.Join(problems...)
}

// eachSecret finds the secrets below a value, each with its field.
func eachSecret(v reflect.Value, field string, found func(field string, v secret.Value)) {
	if !v.IsValid() {
		return
	}
	if s, is := v.Interface().(secret.Value); is {
		found(field, s)
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		eachSecret(v.Elem(), field, found)
	case reflect.Slice:
		for i := range v.Len() {
			at := fmt.Sprintf("%s[%d]", field, i)
			if kind := kindOf(v.Index(i)); kind != "" {
				at = under(field, kind)
			}
			eachSecret(v.Index(i), at, found)
		}
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			return
		}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			eachSecret(v.MapIndex(key), under(field, key.String()), found)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if about := v.Type().Field(i); about.IsExported() {
				name, _, _ := strings.Cut(about.Tag.Get("json"), ",")
				eachSecret(v.Field(i), under(field, name), found)
			}
		}
	}
}

// kindOf is the kind of a sections.Chosen, empty for anything else.
func kindOf(v reflect.Value) string {
	if v.Kind() != reflect.Struct || !v.FieldByName("Config").IsValid() || !v.FieldByName("Kind").IsValid() {
		return ""
	}
	return v.FieldByName("Kind").String()
}

// under is a field of a section; one without a name is the section itself.
func under(section, name string) string {
	if section == "" || name == "" {
		return section + name
	}
	return section + "." + name
}
