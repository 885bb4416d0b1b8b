package profile

import (
	"cmp"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

type lintOptions struct {
	app        *invocation.App
	output     terminal.Output
	allowUnset bool
}

func newLint(a *invocation.App) *cobra.Command {
	o := &lintOptions{app: a}
	cmd := &cobra.Command{
		Use:   "lint FILE",
		Short: "Say what is wrong with a file of profiles",
		Long: `Say what is wrong with a configuration of maintenance-controller, all at once, each with its profile, state, chain and instance; and
warn of what is ignored without a word there, can never happen, or keeps you from going back. No worker is asked. The file is standard
input with "-".

A worker does not take a file with a problem: the last one that was right stays in force. Then the exit code is 2; warnings alone
leave it 0.

${NAME} is a variable of the environment of this command, as in a worker it is one of the worker's: one that is unset or empty, without
a default, is a problem there and here. With --allow-unset it is a warning, for where the worker's secrets are not.`,
		Example: `  drydock profile lint maintenance.yaml
  drydock profile lint --allow-unset maintenance.yaml
  drydock profile lint - -o json < maintenance.yaml`,
		Args: invocation.One("FILE", "file", func(string) error { return nil }),
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args[0]) },
	}
	o.output.Register(cmd)
	cmd.Flags().BoolVar(&o.allowUnset, "allow-unset", false, "only warn of variables without a value")
	return cmd
}

func (o *lintOptions) run(path string) error {
	text, err := ReadFile(o.app, path)
	if err != nil {
		return err
	}
	e := Environment(o.app)
	e.AllowUnset = o.allowUnset
	found := profile.Lint(text, e)
	if path == "-" {
		path = "standard input"
	}
	return cmp.Or(o.output.Write(o.app.Stdout, found, views.ProfileLint(path, found)), exit.Unless(len(found.Problems) == 0, exit.Usage))
}
