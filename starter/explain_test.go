package starter

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	for path, want := range map[string][]string{
		"":                                   {"maintenance", "plan", "The input of a NodeMaintenance"},
		"maintenance":                        {"readyTimeout", "duration", "node", "required"},
		"maintenance.drain.escalation":       {"list of objects", `[{"after":"1h","do":"giveBack"}]`, "--escalation", "docs/reference/drain.md#the-escalation", "after"},
		"maintenance.DRAIN.Escalation[0].do": {"notify, bypassBudget, kill, giveBack, fail"},
		"plan.strategy.onBlocked":            {"wait, skip, abort", "--on-blocked"},
		"plan.maintenance.drain.mode":        {"evict, wait, external, none", "--drain-mode"},
		"limits.groups":                      {"list of objects", "groupBy"},
		"config":                             {"channels", "map of objects", "adminListen", "limits set"},
		"config.channels.slack":              {"posts messages to Slack", "token", "secret"},
		"config.channels.oncall.slack.token": {"secret", "docs/reference/configuration.md#secrets", "file", "env"},
		"config.cluster":                     {"drydock-worker --cluster", "DRYDOCK_CLUSTER"},
		"config.hooks.closing.http.method":   {"GET, HEAD, POST"},
		"config.defaults.drain.mode":         {"evict, wait, external, none"},
	} {
		args := []string{"explain"}
		if path != "" {
			args = append(args, path)
		}
		code, out, said := runHere(t, "drydock", args...)
		for _, w := range want {
			if code != 0 || !strings.Contains(out, w) {
				t.Errorf("%v: code %d, want %q in\n%s%s", args, code, w, out, said)
			}
		}
	}
	if code, _, said := runHere(t, "drydock", "explain", "plan.strategy.speed"); code != 2 || !strings.Contains(said, "there is no plan.strategy.speed: want one of type, maxParallel") {
		t.Errorf("code %d, %s", code, said)
	}
	if code, _, said := runHere(t, "drydock", "explain", "config.scheduler.maxParalel"); code != 2 || !strings.Contains(said, "did you mean maxParallel?") {
		t.Errorf("code %d, %s", code, said)
	}
	if code, out, said := runHere(t, "drydock", "schema", "input-plan"); code != 0 || !json.Valid([]byte(out)) {
		t.Errorf("code %d, %s", code, said)
	}
}
