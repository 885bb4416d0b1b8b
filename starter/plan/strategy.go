package plan

import (
	"fmt"
	"slices"

	"drydock.dev/drydock/docs/schemas"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
)

// kinds are the strategies by their flag.
var kinds = map[string]string{"rolling": plan.Rolling, "all-at-once": plan.AllAtOnce, plan.AllAtOnce: plan.AllAtOnce}

// forms are how flags of a plan are written where that is not how their fields are.
var forms = map[string]input.Form{
	"strategy": {
		Words: []string{"rolling", "all-at-once"},
		Usage: "rolling (one node after the other) or all-at-once (all nodes through stages together, as KEP-4212 has it) (default rolling)",
		Read:  kind,
	},
	"stage":        {Read: firstStage},
	"max-parallel": {Read: amount},
	"max-failures": {Read: amount},
	"tier": {
		Field: "drainPlan.tiers",
		Usage: "with all-at-once: pods that leave before others, [TYPE:]PRIORITY[:SELECTOR], such as DaemonSet:1000 or 2000:app=db; the standard tiers are added (repeatable)",
		Read:  tiers, Repeats: true,
	},
	"selector": {Shorthand: "l"},
}

// choosing are the fields by which a plan chooses its nodes.
func choosing() []schemas.Field {
	return slices.DeleteFunc(input.WithFlags("plan"), func(f schemas.Field) bool {
		return !slices.Contains([]string{"selector", "all", "exclude"}, f.Path)
	})
}

func kind(texts []string) (any, error) {
	given := texts[0]
	if kind, ok := kinds[given]; ok {
		return kind, nil
	}
	return nil, fmt.Errorf("%q: want rolling or all-at-once", given)
}

func firstStage(texts []string) (any, error) { return stageOf(texts[0], plan.FirstStages) }

func amount(texts []string) (any, error) { return schedule.ParseAmount(texts[0]) }

// checkCanary refuses what is of a canary that is none.
func checkCanary(fields map[string]any) error {
	strategy, _ := fields["strategy"].(map[string]any)
	if canary, ok := strategy["canary"].(map[string]any); ok && canary["nodes"] == nil {
		return exit.UsageError("strategy.canary.nodes: required: how many nodes go first (--canary)")
	}
	return nil
}
