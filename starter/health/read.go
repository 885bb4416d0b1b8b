package health

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/health/nhc"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/terminal"
)

// readChecks reads the health checks of a file: NodeHealthChecks of medik8s as they are, a check with its name, or the section
// healthChecks of a worker's configuration. Names choose some of them; none chooses all. Every check is read as the workflow
// will, and the error names all that is wrong.
func readChecks(path string, stdin io.Reader, names []string) ([]nhc.Check, error) {
	data, err := input.ReadFile(path, stdin)
	if err != nil {
		return nil, exit.UsageError("%w", err)
	}
	var (
		checks   []nhc.Check
		problems []error
	)
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, exit.UsageError("%s: %w", path, err)
		}
		found, err := readDocument(document)
		checks, problems = append(checks, found...), append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, exit.UsageError("%s: %w", path, err)
	}
	return choose(path, checks, names)
}

func readDocument(document []byte) ([]nhc.Check, error) {
	asJSON := document
	if !json.Valid(document) {
		var err error
		if asJSON, err = yaml.YAMLToJSONStrict(document); err != nil {
			return nil, fmt.Errorf("not valid YAML or JSON: %w", err)
		}
	}
	var object map[string]any
	if err := json.Unmarshal(asJSON, &object); err != nil {
		return nil, errors.New("want an object: a NodeHealthCheck, a health check with its name, or a worker's configuration")
	}
	if len(object) == 0 {
		return nil, nil
	}
	if nhc.Is(object) {
		return nhc.Read(object)
	}
	if section, ok := object["healthChecks"]; ok {
		return ofConfiguration(section)
	}
	name, ok := object["name"].(string)
	if !ok {
		return nil, errors.New("name: is missing: want the health check's name, a NodeHealthCheck, or a section healthChecks")
	}
	delete(object, "name")
	encoded, err := json.Marshal(object)
	return []nhc.Check{{Name: name, Spec: encoded}}, err
}

func ofConfiguration(section any) ([]nhc.Check, error) {
	all, ok := section.(map[string]any)
	if !ok {
		return nil, errors.New("healthChecks: want an object with the checks by their names")
	}
	var checks []nhc.Check
	for _, name := range slices.Sorted(maps.Keys(all)) {
		encoded, err := json.Marshal(all[name])
		if err != nil {
			return nil, err
		}
		checks = append(checks, nhc.Check{Name: name, Spec: encoded})
	}
	return checks, nil
}

// choose leaves the checks of those names, and reads each.
func choose(path string, checks []nhc.Check, names []string) ([]nhc.Check, error) {
	known := terminal.NamesOf(checks, func(c nhc.Check) string { return c.Name })
	if len(checks) == 0 {
		return nil, exit.UsageError("%s: has no health check", path)
	}
	for i, name := range known {
		if slices.Contains(known[:i], name) {
			return nil, exit.UsageError("%s: has two health checks %q", path, name)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, exit.UsageError("%s: has no health check %q: it has %s", path, name, terminal.SomeOf(known, 10))
		}
	}
	var (
		chosen   []nhc.Check
		problems []error
	)
	for _, c := range checks {
		if len(names) > 0 && !slices.Contains(names, c.Name) {
			continue
		}
		problems = append(problems, health.CheckName(c.Name))
		if _, err := health.Decode(c.Spec); err != nil {
			problems = append(problems, prefixed(c.Name, err))
		}
		chosen = append(chosen, c)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, exit.UsageError("%s: %w", path, err)
	}
	return chosen, nil
}
