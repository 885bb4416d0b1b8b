package starter

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/docs/schemas"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

func newExplain(a *invocation.App) *cobra.Command {
	var output terminal.Output
	var recursive bool
	cmd := &cobra.Command{
		Use:   "explain [INPUT[.FIELD...]]",
		Short: "Explain the fields of an input: of a maintenance, a plan, or a health check",
		Long: `Explain a field of an input, and list the fields below it, as "kubectl explain" does; without a field, those of the whole
input. INPUT is one of ` + strings.Join(schemas.Inputs(), ", ") + `.

"drydock schema input-INPUT" has the same as a JSON schema of what the workflow takes. A file for --file may leave the node of a
maintenance to the command line; that of a health check has its name beside the fields.`,
		Example: `  drydock explain maintenance
  drydock explain maintenance.drain.escalation
  drydock explain plan.strategy.onBlocked
  drydock explain health --recursive`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return paths(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			w := output.Page(a.Stdout)
			path := strings.Trim(strings.Join(args, ""), ". ")
			if path == "" {
				listFields(w, inputs())
				return nil
			}
			field, err := find(path)
			if err != nil {
				return err
			}
			explain(w, path, field, recursive)
			return nil
		},
	}
	cmd.Flags().BoolVar(&recursive, "recursive", false, "list all fields below, with their paths")
	return cmd
}

func inputs() []schemas.Field {
	var all []schemas.Field
	for _, name := range schemas.Inputs() {
		all = append(all, schemas.InputOf(name))
	}
	return all
}

// find looks for a field by its path. Indexes and the brackets of lists may stand in it, or not.
func find(path string) (found schemas.Field, err error) {
	fields, at := inputs(), ""
	for _, name := range strings.Split(path, ".") {
		name, _, _ = strings.Cut(name, "[")
		i := slices.IndexFunc(fields, func(f schemas.Field) bool { return strings.EqualFold(f.Name, name) })
		if i < 0 && len(fields) == 0 {
			return found, exit.UsageError("there is no %s%s: %s has no fields", at, name, strings.TrimSuffix(at, "."))
		}
		if i < 0 {
			return found, exit.UsageError("there is no %s%s: want one of %s", at, name, strings.Join(namesOf(fields), ", "))
		}
		found = fields[i]
		fields, at = found.Fields, at+found.Name+"."
	}
	return found, nil
}

func namesOf(fields []schemas.Field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return names
}

func paths() []string {
	var all []string
	for _, input := range inputs() {
		all = append(all, input.Name)
		for _, f := range input.Below() {
			all = append(all, input.Name+"."+strings.ReplaceAll(f.Path, "[]", ""))
		}
	}
	return all
}

func explain(w io.Writer, path string, f schemas.Field, recursive bool) {
	r := terminal.NewRows(w)
	r.Add("FIELD", path)
	r.Add("TYPE", typeOf(f))
	if len(f.Values) > 0 {
		r.Add("VALUES", strings.Join(f.Values, ", "))
	}
	if text := f.DefaultText(); text != "" {
		r.Add("DEFAULT", text)
	}
	if f.Flag != "" {
		r.Add("FLAG", "--"+f.Flag)
	}
	r.Done()
	terminal.Print(w, "\n%s\n", schemas.Plain(f.Description))
	if links := f.Links(); len(links) > 0 {
		fmt.Fprintf(w, "\nMore in %s\n", strings.Join(links, ", "))
	}
	if len(f.Fields) == 0 {
		return
	}
	fmt.Fprintln(w)
	if !recursive {
		listFields(w, f.Fields)
		return
	}
	r = terminal.NewRows(w, "FIELD", "TYPE", "MEANING")
	for _, below := range f.Below() {
		r.Add(strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(below.Path, f.Path), "[]"), "."), typeOf(below), below.Summary())
	}
	r.Done()
}

func listFields(w io.Writer, fields []schemas.Field) {
	r := terminal.NewRows(w, "FIELD", "TYPE", "MEANING")
	for _, f := range fields {
		r.Add(f.Name, typeOf(f), f.Summary())
	}
	r.Done()
}

func typeOf(f schemas.Field) string {
	text := f.Type
	if text == "amount" {
		text = "number or percentage"
	}
	if f.List {
		text = "list of " + text + "s"
	}
	if f.Required {
		text += ", required"
	}
	return text
}
