package input

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"

	"drydock.dev/drydock/docs/schemas"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/terminal"
)

// ReadLimits reads limits from a worker's configuration, where they are the sections scheduler and quotas, or from a
// file of limits alone. Limits that the file leaves out get their defaults, as the worker would give them.
func ReadLimits(path string, stdin io.Reader) (schedule.Limits, error) {
	document, err := ReadObject(path, stdin)
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
	isAlone, err := alone(document)
	if err != nil {
		return limits, err
	}
	if isAlone {
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
		Quotas schedule.Quotas `json:"quotas"`
	}
	given := map[string]any{}
	for _, section := range []string{"scheduler", "quotas"} {
		if document[section] != nil {
			given[section] = document[section]
		}
	}
	data, err := json.Marshal(given)
	if err == nil {
		err = spec.DecodeStrict(data, &configuration)
	}
	if err == nil && !configuration.Scheduler.Quotas.IsZero() {
		err = errors.New("scheduler.quotas: write it as quotas, beside policy")
	}
	limits = configuration.Scheduler.Limits
	limits.Quotas = configuration.Quotas
	return limits, err
}

// alone reports whether a file has limits alone, and is no whole configuration. Limits name windows in a list; in a configuration windows
// are objects. What is unknown is refused: to leave it out would put defaults in force.
func alone(document map[string]any) (bool, error) {
	known, configuration := namesOf("limits"), namesOf("config")
	isAlone := !slices.ContainsFunc(slices.Collect(maps.Keys(document)), func(key string) bool {
		_, named := document[key].([]any)
		return slices.Contains(configuration, key) && (!slices.Contains(known, key) || key == "windows" && !named)
	})
	if !isAlone {
		known = configuration
	}
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(document)) {
		if !slices.Contains(known, key) {
			problems = append(problems, spec.UnknownField(key, key, known))
		}
	}
	return isAlone, errors.Join(problems...)
}

func namesOf(input string) []string {
	return terminal.NamesOf(schemas.InputOf(input).Fields, func(f schemas.Field) string { return f.Name })
}
