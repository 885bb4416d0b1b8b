package starter

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/docs/schemas"
	"drydock.dev/drydock/rules/nearest"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

func newExplain(a *invocation.App) *cobra.Command {
	var output terminal.Output
	var recursive bool
	cmd := &cobra.Command{
		Use:   "explain [INPUT[.FIELD...]]",
		Short: "Explain the fields of an input: of a maintenance, a plan, a health check, limits, or the worker's configuration",
		Long: `Explain a field of an input, and list the fields below it, as "kubectl explain" does; without a field, those of the whole
input. INPUT is one of ` + strings.Join(schemas.Inputs(), ", ") + `.

"drydock schema input-INPUT" has the same as a JSON schema, for editors too. A file for --file may leave the node of a maintenance to the
command line; that of a health check has its name beside the fields. The names of channels, checks and so on may be left out of a path.`,
		Example: `  drydock explain maintenance
  drydock explain maintenance.drain.escalation
  drydock explain plan.strategy.onBlocked
  drydock explain config.channels.slack
  drydock explain health --recursive`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return paths(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			w := output.Page(a.Stdout)
			path := strings.Trim(strings.Join(args, ""), ". ")
			if path == "" {
				listFields(w, inputs(), nameOf)
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

// find looks for a field by its path. Indexes and the brackets of lists may stand in it, and the names in maps, or not.
func find(path string) (found schemas.Field, err error) {
	fields, at, named := inputs(), "", false
	for _, name := range strings.Split(path, ".") {
		name, _, _ = strings.Cut(name, "[")
		i := slices.IndexFunc(fields, func(f schemas.Field) bool { return strings.EqualFold(f.Name, name) })
		switch meant := nearest.To(name, terminal.NamesOf(fields, nameOf)); {
		case i >= 0:
			found, named = fields[i], false
			fields, at = found.Fields, at+found.Name+"."
		case found.Map && !named:
			named, at = true, at+name+"."
		case len(fields) == 0:
			return found, exit.UsageError("there is no %s%s: %s has no fields", at, name, strings.TrimSuffix(at, "."))
		case meant != "":
			return found, exit.UsageError("there is no %s%s: did you mean %s?", at, name, meant)
		default:
			return found, exit.UsageError("there is no %s%s: want one of %s", at, name, strings.Join(terminal.NamesOf(fields, nameOf), ", "))
		}
	}
	return found, nil
}

func paths() []string {
	var all []string
	for _, input := range inputs() {
		all = append(all, input.Name)
		for _, f := range input.Below() {
			all = append(all, input.Name+"."+strings.NewReplacer("[]", "", "."+schemas.AnyName, "").Replace(f.Path))
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
	switch {
	case f.Flag != "" && isOfWorker(path):
		r.Add("FLAG", "drydock-worker --"+f.Flag)
	case f.Flag != "":
		r.Add("FLAG", "--"+f.Flag)
	}
	if f.Env != "" {
		r.Add("ENVIRONMENT", f.Env)
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
	if recursive {
		listFields(w, f.Below(), f.Within)
	} else {
		listFields(w, f.Fields, nameOf)
	}
}

func listFields(w io.Writer, fields []schemas.Field, name func(schemas.Field) string) {
	r := terminal.NewRows(w, "FIELD", "TYPE", "DEFAULT", "MEANING")
	for _, f := range fields {
		r.Add(name(f), typeOf(f), f.DefaultText(), f.Summary())
	}
	r.Done()
}

func nameOf(f schemas.Field) string { return f.Name }

// isOfWorker reports whether a path begins with the worker's configuration, whose flags are those of drydock-worker.
func isOfWorker(path string) bool {
	input, _, _ := strings.Cut(path, ".")
	return strings.EqualFold(input, "config")
}

func typeOf(f schemas.Field) string {
	text := f.Type
	switch text {
	case "amount":
		text = "number or percentage"
	case "address":
		text = "string or secret"
	}
	switch {
	case f.List:
		text = "list of " + text + "s"
	case f.Map:
		text = "map of " + text + "s"
	}
	if f.Required {
		text += ", required"
	}
	return text
}
