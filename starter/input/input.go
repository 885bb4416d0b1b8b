// Package input reads flags and files into the inputs of maintenances and limits.
package input

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"drydock/client"
	"drydock/rules/spec"
	"drydock/starter/exit"
	"drydock/starter/invocation"
)

// Flags are the flags that describe a maintenance: one for each field of its input but the node and the plan of
// the drain, which only a file has room for.
type Flags struct {
	file   string
	about  aboutFlags
	course courseFlags
	drain  drainFlags
	// given are the flags that have set something, by its field.
	given map[string]string
}

// Register adds the flags to a command.
func (s *Flags) Register(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.file, "file", "f", "", "YAML or JSON file with the maintenance's input, - for standard input; flags go over it")
	s.RegisterFields(cmd)
}

// RegisterFields adds the flags without --file, for a command whose file says more than one maintenance.
func (s *Flags) RegisterFields(cmd *cobra.Command) {
	f := cmd.Flags()
	s.about.register(f)
	s.course.register(f)
	s.drain.register(f)
}

// setter puts a flag into the input.
type setter func(input map[string]any) error

// set sets a field by its path.
func set(path string, value any) setter {
	return func(input map[string]any) error { return SetField(input, path, value) }
}

// setters are the flags in the form of the input's fields. A field is set only if its flag was given, so that what
// is absent stays absent and gets the worker's default.
func (s *Flags) setters() map[string]setter {
	all := s.about.setters()
	maps.Copy(all, s.course.setters())
	maps.Copy(all, s.drain.setters())
	return all
}

// Input builds the maintenance's input: the file, the flags over it, and a requestor where neither names one.
func (s *Flags) Input(flags *pflag.FlagSet, env invocation.Environment, stdin io.Reader) (map[string]any, error) {
	input := map[string]any{}
	if s.file != "" {
		var err error
		if input, err = ReadObject(s.file, stdin); err != nil {
			return nil, err
		}
	}
	if _, inFile := input["requestor"]; !inFile || env.Get(invocation.EnvRequestor) != "" {
		input["requestor"] = env.Requestor()
	}
	if err := s.Put(flags, input); err != nil {
		return nil, err
	}
	return input, nil
}

// Put puts the flags that were given into an input, over what is there.
func (s *Flags) Put(flags *pflag.FlagSet, input map[string]any) error {
	setters := s.setters()
	s.given = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(setters)) {
		if flags.Changed(name) {
			if err := setters[name](input); err != nil {
				return exit.UsageError("--%s: %w", name, err)
			}
			for _, field := range fieldsOf(setters[name]) {
				s.given[field] = name
			}
		}
	}
	// Without a selector the timeout alone would wait for every pod, which nobody has asked for.
	if wait, ok := input["waitForPodCompletion"].(map[string]any); ok && flags.Changed("wait-for-pods-timeout") {
		if _, selected := wait["podSelector"]; !selected {
			return exit.UsageError("--wait-for-pods-timeout: needs --wait-for-pods, which says for which pods to wait")
		}
	}
	return nil
}

// forNode is the input for one node, checked as the workflow will check it. The check knows nothing of the worker's
// defaults, which can only fill in what is absent here.
func forNode(input map[string]any, name string) (client.Input, spec.Maintenance, error) {
	own := client.Input(maps.Clone(input))
	if name != "" {
		own["node"] = name
	}
	decoded, err := own.Decode()
	if err != nil {
		return nil, decoded, exit.UsageError("%w", err)
	}
	return own, decoded, nil
}

// NodesOf are the nodes to maintain: those of the arguments, or the one of the file.
func NodesOf(args []string, input map[string]any) ([]string, error) {
	inFile, _ := input["node"].(string)
	switch {
	case len(args) == 0 && inFile == "":
		return nil, exit.UsageError("missing NODE: name at least one")
	case len(args) == 0:
		return []string{inFile}, nil
	case inFile != "" && !slices.Equal(args, []string{inFile}):
		return nil, exit.UsageError("the file is for node %q: leave the node out of it, or name no other", inFile)
	}
	return Unique(args), nil
}

// RefuseWork refuses work of the worker where a command is the work: both would be done at once.
func RefuseWork(input map[string]any) error {
	if name, _ := input["work"].(string); name != "" {
		return exit.UsageError("work %q: the command after -- is the work: leave --work out, or use start", name)
	}
	return nil
}

// Unique leaves out what was there before.
func Unique(names []string) []string {
	var result []string
	for _, name := range names {
		if !slices.Contains(result, name) {
			result = append(result, name)
		}
	}
	return result
}

// SetField sets a field by its path, making the objects on the way.
func SetField(input map[string]any, path string, value any) error {
	parent, rest, nested := strings.Cut(path, ".")
	if !nested {
		input[path] = value
		return nil
	}
	if _, ok := input[parent]; !ok {
		input[parent] = map[string]any{}
	}
	object, ok := input[parent].(map[string]any)
	if !ok {
		return fmt.Errorf("%s in the file is not an object", parent)
	}
	return SetField(object, rest, value)
}

// ReadObject reads one YAML or JSON object, refusing duplicate keys, which decoding would drop silently.
func ReadObject(path string, stdin io.Reader) (map[string]any, error) {
	data, err := readFile(path, stdin)
	if err != nil {
		return nil, exit.UsageError("%w", err)
	}
	asJSON := data
	if !json.Valid(data) { // a reader of YAML does not read all of JSON: no surrogate pairs
		if asJSON, err = yaml.YAMLToJSONStrict(data); err != nil {
			return nil, exit.UsageError("%s: not valid YAML or JSON: %w", path, err)
		}
	}
	object := map[string]any{}
	if err := spec.DecodeStrict(asJSON, &object); err != nil {
		return nil, exit.UsageError("%s: %w", path, err)
	}
	return object, nil
}

func readFile(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(path)
}

// NamesIn are the names in a section of a worker's configuration, none where there is no such file.
func NamesIn(path, section string) []string {
	if path == "" || path == "-" {
		return nil
	}
	document, err := ReadObject(path, nil)
	if err != nil {
		return nil
	}
	entries, _ := document[section].(map[string]any)
	return slices.Sorted(maps.Keys(entries))
}
