package input

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"drydock/rules/period"
	"drydock/starter/invocation"
)

// aboutFlags say who asks for a maintenance and why, and who is told.
type aboutFlags struct {
	requestor            string
	additionalRequestors []string
	reason               string
	ticket               string
	kind                 string
	owner                string
	notify               []string
}

func (s *aboutFlags) register(f *pflag.FlagSet) {
	f.StringVarP(&s.requestor, "requestor", "r", "", "who asks; node and requestor are the identity of a maintenance (env "+invocation.EnvRequestor+", default your user name)")
	f.StringSliceVar(&s.additionalRequestors, "additional-requestor", nil, "somebody who shares the maintenance; the node is released when all are done (repeatable)")
	f.StringVar(&s.reason, "reason", "", "why, shown everywhere")
	f.StringVar(&s.ticket, "ticket", "", "ticket of the change, shown everywhere")
	f.StringVar(&s.kind, "type", "", "planned or unplanned (default planned)")
	f.StringVar(&s.owner, "owner", "", "who answers for the node or the work on it, shown everywhere")
	f.StringSliceVar(&s.notify, "notify", nil, "channel of the worker's configuration to tell, none for nobody (repeatable, default the worker's default channels)")
}

func (s *aboutFlags) setters() map[string]setter {
	return map[string]setter{
		"requestor":            set("requestor", s.requestor),
		"additional-requestor": set("additionalRequestors", s.additionalRequestors),
		"reason":               set("reason", s.reason),
		"ticket":               set("ticket", s.ticket),
		"type":                 set("type", s.kind),
		"owner":                set("owner", s.owner),
		"notify":               set("notify", slices.DeleteFunc(append([]string{}, s.notify...), func(n string) bool { return n == "none" })),
	}
}

// courseFlags say when a maintenance goes on and what holds it up.
type courseFlags struct {
	priority       int
	noCordon       bool
	preflight      string
	readyTimeout   string
	onReadyTimeout string
	onNodeReplaced string
	notBefore      string
	windows        windowFlags
	approval       bool
	sla            string
	hooks          []string
	work           string
}

func (s *courseFlags) register(f *pflag.FlagSet) {
	f.IntVar(&s.priority, "priority", 0, "rank among those that wait for a slot: higher goes first")
	f.BoolVar(&s.noCordon, "no-cordon", false, "do not mark the node unschedulable")
	f.StringVar(&s.preflight, "preflight", "", "before a slot is asked for, look at what would stop the drain: off, wait (until nothing would) or fail (default off)")
	f.StringVar(&s.readyTimeout, "ready-timeout", "", "how long you may hold the node, such as 4h or 2d; 0s is for ever (default 1h)")
	f.StringVar(&s.onReadyTimeout, "on-ready-timeout", "", "what follows: fail (the node stays out) or release (default fail)")
	f.StringVar(&s.onNodeReplaced, "on-node-replaced", "", "when the node is re-created while you hold it: adopt or end (default adopt)")
	f.StringVar(&s.notBefore, "not-before", "", "announce the maintenance, and ask for a slot at this time (RFC 3339) or after this long, such as 48h or 2d")
	s.windows.register(f)
	f.BoolVar(&s.approval, "approval", false, "wait for \"approve\" before anything else")
	f.StringVar(&s.sla, "sla", "", "when the workloads' time to leave is over: TIME, or TIME=RUNG, counted from the cordon")
	f.StringVar(&s.work, "work", "", "have the worker do this work of its configuration once the node is Ready, and be done or failed by its result")
	f.StringArrayVar(&s.hooks, "hook", nil, "call a hook of the worker's configuration: WHEN=NAME, WHEN being beforeCordon, afterDrain or beforeRelease (repeatable)")
}

func (s *courseFlags) setters() map[string]setter {
	all := s.windows.setters()
	maps.Copy(all, map[string]setter{
		"priority":         set("priority", s.priority),
		"no-cordon":        set("cordon", !s.noCordon),
		"preflight":        set("preflight", s.preflight),
		"ready-timeout":    set("readyTimeout", s.readyTimeout),
		"on-ready-timeout": set("onReadyTimeout", s.onReadyTimeout),
		"on-node-replaced": set("onNodeReplaced", s.onNodeReplaced),
		"not-before":       s.setNotBefore,
		"approval":         set("approval", s.approval),
		"sla":              s.setSLA,
		"hook":             s.setHooks,
		"work":             set("work", s.work),
	})
	return all
}

func (s *courseFlags) setNotBefore(input map[string]any) error {
	at, err := NotBefore(s.notBefore, time.Now())
	if err != nil {
		return err
	}
	return SetField(input, "notBefore", at.Format(time.RFC3339))
}

// NotBefore reads a time, or how long from now.
func NotBefore(text string, now time.Time) (time.Time, error) {
	if notice, err := period.ParseDuration(text); err == nil {
		return now.UTC().Add(notice.Std()).Truncate(time.Second), nil
	}
	if past, err := time.ParseDuration(text); err == nil && past < 0 {
		return time.Time{}, fmt.Errorf("%s is over already", text)
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is neither a time in RFC 3339, YYYY-MM-DDThh:mm:ssZ, nor a duration like 48h or 2d", text)
	}
	return at, nil
}

func (s *courseFlags) setSLA(input map[string]any) error {
	after, do, _ := strings.Cut(s.sla, "=")
	sla := map[string]any{"after": after}
	if do != "" {
		sla["do"] = do
	}
	return SetField(input, "sla", sla)
}

func (s *courseFlags) setHooks(input map[string]any) error {
	named := map[string][]string{}
	for _, hook := range s.hooks {
		when, name, ok := strings.Cut(hook, "=")
		if !ok || !slices.Contains([]string{"beforeCordon", "afterDrain", "beforeRelease"}, when) {
			return fmt.Errorf("%q is not WHEN=NAME, WHEN being beforeCordon, afterDrain or beforeRelease, such as beforeCordon=silence-alerts", hook)
		}
		named[when] = append(named[when], name)
	}
	return SetField(input, "hooks", named)
}
