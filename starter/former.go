package starter

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"drydock.dev/drydock/starter/invocation"
)

// former are names that commands had in v0.1, each with the one of today. They work until v0.3.
var former = map[string]string{
	"started": "work begin", "failed": "fail",
	"drained": "drain done", "retry-now": "drain retry", "skip-pod": "drain skip",
	"hook-done": "hook done", "skip-hook": "hook skip",
	"validated": "validation pass", "validation-failed": "validation fail",
}

// habits are names that other programs have for what Drydock does, each with what to type here. PROGRAM stands for this one.
var habits = map[string]string{
	"cordon":   `"PROGRAM start NODE" cordons a node, drains it and holds it`,
	"uncordon": `"PROGRAM done NODE" puts a node back, and "PROGRAM cancel NODE" undoes a maintenance`,
	"nodes":    `"PROGRAM list" lists the nodes in maintenance, and "PROGRAM status NODE" shows one`,
	"node":     `"PROGRAM list" lists the nodes in maintenance, and "PROGRAM status NODE" shows one`,
	"get":      `"PROGRAM list" lists maintenances, "PROGRAM plan list" plans and "PROGRAM health list" health checks`,
	"describe": `"PROGRAM status NODE" shows a maintenance, "PROGRAM plan status NAME" a plan and "PROGRAM health status NAME" a health check`,
	"pause":    `"PROGRAM plan pause NAME" pauses a plan, "PROGRAM health pause NAME" a health check, and "PROGRAM freeze" the whole cluster`,
	"resume":   `"PROGRAM plan resume NAME" resumes a plan, "PROGRAM health resume NAME" a health check, and "PROGRAM thaw" takes a freeze back`,
	"unfreeze": `"PROGRAM thaw" takes a freeze back`,
	"finish":   `"PROGRAM done NODE" says that the work on a node is done, and puts it back`,
	"stop":     stops,
	"delete":   stops,
	"logs":     `"PROGRAM history NODE" shows what happened to a node, and "PROGRAM watch NODE" follows what goes on`,
}

// stops is what ends what runs.
const stops = `"PROGRAM cancel NODE" ends a maintenance, "PROGRAM plan cancel NAME" a plan, and "PROGRAM health remove NAME" a health check`

// The annotations of a command that does nothing itself: what was meant, or which command has taken its place.
const meant, inItsPlace = "drydock/meant", "drydock/in-its-place"

// addFormer adds commands for the names that are no commands, so that flags before them do not hide them. No help lists them.
func addFormer(root *cobra.Command) {
	add := func(name, kind, text, help string) {
		root.AddCommand(&cobra.Command{
			Use: name, Short: "No command of its own", Long: help, Hidden: true, DisableFlagParsing: true,
			Annotations: map[string]string{kind: text}, Run: func(*cobra.Command, []string) {},
		})
	}
	for name, now := range former {
		add(name, inItsPlace, now, fmt.Sprintf("It is now \"%s %s\".", root.DisplayName(), now))
	}
	for name, says := range habits {
		says = strings.ReplaceAll(says, "PROGRAM", root.DisplayName())
		add(name, meant, says, says+".")
	}
}

// todays is a command line with the name of today in place of a former one, which a line on stderr names. What is typed out of habit is an error.
func todays(root *cobra.Command, args []string, stderr io.Writer) ([]string, error) {
	cmd, rest, err := root.Find(args)
	if err != nil {
		return args, nil //nolint:nilerr // the command line's own error says what is wrong with it
	}
	if says := cmd.Annotations[meant]; says != "" {
		return nil, fmt.Errorf("unknown command %q: %s", cmd.Name(), says)
	}
	if now := cmd.Annotations[inItsPlace]; now != "" {
		fmt.Fprintf(stderr, "Note: \"%s %s\" is now \"%s %s\"; the old name works until v0.3.\n", root.DisplayName(), cmd.Name(), root.DisplayName(), now)
		return slices.Concat(strings.Fields(now), rest), nil
	}
	return args, nil
}

// takeFormerFlags takes --reason where a command has --comment for it, and --profile for Temporal's, until v0.3.
func takeFormerFlags(c *cobra.Command, a *invocation.App) {
	renamed, noted := map[string]string{"profile": "temporal-profile"}, map[string]bool{}
	if comment := c.Flags().Lookup("comment"); comment != nil && c.Flags().Lookup("reason") == nil {
		renamed["reason"] = "comment"
		comment.Value = &bothTexts{Value: comment.Value, former: noted}
	}
	c.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		now, ok := renamed[name]
		if !ok {
			return pflag.NormalizedName(name)
		}
		if !noted[name] {
			noted[name] = true
			fmt.Fprintf(a.Stderr, "Note: --%s is now --%s; the old name works until v0.3.\n", name, now)
		}
		return pflag.NormalizedName(now)
	})
}

// bothTexts keeps what --reason says and what --comment does: "failed" took both.
type bothTexts struct {
	pflag.Value
	former map[string]bool // those of the former flags that were given
	given  bool
}

func (b *bothTexts) Set(text string) error {
	if b.given && b.former["reason"] {
		text = b.String() + "; " + text
	}
	b.given = true
	return b.Value.Set(text)
}
