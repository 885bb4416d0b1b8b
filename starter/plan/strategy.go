package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"drydock/rules/plan"
	"drydock/rules/schedule"
	"drydock/starter/exit"
	"drydock/starter/input"
)

// strategyFlags are the order and the pace of a plan.
type strategyFlags struct {
	maxParallel, maxFailures               string
	canary                                 int
	canarySoak                             string
	canaryApproval                         bool
	pauseBetween, beginWithin, order       string
	onBlocked, blockedAfter, comeBackAfter string
	tries                                  int
	// kind, stage and tiers are of plans whose nodes go through stages together.
	kind, stage string
	tiers       []string
}

var (
	orders = []string{plan.ByName, plan.ByZone, plan.FewestPods}
	// kinds are the strategies by their flag.
	kinds    = map[string]string{"rolling": plan.Rolling, "all-at-once": plan.AllAtOnce}
	blockeds = []string{plan.WaitBlocked, plan.SkipBlocked, plan.AbortBlocked}
)

func (s *strategyFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.kind, "strategy", "", "rolling (one node after the other) or all-at-once (all nodes through stages together, as KEP-4212 has it) (default rolling)")
	f.StringVar(&s.stage, "stage", "", "with all-at-once: the stage to begin in, "+strings.Join(namesOf(plan.FirstStages), ", ")+" (default Idle)")
	f.StringArrayVar(&s.tiers, "tier", nil, "with all-at-once: pods that leave before others, [TYPE:]PRIORITY[:SELECTOR], such as DaemonSet:1000 or 2000:app=db; the standard tiers are added (repeatable)")
	f.StringVar(&s.maxParallel, "max-parallel", "", "how many nodes to work on at a time, or a percentage of the plan's, rounded up (default 1)")
	f.IntVar(&s.canary, "canary", 0, "how many nodes go first and alone; one of them that fails pauses the plan")
	f.StringVar(&s.canarySoak, "canary-soak", "", "how long to wait after the canary, such as 1h")
	f.BoolVar(&s.canaryApproval, "canary-approval", false, "after the canary, wait for \"plan approve\"")
	f.StringVar(&s.maxFailures, "max-failures", "", "how many nodes may fail, or a percentage of them, before the plan pauses (default 0)")
	f.StringVar(&s.pauseBetween, "pause-between", "", "time between the end of a node and the beginning of the next (default none)")
	f.StringVar(&s.beginWithin, "begin-within", "", "how long after the plan's start nodes are begun, such as 6h; those that run then are finished, and the plan ends (default no end)")
	f.StringVar(&s.order, "order", "", "which nodes go first: "+strings.Join(orders, ", ")+" (default "+plan.ByName+")")
	f.StringVar(&s.onBlocked, "on-blocked", "", "what becomes of a node that does not empty: "+strings.Join(blockeds, ", ")+" (default "+plan.WaitBlocked+")")
	f.StringVar(&s.blockedAfter, "blocked-after", "", "with skip and abort: how long after its cordon a node counts as blocked (default 30m)")
	f.StringVar(&s.comeBackAfter, "come-back-after", "", "with skip: when to come back to a node that was blocked (default 10m)")
	f.IntVar(&s.tries, "tries", 0, "with skip: how often a node is tried before it has failed (default 3)")
	complete(cmd, "strategy", slices.Sorted(maps.Keys(kinds)))
	complete(cmd, "stage", namesOf(plan.FirstStages))
	complete(cmd, "order", orders)
	complete(cmd, "on-blocked", blockeds)
}

func complete(cmd *cobra.Command, flag string, words []string) {
	// It fails only for a flag that does not exist or was registered before.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// put puts the flags that were given into a plan, over what is there.
func (s *strategyFlags) put(flags *pflag.FlagSet, plan map[string]any) error {
	if err := s.putStages(flags, plan); err != nil {
		return err
	}
	for _, f := range []struct {
		flag, field string
		value       any
	}{
		{"canary", "canary.nodes", s.canary}, {"canary-soak", "canary.soak", s.canarySoak}, {"canary-approval", "canary.approval", s.canaryApproval},
		{"pause-between", "pauseBetween", s.pauseBetween}, {"begin-within", "beginWithin", s.beginWithin}, {"order", "order", s.order}, {"on-blocked", "onBlocked", s.onBlocked},
		{"blocked-after", "blockedAfter", s.blockedAfter}, {"come-back-after", "comeBackAfter", s.comeBackAfter}, {"tries", "tries", s.tries},
		{"max-parallel", "maxParallel", s.maxParallel}, {"max-failures", "maxFailures", s.maxFailures},
	} {
		if !flags.Changed(f.flag) {
			continue
		}
		if text, ok := f.value.(string); ok && strings.HasPrefix(f.flag, "max-") {
			amount, err := schedule.ParseAmount(text)
			if err != nil {
				return exit.UsageError("--%s: %w", f.flag, err)
			}
			f.value = amount
		}
		if err := input.SetField(plan, "strategy."+f.field, f.value); err != nil {
			return exit.UsageError("--%s: %w", f.flag, err)
		}
	}
	if strategy, ok := plan["strategy"].(map[string]any); ok {
		if canary, ok := strategy["canary"].(map[string]any); ok && canary["nodes"] == nil {
			return exit.UsageError("--canary-soak and --canary-approval: need --canary, which says how many nodes go first")
		}
	}
	return nil
}
