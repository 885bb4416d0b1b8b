package terminal

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/starter/exit"
)

// The formats of the -o flag.
const (
	FormatTable    = "table"
	FormatWide     = "wide"
	FormatName     = "name"
	FormatJSON     = "json"
	FormatYAML     = "yaml"
	FormatMarkdown = "markdown"
	FormatHTML     = "html"
)

// Formats are the formats that every command has.
var Formats = []string{FormatTable, FormatWide, FormatJSON, FormatYAML}

// Output is the -o flag.
type Output struct {
	Format string
	// NoHeaders leaves out the names of columns.
	NoHeaders bool
	// more are formats of one command only.
	more []string
}

// Register adds the flag to a command, with formats that it has beside those of all. The command does not run with any other.
func (o *Output) Register(cmd *cobra.Command, more ...string) {
	o.more = more
	cmd.Flags().StringVarP(&o.Format, "output", "o", FormatTable, "output format: "+strings.Join(o.formats(), ", "))
	CompleteFlag(cmd, "output", o.formats())
	cmd.PreRunE = o.check
}

// CompleteFlag has the shell offer the words for a flag.
func CompleteFlag(cmd *cobra.Command, flag string, words []string) {
	// It fails only for a flag that does not exist or was registered before.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// RegisterNoHeaders adds the flag for tables without the names of columns.
func (o *Output) RegisterNoHeaders(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.NoHeaders, "no-headers", false, "leave out the names of columns")
}

func (o *Output) formats() []string { return slices.Concat(Formats, o.more) }

// check refuses a format that there is not.
func (o *Output) check(*cobra.Command, []string) error {
	if !slices.Contains(o.formats(), o.Format) {
		return exit.UsageError("--output %q: want one of %s", o.Format, strings.Join(o.formats(), ", "))
	}
	return nil
}

// Table reports whether people read the output.
func (o *Output) Table() bool { return o.Format == FormatTable || o.Format == FormatWide }

// Wide reports whether everything is to be shown, however long the lines become.
func (o *Output) Wide() bool { return o.Format == FormatWide }

// Named has names, for -o name.
type Named interface{ Names() []string }

// Write renders value for programs, or draws its views for people, apart from one another.
func (o *Output) Write(w io.Writer, value any, views ...document.Document) error {
	switch o.Format {
	case FormatJSON:
		return encode(w, value, "  ")
	case FormatYAML:
		data, err := yaml.Marshal(forPrograms(value))
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	case FormatName:
		names := value.(Named).Names()
		_, err := io.WriteString(w, strings.Join(append(names, ""), "\n"))
		return err
	default:
		page := o.Page(w)
		to := bufio.NewWriter(page.Writer)
		page.Writer = to
		apart := ""
		for _, view := range views {
			if len(view.Parts) > 0 {
				Print(page, "%s", apart)
				Show(page, view)
				apart = "\n"
			}
		}
		return to.Flush() // it keeps the first error of all pieces
	}
}

// WriteLine renders value as one line of JSON.
func WriteLine(w io.Writer, value any) error { return encode(w, value, "") }

func encode(w io.Writer, value any, indent string) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", indent)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(forPrograms(value))
}

// Page is where a table is drawn.
func (o *Output) Page(w io.Writer) *Page {
	page := *PageOf(w)
	page.NoHeaders = o.NoHeaders
	if o.Wide() {
		page.Width = 0
	}
	return &page
}
