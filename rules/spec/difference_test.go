package spec_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/rules/spec"
)

func TestDifferencesCountOnlyWhatWasAskedFor(t *testing.T) {
	// The running one has the worker's defaults: forced, two hours.
	running := decoded(t, `{"node":"n","requestor":"ops","reason":"a","additionalRequestors":["joined"],"readyTimeout":"2h","drain":{"force":true}}`)
	for name, c := range map[string]struct {
		input map[string]any
		want  []spec.Difference
	}{
		"nothing asked":              {map[string]any{}, nil},
		"same reason":                {map[string]any{"reason": "a"}, nil},
		"same time, written anew":    {map[string]any{"readyTimeout": "120m"}, nil},
		"default, not asked for":     {map[string]any{"reason": "a", "priority": 0}, nil},
		"other reason":               {map[string]any{"reason": "b"}, []spec.Difference{{Field: "reason", Running: "a", Asked: "b"}}},
		"explicit false":             {map[string]any{"drain": map[string]any{"force": false}}, []spec.Difference{{Field: "drain.force", Running: true, Asked: nil}}},
		"other mode":                 {map[string]any{"drain": map[string]any{"mode": "wait"}}, []spec.Difference{{Field: "drain.mode", Running: "evict", Asked: "wait"}}},
		"additional, has joined":     {map[string]any{"additionalRequestors": []any{"joined"}}, nil},
		"additional, has not joined": {map[string]any{"additionalRequestors": []any{"other"}}, []spec.Difference{{Field: "additionalRequestors", Running: []any{"joined"}, Asked: []any{"other"}}}},
		"waits for pods, running does not": {
			map[string]any{"waitForPodCompletion": map[string]any{"podSelector": "a=b"}},
			[]spec.Difference{{Field: "waitForPodCompletion.podSelector", Running: nil, Asked: "a=b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, spec.Differences(c.input, withNode(t, c.input, "n"), running)); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
		})
	}
}

func TestPlansAreComparedInWhateverFormTheyAreWritten(t *testing.T) {
	running := decoded(t, `{"node":"n","drain":{"plan":[{"podPriority":1000,"podSelector":"app=web"}]}}`)
	tier := func(priority int, selector any) any {
		return map[string]any{"podPriority": priority, "podSelector": selector}
	}
	for name, c := range map[string]struct {
		plan any
		want []string
	}{
		"the same":            {[]any{tier(1000, "app=web")}, nil},
		"the same, as object": {[]any{tier(1000, map[string]any{"matchLabels": map[string]any{"app": "web"}})}, nil},
		"other list":          {[]any{tier(2000, "app=web")}, []string{"drain.plan"}},
		"the same tiers":      {map[string]any{"tiers": []any{tier(1000, "app=web")}, "include": []any{"Default", "DaemonSet", "Static"}}, nil},
		"fewer pod types":     {map[string]any{"tiers": []any{tier(1000, "app=web")}, "include": []any{"Default"}}, []string{"drain.plan.include"}},
	} {
		input := map[string]any{"drain": map[string]any{"plan": c.plan}}
		var got []string
		for _, d := range spec.Differences(input, withNode(t, input, "n"), running) {
			got = append(got, d.Field)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: want - got +\n%s", name, diff)
		}
	}
}

// withNode is what an input asks for a node.
func withNode(t *testing.T, fields map[string]any, node string) spec.Maintenance {
	t.Helper()
	in := maps.Clone(fields)
	in["node"] = node
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, string(data))
}

func decoded(t *testing.T, input string) spec.Maintenance {
	t.Helper()
	m, err := spec.Decode([]byte(input), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
