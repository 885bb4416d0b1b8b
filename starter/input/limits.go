package input

import (
	"encoding/json"
	"io"
	"maps"
	"slices"

	"drydock/config"
	"drydock/rules/schedule"
	"drydock/rules/spec"
	"drydock/starter/exit"
)

// ReadLimits reads limits from a worker's configuration, where they are a part of the section scheduler, or from a
// file of limits alone. Limits that the file leaves out get their defaults, as the worker would give them.
func ReadLimits(path string, stdin io.Reader) (schedule.Limits, error) {
	var limits schedule.Limits
	document, err := readObject(path, stdin)
	if err != nil {
		return limits, err
	}
	data, err := json.Marshal(document)
	if err != nil {
		return limits, err
	}
	if alone(document) {
		err = spec.DecodeStrict(data, &limits)
	} else {
		whole := config.Default()
		err = config.Parse(data, &whole, config.Kinds{})
		limits = whole.Scheduler.Limits
	}
	if err == nil {
		err = limits.Validate()
	}
	if err != nil {
		return limits, exit.UsageError("%s: %w", path, err)
	}
	return limits.WithDefaults(), nil
}

// alone tells a file of limits from a whole configuration, by having nothing but limits in it.
func alone(document map[string]any) bool {
	known := map[string]bool{"maxParallel": true, "maxUnavailable": true, "groups": true}
	return !slices.ContainsFunc(slices.Collect(maps.Keys(document)), func(key string) bool { return !known[key] })
}
