package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

func namesOf(stages []plan.Stage) []string {
	return terminal.NamesOf(stages, func(s plan.Stage) string { return string(s) })
}

// stageOf reads one of some stages, however its letters are written.
func stageOf(text string, of []plan.Stage) (plan.Stage, error) {
	for _, s := range of {
		if strings.EqualFold(text, string(s)) {
			return s, nil
		}
	}
	return "", fmt.Errorf("%q: want one of %s", text, strings.Join(namesOf(of), ", "))
}

func tiers(texts []string) (any, error) {
	all := make([]any, len(texts))
	for i, text := range texts {
		entry, err := tierOf(text)
		if err != nil {
			return nil, err
		}
		all[i] = entry
	}
	return all, nil
}

// tierOf reads [TYPE:]PRIORITY[:SELECTOR].
func tierOf(text string) (map[string]any, error) {
	entry := map[string]any{"podType": drainplan.Default}
	rest := text
	for _, t := range drainplan.Types() {
		if after, ok := strings.CutPrefix(rest, string(t)+":"); ok {
			entry["podType"], rest = t, after
			break
		}
	}
	priority, selector, _ := strings.Cut(rest, ":")
	n, err := strconv.ParseInt(priority, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("%q: want [TYPE:]PRIORITY[:SELECTOR] such as DaemonSet:1000 or 2000:app=db, TYPE being Default, DaemonSet or Static", text)
	}
	entry["podPriority"] = n
	if selector != "" {
		entry["podSelector"] = selector
	}
	return entry, nil
}

func newSetSelector(a *invocation.App) *cobra.Command {
	o := &messageOptions{app: a}
	var chosen input.FieldFlags
	var nodes plan.Selection
	cmd := &cobra.Command{
		Use:   "set-selector NAME (NODE... | --selector S | --all)",
		Short: "Have a plan of strategy all-at-once choose its nodes otherwise",
		Long: `Have a plan of strategy all-at-once choose its nodes otherwise from now on. What is given takes the place of all that chose
them before, --exclude included. Nodes that come to match join; those that the plan holds stay until it is completed.`,
		Example: `  drydock plan set-selector firmware --selector rack=r12 --exclude worker-07`,
		Args:    func(cmd *cobra.Command, args []string) error { return onePlan(cmd, args[:min(1, len(args))]) },
		RunE: a.Connected(func(ctx context.Context, c *invocation.Connection, args []string) error {
			return o.run(ctx, c, args[0], api.MsgSetSelector, api.SetSelector{Selection: nodes})
		}, func(args []string) (err error) {
			nodes, err = selectionOf(&chosen, args[1:])
			return err
		}),
	}
	chosen.Register(cmd, choosing(), map[string]input.Form{"selector": forms["selector"]})
	return o.register(cmd)
}

// selectionOf are the nodes that the command line alone chooses.
func selectionOf(chosen *input.FieldFlags, names []string) (nodes plan.Selection, err error) {
	fields := map[string]any{}
	if err := chosen.Put(fields); err != nil {
		return nodes, err
	}
	if err := putNodes(chosen, fields, nil, names); err != nil {
		return nodes, err
	}
	encoded, err := json.Marshal(fields)
	if err == nil {
		err = json.Unmarshal(encoded, &nodes)
	}
	if err = cmp.Or(err, nodes.Check()); err != nil {
		return nodes, exit.UsageError("%w", err)
	}
	return nodes, nil
}
