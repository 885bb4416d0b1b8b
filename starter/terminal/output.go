package terminal

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"drydock/starter/exit"
)

// The formats of the -o flag.
const (
	FormatTable = "table"
	FormatJSON  = "json"
	FormatYAML  = "yaml"
)

// Formats are the formats that every command has.
var Formats = []string{FormatTable, FormatJSON, FormatYAML}

// Output is the -o flag.
type Output struct{ Format string }

// Register adds the flag to a command.
func (o *Output) Register(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.Format, "output", "o", FormatTable, "output format: "+strings.Join(Formats, ", "))
}

// Check refuses a format that there is not.
func (o *Output) Check() error {
	if !slices.Contains(Formats, o.Format) {
		return exit.UsageError("--output %q: want one of %s", o.Format, strings.Join(Formats, ", "))
	}
	return nil
}

// Table tells whether people read the output.
func (o *Output) Table() bool { return o.Format == FormatTable }

// Write renders value for programs, or calls table to render it for people.
func (o *Output) Write(w io.Writer, value any, table func(io.Writer)) error {
	switch o.Format {
	case FormatJSON:
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(value)
	case FormatYAML:
		data, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	default:
		table(w)
		return nil
	}
}
