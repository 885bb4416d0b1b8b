package input

import (
	"encoding/json"
	"io"
	"maps"
	"slices"

	"drydock/rules/schedule"
	"drydock/rules/spec"
	"drydock/starter/exit"
)

// ReadLimits reads limits from a worker's configuration, where they are a part of the section scheduler, or from a
// file of limits alone. Limits that the file leaves out get their defaults, as the worker would give them.
func ReadLimits(path string, stdin io.Reader) (schedule.Limits, error) {
	document, err := readObject(path, stdin)
	if err != nil {
		return schedule.Limits{}, err
	}
	limits, err := limitsOf(document)
	if err == nil {
		err = limits.WithDefaults().Validate()
	}
	if err != nil {
		return limits, exit.UsageError("%s: %w", path, err)
	}
	return limits.WithDefaults(), nil
}

// limitsOf reads them strictly. The other sections of a worker's configuration are the worker's to check.
func limitsOf(document map[string]any) (schedule.Limits, error) {
	var limits schedule.Limits
	if alone(document) {
		data, err := json.Marshal(document)
		if err == nil {
			err = spec.DecodeStrict(data, &limits)
		}
		return limits, err
	}
	var configuration struct {
		Scheduler struct {
			schedule.Limits
			OnOrphan string `json:"onOrphan"`
		} `json:"scheduler"`
	}
	data, err := json.Marshal(map[string]any{"scheduler": document["scheduler"]})
	if err == nil && document["scheduler"] != nil {
		err = spec.DecodeStrict(data, &configuration)
	}
	return configuration.Scheduler.Limits, err
}

// alone tells a file of limits from a whole configuration, by having nothing but limits in it.
func alone(document map[string]any) bool {
	known := map[string]bool{"maxParallel": true, "maxUnavailable": true, "groups": true}
	return !slices.ContainsFunc(slices.Collect(maps.Keys(document)), func(key string) bool { return !known[key] })
}
