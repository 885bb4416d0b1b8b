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
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
)

// Flags are the flags that describe a maintenance: those of the fields of its input, and --file.
type Flags struct {
	FieldFlags
	file string
}

// Register adds the flags to a command.
func (s *Flags) Register(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.file, "file", "f", "", "YAML or JSON file with the maintenance's input, - for standard input; flags override it")
	s.RegisterFields(cmd)
}

// RegisterFields adds the flags without --file, for a command whose file says more than one maintenance.
func (s *Flags) RegisterFields(cmd *cobra.Command) {
	s.FieldFlags.Register(cmd, WithFlags("maintenance"), forms)
}

// Input builds the maintenance's input: the file, the flags over it, and a requestor where neither names one.
func (s *Flags) Input(env invocation.Environment, stdin io.Reader) (map[string]any, error) {
	input := map[string]any{}
	if s.file != "" {
		var err error
		if input, err = ReadObject(s.file, stdin); err != nil {
			return nil, err
		}
		s.ReadFile(input)
	}
	if _, inFile := input["requestor"]; !inFile || env.Get(invocation.EnvRequestor) != "" {
		input["requestor"] = env.Requestor()
	}
	if err := s.Put(input); err != nil {
		return nil, err
	}
	return input, nil
}

// Put puts the flags that were given into an input, over what is there.
func (s *Flags) Put(input map[string]any) error {
	if err := s.FieldFlags.Put(input); err != nil {
		return err
	}
	// Without a selector the timeout alone would wait for every pod, which nobody has asked for.
	if wait, ok := input["waitForPodCompletion"].(map[string]any); ok && s.Given("waitForPodCompletion.timeout") != "" {
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
		some := client.Input{}
		maps.Copy(some, input)
		some["node"] = "node"
		if some["requestor"] == nil {
			some["requestor"] = "requestor"
		}
		if _, err := some.Decode(); err != nil {
			return nil, exit.UsageError("%w", err) // a field that is misspelt may be the one of the node
		}
		return nil, exit.UsageError("missing NODE: name at least one, or have the file name it (node)")
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
	data, err := ReadFile(path, stdin)
	if err != nil {
		return nil, exit.UsageError("%w", err)
	}
	if path == "-" {
		path = "standard input"
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

// ReadFile reads a file, or standard input for "-".
func ReadFile(path string, stdin io.Reader) ([]byte, error) {
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
