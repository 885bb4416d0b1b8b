package input

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/invocation"
)

// forms are how flags of a maintenance are written where that is not how their fields are.
var forms = map[string]Form{
	"requestor": {
		Shorthand: "r",
		Usage:     "who asks; node and requestor are the identity of a maintenance (env " + invocation.EnvRequestor + ", default your user name)",
	},
	"no-cordon": {Usage: "do not mark the node unschedulable", Read: not},
	"not-before": {
		Usage: "announce the maintenance, and ask for a slot at this time (RFC 3339) or after this long, such as 48h or 2d",
		Read:  notBefore,
	},
	"window": {
		Usage: "go only while this window of the worker's configuration is open, with several while all are, none for none (repeatable); see \"drydock windows\"",
		Read:  names,
	},
	"notify":         {Usage: "channel of the worker's configuration that is sent what happens, none for none (repeatable, default the worker's default channels)", Read: names},
	"ignore-windows": {Usage: "go at any time, for this reason, if the policy lets it"},
	"sla":            {Usage: "the time in which the node is to be empty, counted from the cordon: TIME, or TIME=RUNG, the rung that is taken then", Read: sla},
	"hook": {
		Usage: "call a hook of the worker's configuration: WHEN=NAME, WHEN being beforeCordon, afterDrain or beforeRelease (repeatable)",
		Read:  hooks, Repeats: true,
	},
	"signal": {
		Usage: "WORKFLOW:NAME, a workflow of the namespace that is sent a signal of this name when the node is Ready, when it is not any more, and at the end",
		Read:  reportTo,
	},
	"eviction-filter": {
		Usage: "drain only pods that request a resource whose name matches this regular expression (repeatable)", Read: evictionFilters, Repeats: true,
	},
	"escalation": {
		Usage: "what to do when the node does not empty: TIME=RUNG, counted from the cordon, RUNG being " + strings.Join(spec.Rungs, ", ") +
			"; none waits for ever (repeatable, default 1h=giveBack)",
		Read: escalation, Repeats: true,
	},
}

func not(texts []string) (any, error) {
	set, err := strconv.ParseBool(texts[0])
	if err != nil {
		return nil, fmt.Errorf("%q: want true or false", texts[0])
	}
	return !set, nil
}

// names are those that were given, "none" for an empty list.
func names(texts []string) (any, error) {
	return slices.DeleteFunc(append([]string{}, texts...), func(name string) bool { return name == "none" }), nil
}

func notBefore(texts []string) (any, error) {
	at, err := NotBefore(texts[0], time.Now())
	return at.Format(time.RFC3339), err
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

func sla(texts []string) (any, error) {
	after, do, _ := strings.Cut(texts[0], "=")
	sla := map[string]any{"after": after}
	if do != "" {
		sla["do"] = do
	}
	return sla, nil
}

func hooks(texts []string) (any, error) {
	named := map[string]any{}
	for _, hook := range texts {
		when, name, ok := strings.Cut(hook, "=")
		if !ok || !slices.Contains([]string{"beforeCordon", "afterDrain", "beforeRelease"}, when) {
			return nil, fmt.Errorf("%q is not WHEN=NAME, WHEN being beforeCordon, afterDrain or beforeRelease, such as beforeCordon=silence-alerts", hook)
		}
		before, _ := named[when].([]string)
		named[when] = append(before, name)
	}
	return named, nil
}

func reportTo(texts []string) (any, error) {
	to, err := ReportTo(texts[0])
	return map[string]any{"workflow": to.Workflow, "signal": to.Signal}, err
}

// ReportTo reads WORKFLOW:NAME. What stands before the last colon is the workflow: an ID may have colons.
func ReportTo(text string) (to spec.ReportTo, err error) {
	at := strings.LastIndex(text, ":")
	if at < 0 {
		return to, fmt.Errorf("%q is not WORKFLOW:NAME, a workflow ID and the name of a signal", text)
	}
	to = spec.ReportTo{Workflow: text[:at], Signal: text[at+1:]}
	return to, api.CheckReportTo(to)
}

func evictionFilters(patterns []string) (any, error) {
	filters := make([]any, len(patterns))
	for i, p := range patterns {
		filters[i] = map[string]any{"byResourceNameRegex": p}
	}
	return filters, nil
}

func escalation(rungs []string) (any, error) {
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
