package profile

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

type graphOptions struct {
	app  *invocation.App
	file string
}

func newGraph(a *invocation.App) *cobra.Command {
	o := &graphOptions{app: a}
	cmd := &cobra.Command{
		Use:   "graph [NAME] --file FILE",
		Short: "Draw a profile as a Mermaid diagram",
		Long: `Draw a profile of a file as the text of a Mermaid diagram: its states, and of each transition the checks and the triggers. Forges draw
it in a page, between ` + "```mermaid and ```" + `. Without NAME it lists the profiles that the file has.

Variables need no value here: a diagram has none of what they give.`,
		Example: `  drydock profile graph --file maintenance.yaml
  drydock profile graph os-patching --file maintenance.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args) },
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return ofFile(a, o.file), cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "the file of profiles, - for standard input")
	return cmd
}

func (o *graphOptions) run(args []string) error {
	if o.file == "" {
		return exit.UsageError("missing --file FILE: the file of profiles")
	}
	c, err := load(o.app, o.file)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		_, err := fmt.Fprintln(o.app.Stdout, strings.Join(names(c), "\n"))
		return err
	}
	p, known := c.Profile(args[0])
	if !known {
		return exit.UsageError("%s has no profile %q: it has %s", o.file, args[0], strings.Join(names(c), ", "))
	}
	_, err = io.WriteString(o.app.Stdout, p.Mermaid())
	return err
}

// load reads a file of profiles, whatever its variables give.
func load(a *invocation.App, path string) (*profile.Config, error) {
	text, err := ReadFile(a, path)
	if err != nil {
		return nil, err
	}
	e := Environment(a)
	e.AllowUnset = true
	c, err := profile.Load(text, e)
	if err != nil {
		return nil, exit.Hint(exit.UsageError("%s is not right:\n%w", path, err), `"%s profile lint %s" says it with its warnings.`, a.Name, path)
	}
	return c, nil
}

func names(c *profile.Config) []string {
	all := terminal.NamesOf(c.Profiles, func(p profile.Profile) string { return p.Name })
	slices.Sort(all)
	return all
}

// ofFile are the names of the profiles in a file, none where it is not right. It is for completion.
func ofFile(a *invocation.App, path string) []string {
	if path == "" || strings.HasPrefix(path, "-") {
		return nil
	}
	c, err := load(a, path)
	if err != nil {
		return nil
	}
	return names(c)
}
