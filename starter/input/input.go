package input

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"drydock/client"
	"drydock/rules/spec"
	"drydock/starter/exit"
	"drydock/starter/invocation"
)

// specFlags are the flags that describe a maintenance: one for each field of its input but the node and the plan of
// the drain, which only a file has room for.
type Flags struct {
	file                 string
	requestor            string
	additionalRequestors []string
	reason, ticket, kind string
	priority             int
	noCordon             bool
	waitForPods          string
	waitForPodsTimeout   string
	drainMode            string
	podSelector          string
	evictionFilters      []string
	force, deleteData    bool
	gracePeriod          int64
	via                  string
	protectedFor         string
	onNodeNotReady       string
	waitForVolumes       bool
	escalation           []string
	preflight            string
	readyTimeout         string
	onReadyTimeout       string
	onNodeReplaced       string
	owner, notBefore     string
	approval             bool
	sla                  string
	hooks                []string
	notify               []string
}

func (s *Flags) Register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&s.file, "file", "f", "", "YAML or JSON file with the maintenance's input, - for standard input; flags go over it")
	f.StringVarP(&s.requestor, "requestor", "r", "", "who asks; node and requestor are the identity of a maintenance (env "+invocation.EnvRequestor+", default your user name)")
	f.StringSliceVar(&s.additionalRequestors, "additional-requestor", nil, "somebody who shares the maintenance; the node is released when all are done (repeatable)")
	f.StringVar(&s.reason, "reason", "", "why, shown everywhere")
	f.StringVar(&s.ticket, "ticket", "", "ticket of the change, shown everywhere")
	f.StringVar(&s.kind, "type", "", "planned or unplanned (default planned)")
	f.StringVar(&s.owner, "owner", "", "who answers for the node or the work on it, shown everywhere")
	f.BoolVar(&s.approval, "approval", false, "wait for \"approve\" before anything else")
	f.StringVar(&s.notBefore, "not-before", "", "announce the maintenance, and ask for a slot at this time (RFC 3339) or after this long, such as 48h")
	f.StringVar(&s.sla, "sla", "", "when the workloads' time to leave is over: TIME, or TIME=RUNG, counted from the cordon")
	f.StringArrayVar(&s.hooks, "hook", nil, "call a hook of the worker's configuration: WHEN=NAME, WHEN being beforeCordon, afterDrain or beforeRelease (repeatable)")
	f.StringSliceVar(&s.notify, "notify", nil, "channel of the worker's configuration to tell, none for nobody (repeatable, default the worker's default channels)")
	f.IntVar(&s.priority, "priority", 0, "rank among those that wait for a slot: higher goes first")
	f.BoolVar(&s.noCordon, "no-cordon", false, "do not mark the node unschedulable")
	f.StringVar(&s.waitForPods, "wait-for-pods", "", "label selector of pods that have to complete before the drain")
	f.StringVar(&s.waitForPodsTimeout, "wait-for-pods-timeout", "", "how long to wait for them before going on, such as 30m; 0s is for ever")
	f.StringVar(&s.drainMode, "drain-mode", "", "evict, wait (until the node empties by itself), external (until \"drained\" is said) or none (default evict)")
	f.StringVar(&s.podSelector, "pod-selector", "", "label selector of the pods to drain (default all)")
	f.StringArrayVar(&s.evictionFilters, "eviction-filter", nil, "drain only pods that request a resource whose name matches this regular expression (repeatable)")
	f.BoolVar(&s.force, "force", false, "consent to losing pods that no controller re-creates")
	f.BoolVar(&s.deleteData, "delete-emptydir-data", false, "consent to losing the data in emptyDir volumes")
	f.Int64Var(&s.gracePeriod, "grace-period", 0, "seconds that a pod gets to terminate (default the pod's own)")
	f.StringVar(&s.via, "via", "", "how pods are asked to leave: eviction, or evictionRequest (alpha API, falls back to eviction) (default eviction)")
	f.StringVar(&s.protectedFor, "protected-for", "", "how long after the cordon pods that ask not to be disrupted are left alone; 0s ignores their wish (default 30m)")
	f.StringVar(&s.onNodeNotReady, "on-node-not-ready", "", "when the kubelet does not answer: wait for terminating pods, or ignore them once their grace period is over (default wait)")
	f.BoolVar(&s.waitForVolumes, "wait-for-volumes", false, "wait until the volumes of the pods are detached from the node")
	f.StringArrayVar(&s.escalation, "escalation", nil, "what to do when the node does not empty: TIME=RUNG, counted from the cordon, RUNG being "+strings.Join(spec.Rungs, ", ")+"; none waits for ever (repeatable, default 1h=giveBack)")
	f.StringVar(&s.preflight, "preflight", "", "before a slot is asked for, look at what would stop the drain: off, wait (until nothing would) or fail (default off)")
	f.StringVar(&s.readyTimeout, "ready-timeout", "", "how long you may hold the node, such as 4h; 0s is for ever (default 1h)")
	f.StringVar(&s.onReadyTimeout, "on-ready-timeout", "", "what follows: fail (the node stays out) or release (default fail)")
	f.StringVar(&s.onNodeReplaced, "on-node-replaced", "", "when the node is re-created while you hold it: adopt or end (default adopt)")
}

// setters are the flags in the form of the input's fields. A field is set only if its flag was given, so that what
// is absent stays absent and gets the worker's default.
func (s *Flags) setters() map[string]func(map[string]any) error {
	set := func(path string, value any) func(map[string]any) error {
		return func(input map[string]any) error { return setField(input, path, value) }
	}
	return map[string]func(map[string]any) error{
		"requestor":             set("requestor", s.requestor),
		"additional-requestor":  set("additionalRequestors", s.additionalRequestors),
		"reason":                set("reason", s.reason),
		"ticket":                set("ticket", s.ticket),
		"type":                  set("type", s.kind),
		"priority":              set("priority", s.priority),
		"no-cordon":             set("cordon", !s.noCordon),
		"wait-for-pods":         set("waitForPodCompletion.podSelector", s.waitForPods),
		"wait-for-pods-timeout": set("waitForPodCompletion.timeout", s.waitForPodsTimeout),
		"drain-mode":            set("drain.mode", s.drainMode),
		"pod-selector":          set("drain.podSelector", s.podSelector),
		"eviction-filter":       set("drain.podEvictionFilters", evictionFilters(s.evictionFilters)),
		"force":                 set("drain.force", s.force),
		"delete-emptydir-data":  set("drain.deleteEmptyDir", s.deleteData),
		"grace-period":          set("drain.gracePeriodSeconds", s.gracePeriod),
		"via":                   set("drain.via", s.via),
		"protected-for":         set("drain.protectedFor", s.protectedFor),
		"on-node-not-ready":     set("drain.onNodeNotReady", s.onNodeNotReady),
		"wait-for-volumes":      set("drain.waitForVolumeDetach", s.waitForVolumes),
		"preflight":             set("preflight", s.preflight),
		"ready-timeout":         set("readyTimeout", s.readyTimeout),
		"on-ready-timeout":      set("onReadyTimeout", s.onReadyTimeout),
		"on-node-replaced":      set("onNodeReplaced", s.onNodeReplaced),
		"owner":                 set("owner", s.owner),
		"approval":              set("approval", s.approval),
		"notify":                set("notify", slices.DeleteFunc(append([]string{}, s.notify...), func(n string) bool { return n == "none" })),
		"not-before":            s.setNotBefore,
		"sla":                   s.setSLA,
		"hook":                  s.setHooks,
		"escalation": func(input map[string]any) error {
			rungs, err := escalation(s.escalation)
			if err != nil {
				return err
			}
			return setField(input, "drain.escalation", rungs)
		},
	}
}

// setNotBefore takes a time, or how long from now.
func (s *Flags) setNotBefore(input map[string]any) error {
	if notice, err := time.ParseDuration(s.notBefore); err == nil {
		if notice < 0 {
			return fmt.Errorf("%s is over already", s.notBefore)
		}
		return setField(input, "notBefore", time.Now().UTC().Add(notice).Truncate(time.Second).Format(time.RFC3339))
	}
	if _, err := time.Parse(time.RFC3339, s.notBefore); err != nil {
		return fmt.Errorf("%q is neither a time like 2026-03-01T22:00:00Z nor a duration like 48h", s.notBefore)
	}
	return setField(input, "notBefore", s.notBefore)
}

func (s *Flags) setSLA(input map[string]any) error {
	after, do, _ := strings.Cut(s.sla, "=")
	sla := map[string]any{"after": after}
	if do != "" {
		sla["do"] = do
	}
	return setField(input, "sla", sla)
}

func (s *Flags) setHooks(input map[string]any) error {
	named := map[string][]string{}
	for _, hook := range s.hooks {
		when, name, ok := strings.Cut(hook, "=")
		if !ok {
			return fmt.Errorf("%q is not WHEN=NAME, such as beforeCordon=silence-alerts", hook)
		}
		named[when] = append(named[when], name)
	}
	return setField(input, "hooks", named)
}

// Input builds the maintenance's input: the file, the flags over it, and a requestor where neither names one.
func (s *Flags) Input(flags *pflag.FlagSet, env invocation.Environment, stdin io.Reader) (map[string]any, error) {
	input := map[string]any{}
	if s.file != "" {
		var err error
		if input, err = readObject(s.file, stdin); err != nil {
			return nil, err
		}
	}
	if _, inFile := input["requestor"]; !inFile || env.Get(invocation.EnvRequestor) != "" {
		input["requestor"] = env.Requestor()
	}
	setters := s.setters()
	for _, name := range slices.Sorted(maps.Keys(setters)) {
		if flags.Changed(name) {
			if err := setters[name](input); err != nil {
				return nil, exit.UsageError("--%s: %w", name, err)
			}
		}
	}
	// Without a selector the timeout alone would wait for every pod, which nobody has asked for.
	if wait, ok := input["waitForPodCompletion"].(map[string]any); ok && flags.Changed("wait-for-pods-timeout") {
		if _, selected := wait["podSelector"]; !selected {
			return nil, exit.UsageError("--wait-for-pods-timeout: needs --wait-for-pods, which says for which pods to wait")
		}
	}
	return input, nil
}

// forNode is the input for one node, checked as the workflow will check it. The check knows nothing of the worker's
// defaults, which can only fill in what is absent here.
func forNode(input map[string]any, name string) (client.Input, spec.Maintenance, error) {
	own := client.Input(maps.Clone(input))
	if name != "" {
		own["node"] = name
	}
	decoded, err := own.Decode()
	if err != nil {
		return nil, decoded, exit.UsageError("%w", err)
	}
	return own, decoded, nil
}

// NodesOf are the nodes to maintain: those of the arguments, or the one of the file.
func NodesOf(args []string, input map[string]any) ([]string, error) {
	inFile, _ := input["node"].(string)
	switch {
	case len(args) == 0 && inFile == "":
		return nil, exit.UsageError("which node? Name at least one")
	case len(args) == 0:
		return []string{inFile}, nil
	case inFile != "" && !slices.Equal(args, []string{inFile}):
		return nil, exit.UsageError("the file is for node %q: leave the node out of it, or name no other", inFile)
	}
	return Unique(args), nil
}

func Unique(names []string) []string {
	var result []string
	for _, name := range names {
		if !slices.Contains(result, name) {
			result = append(result, name)
		}
	}
	return result
}

// setField sets a field by its path, making the objects on the way.
func setField(input map[string]any, path string, value any) error {
	parent, rest, nested := strings.Cut(path, ".")
	if !nested {
		input[path] = value
		return nil
	}
	if _, ok := input[parent]; !ok {
		input[parent] = map[string]any{}
	}
	object, ok := input[parent].(map[string]any)
	if !ok {
		return fmt.Errorf("%s in the file is not an object", parent)
	}
	return setField(object, rest, value)
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

// readObject reads one YAML or JSON object, refusing duplicate keys, which decoding would drop silently.
func readObject(path string, stdin io.Reader) (map[string]any, error) {
	data, err := readFile(path, stdin)
	if err != nil {
		return nil, exit.UsageError("%w", err)
	}
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, exit.UsageError("%s: not valid YAML or JSON: %w", path, err)
	}
	object := map[string]any{}
	if err := spec.DecodeStrict(asJSON, &object); err != nil {
		return nil, exit.UsageError("%s: %w", path, err)
	}
	return object, nil
}

func readFile(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(path)
}
