package input

import (
	"maps"
	"slices"
	"strings"

	"drydock/starter/exit"
)

// fieldsOf are the fields that a flag sets, by their paths.
func fieldsOf(put setter) []string {
	alone := map[string]any{}
	if put(alone) != nil {
		return nil
	}
	return paths("", alone)
}

func paths(prefix string, object map[string]any) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if below, ok := object[name].(map[string]any); ok && len(below) > 0 {
			all = append(all, paths(prefix+name+".", below)...)
			continue
		}
		all = append(all, prefix+name)
	}
	return all
}

// inFlags has an error of the input speak of the flags that were given, and of fields only where those are in a file.
func (s *Flags) inFlags(err error) error {
	if err == nil || len(s.given) == 0 {
		return err
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		field, what, ok := strings.Cut(line, ": ")
		if flag := s.flagOf(field); ok && flag != "" {
			lines[i] = "--" + flag + ": " + what
		}
	}
	return exit.WithCode(exit.CodeOf(err), exit.InWords(strings.Join(lines, "\n"), err))
}

// flagOf is the flag that has set a field, or a part of it such as sla.after or hooks.beforeCordon[0].
func (s *Flags) flagOf(field string) string {
	for _, path := range slices.Sorted(maps.Keys(s.given)) {
		if rest, ok := strings.CutPrefix(field, path); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return s.given[path]
		}
	}
	return ""
}
