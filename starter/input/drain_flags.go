package input

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"drydock/rules/spec"
)

// drainFlags say which pods have to leave and how.
type drainFlags struct {
	drainMode          string
	podSelector        string
	evictionFilters    []string
	includeNamespaces  []string
	excludeNamespaces  []string
	force              bool
	deleteData         bool
	gracePeriod        int64
	via                string
	protectedFor       string
	onNodeNotReady     string
	waitForVolumes     bool
	escalation         []string
	waitForPods        string
	waitForPodsTimeout string
}

func (s *drainFlags) register(f *pflag.FlagSet) {
	f.StringVar(&s.drainMode, "drain-mode", "", "evict, wait (until the node empties by itself), external (until \"drained\" is said) or none (default evict)")
	f.StringVar(&s.podSelector, "pod-selector", "", "label selector of the pods to drain (default all)")
	f.StringArrayVar(&s.evictionFilters, "eviction-filter", nil, "drain only pods that request a resource whose name matches this regular expression (repeatable)")
	f.StringSliceVar(&s.includeNamespaces, "include-namespace", nil, "drain the pods of this namespace only (repeatable, default all)")
	f.StringSliceVar(&s.excludeNamespaces, "exclude-namespace", nil, "leave the pods of this namespace on the node (repeatable)")
	f.BoolVar(&s.force, "force", false, "consent to losing pods that no controller re-creates")
	f.BoolVar(&s.deleteData, "delete-emptydir-data", false, "consent to losing the data in emptyDir volumes")
	f.Int64Var(&s.gracePeriod, "grace-period", 0, "seconds that a pod gets to terminate (default the pod's own)")
	f.StringVar(&s.via, "via", "", "how pods are asked to leave: eviction, or evictionRequest (alpha API, falls back to eviction) (default eviction)")
	f.StringVar(&s.protectedFor, "protected-for", "", "how long after the cordon pods that ask not to be disrupted are left alone; 0s ignores their wish (default 30m)")
	f.StringVar(&s.onNodeNotReady, "on-node-not-ready", "", "when the kubelet does not answer: wait for terminating pods, or ignore them once their grace period is over (default wait)")
	f.BoolVar(&s.waitForVolumes, "wait-for-volumes", false, "wait until the volumes of the pods are detached from the node")
	f.StringArrayVar(&s.escalation, "escalation", nil, "what to do when the node does not empty: TIME=RUNG, counted from the cordon, RUNG being "+strings.Join(spec.Rungs, ", ")+"; none waits for ever (repeatable, default 1h=giveBack)")
	f.StringVar(&s.waitForPods, "wait-for-pods", "", "label selector of pods that have to complete before the drain")
	f.StringVar(&s.waitForPodsTimeout, "wait-for-pods-timeout", "", "how long to wait for them before going on, such as 30m; 0s is for ever")
}

func (s *drainFlags) setters() map[string]setter {
	return map[string]setter{
		"drain-mode":           set("drain.mode", s.drainMode),
		"pod-selector":         set("drain.podSelector", s.podSelector),
		"eviction-filter":      set("drain.podEvictionFilters", evictionFilters(s.evictionFilters)),
		"include-namespace":    set("drain.namespaces.include", s.includeNamespaces),
		"exclude-namespace":    set("drain.namespaces.exclude", s.excludeNamespaces),
		"force":                set("drain.force", s.force),
		"delete-emptydir-data": set("drain.deleteEmptyDir", s.deleteData),
		"grace-period":         set("drain.gracePeriodSeconds", s.gracePeriod),
		"via":                  set("drain.via", s.via),
		"protected-for":        set("drain.protectedFor", s.protectedFor),
		"on-node-not-ready":    set("drain.onNodeNotReady", s.onNodeNotReady),
		"wait-for-volumes":     set("drain.waitForVolumeDetach", s.waitForVolumes),
		"escalation": func(input map[string]any) error {
			rungs, err := escalation(s.escalation)
			if err != nil {
				return err
			}
			return SetField(input, "drain.escalation", rungs)
		},
		"wait-for-pods":         set("waitForPodCompletion.podSelector", s.waitForPods),
		"wait-for-pods-timeout": set("waitForPodCompletion.timeout", s.waitForPodsTimeout),
	}
}

func evictionFilters(patterns []string) []any {
	filters := make([]any, len(patterns))
	for i, p := range patterns {
		filters[i] = map[string]any{"byResourceNameRegex": p}
	}
	return filters
}

func escalation(rungs []string) ([]any, error) {
	if len(rungs) == 1 && rungs[0] == "none" {
		return []any{}, nil
	}
	result := make([]any, len(rungs))
	for i, rung := range rungs {
		after, do, ok := strings.Cut(rung, "=")
		if !ok {
			return nil, fmt.Errorf("%q: want TIME=RUNG such as 1h=giveBack, or none", rung)
		}
		result[i] = map[string]any{"after": after, "do": do}
	}
	return result, nil
}
