package starter

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
)

// firstScreen are the commands of "drydock --help"; "drydock help all" lists the others too.
var firstScreen = []string{"start", "done", "cancel", "exec", "rollout", "plan", "status", "list", "preflight", "freeze", "limits", "health"}

// manyFlags is how many flags a command has at least whose help puts them into groups.
const manyFlags = 16

// setHelp has the help show few commands at first, and many flags in groups. It hides what is not to be shown: the program ends after it.
func setHelp(root *cobra.Command) {
	all, usage, show := false, root.UsageFunc(), root.HelpFunc()
	root.SetUsageFunc(func(c *cobra.Command) error { return inGroups(c, usage) })
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if c == root && !all {
			for _, sub := range root.Commands() {
				sub.Hidden = sub.Hidden || !slices.Contains(firstScreen, sub.Name())
			}
			root.PersistentFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = true })
		}
		show(c, args)
	})
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.Use, help.Short = "help [COMMAND | all]", "Help about a command, or about all of them"
	about := help.Run
	help.Run = func(c *cobra.Command, args []string) {
		if all = slices.Equal(args, []string{"all"}); all {
			args, root.Long = nil, root.Long+"\n\n"+exit.CodesHelp
		}
		about(c, args)
	}
}

// inGroups shows the usage of a command, and behind it its flags by the groups of their fields where they are many.
func inGroups(c *cobra.Command, usage func(*cobra.Command) error) error {
	groups, many := map[string]*pflag.FlagSet{}, 0
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if group := input.GroupOf(f); group != "" && !f.Hidden {
			if groups[group] == nil {
				groups[group] = pflag.NewFlagSet(group, pflag.ContinueOnError)
			}
			groups[group].AddFlag(f)
		}
		many++
	})
	hide := func(hidden bool) {
		for _, group := range groups {
			group.VisitAll(func(f *pflag.Flag) { f.Hidden = hidden && many >= manyFlags })
		}
	}
	hide(true)
	err := usage(c)
	hide(false)
	for _, group := range input.Groups {
		if groups[group] != nil && many >= manyFlags {
			fmt.Fprintf(c.OutOrStderr(), "\n%s:\n%s", group, groups[group].FlagUsages())
		}
	}
	return err
}
