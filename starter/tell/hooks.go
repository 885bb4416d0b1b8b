package tell

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/validation"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

func newHookDone(a *invocation.App) *cobra.Command {
	t := &messageCommand{app: a}
	failed := false
	cmd := &cobra.Command{
		Use:   "hook-done NODE HOOK",
		Short: "Mark a hook that waits for a signal done, or failed",
		Long: `Say that a hook of kind signal, which a maintenance waits for, is done or has failed. Whether the maintenance goes on
after one that failed is a matter of the worker's configuration (hooks.NAME.onFailure).

Work of kind signal is told the same, by its name: done brings the node back, --failed makes it RequestorFailed.`,
		Example: `  drydock hook-done worker-01 storage-moved
  drydock hook-done worker-01 storage-moved --failed --comment "rebuild runs"`,
		Args: nodeAndHook,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(client.Found) invocation.Message {
				return hookMessage(client.HookDone(args[1], failed), a.Name, args[1], map[bool]string{true: "failed", false: "done"}[failed])
			})
		},
	}
	cmd.Flags().BoolVar(&failed, "failed", false, "the hook has failed")
	t.register(cmd, invocation.OfMaintenance)
	return cmd
}

func newSkipHook(a *invocation.App) *cobra.Command {
	t := &messageCommand{app: a}
	cmd := &cobra.Command{
		Use:   "skip-hook NODE HOOK",
		Short: "Go on without a hook that a maintenance waits for",
		Long: `Go on without a hook that a maintenance waits for. What it has begun is not undone, and its closing is called all the
same. Who skipped it and why is on record.`,
		Example: `  drydock skip-hook worker-01 silence-alerts --comment "Alertmanager is down, on-call knows"`,
		Args:    nodeAndHook,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args[0], func(client.Found) invocation.Message {
				return hookMessage(client.SkipHook(args[1]), a.Name, args[1], "skipped")
			})
		},
	}
	t.register(cmd, invocation.OfMaintenance)
	return cmd
}

func nodeAndHook(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 2:
		return validation.Name(args[1])
	case 0:
		return missing(cmd, "NODE and HOOK")
	case 1:
		return missing(cmd, "HOOK")
	default:
		return fmt.Errorf("one hook of one node at a time, not %s", strings.Join(args, ", "))
	}
}

// missing says which arguments a command lacks, and shows how it is written.
func missing(cmd *cobra.Command, what string) error {
	use, _, _ := strings.Cut(cmd.Use, " --")
	return fmt.Errorf("missing %s: %s", what, use)
}

func hookMessage(m client.Message, program, hook, became string) invocation.Message {
	return invocation.Message{Message: m, Words: hookWords{program: program, hook: hook, became: became}}
}

type hookWords struct {
	invocation.Plain
	program string
	hook    string
	became  string
}

func (w hookWords) Next(s *api.Status) string {
	if len(s.OpenHooks) == 0 {
		return fmt.Sprintf(`"%s status %s" says what it waits for.`, w.program, s.Spec.Node)
	}
	return fmt.Sprintf("It waits for %s.", terminal.OrList(s.OpenHooks))
}

func (w hookWords) Said(now *api.Status) string {
	what := "hook"
	if len(now.Work) > 0 && now.Work[len(now.Work)-1].Name == w.hook {
		what = "work"
	}
	return fmt.Sprintf("%s %s %s; now %s", what, w.hook, w.became, now.Phase)
}
