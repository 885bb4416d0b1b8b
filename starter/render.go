package starter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

const (
	formatTable = "table"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

var formats = []string{formatTable, formatJSON, formatYAML}

// output is the -o flag.
type output struct{ format string }

func (o *output) register(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", formatTable, "output format: "+strings.Join(formats, ", "))
}

func (o *output) check() error {
	if !slices.Contains(formats, o.format) {
		return usageError("--output %q: want one of %s", o.format, strings.Join(formats, ", "))
	}
	return nil
}

func (o *output) table() bool { return o.format == formatTable }

// write renders value for programs, or calls table to render it for people.
func (o *output) write(w io.Writer, value any, table func(io.Writer)) error {
	switch o.format {
	case formatJSON:
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(value)
	case formatYAML:
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

// messages is where a command says what it does: on standard output for people, on standard error where standard
// output is for programs.
func (a *app) messages(o *output) io.Writer {
	if o.table() {
		return a.Stdout
	}
	return a.Stderr
}

// rows is a table under construction.
type rows struct {
	to      io.Writer
	aligned *bytes.Buffer
	*tabwriter.Writer
}

func newRows(to io.Writer, header ...string) rows {
	aligned := &bytes.Buffer{}
	r := rows{to, aligned, tabwriter.NewWriter(aligned, 0, 8, 2, ' ', 0)}
	if len(header) > 0 {
		r.add(header...)
	}
	return r
}

func (r rows) add(cells ...string) {
	for i, cell := range cells {
		cells[i] = oneLine(cell)
	}
	fmt.Fprintln(r, strings.Join(cells, "\t"))
}

// done prints the table, without the spaces that empty last cells would leave at the ends of lines.
func (r rows) done() {
	r.Flush()
	for l := range strings.Lines(r.aligned.String()) {
		fmt.Fprintln(r.to, strings.TrimRight(l, " \n"))
	}
}
