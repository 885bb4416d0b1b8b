package client

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drydock/rules/spec"
)

func TestDifferencesCountOnlyWhatWasAskedFor(t *testing.T) {
	// The running one has the worker's defaults: forced, two hours.
	running := decoded(t, `{"node":"n","requestor":"ops","reason":"a","additionalRequestors":["joined"],"readyTimeout":"2h","drain":{"force":true}}`)
	for name, c := range map[string]struct {
		input map[string]any
		want  []Difference
	}{
		"nothing asked":              {map[string]any{}, nil},
		"same reason":                {map[string]any{"reason": "a"}, nil},
		"same time, written anew":    {map[string]any{"readyTimeout": "120m"}, nil},
		"default, not asked for":     {map[string]any{"reason": "a", "priority": 0}, nil},
		"other reason":               {map[string]any{"reason": "b"}, []Difference{{"reason", "a", "b"}}},
		"explicit false":             {map[string]any{"drain": map[string]any{"force": false}}, []Difference{{"drain.force", true, nil}}},
		"other mode":                 {map[string]any{"drain": map[string]any{"mode": "wait"}}, []Difference{{"drain.mode", "evict", "wait"}}},
		"additional, has joined":     {map[string]any{"additionalRequestors": []any{"joined"}}, nil},
		"additional, has not joined": {map[string]any{"additionalRequestors": []any{"other"}}, []Difference{{"additionalRequestors", []any{"joined"}, []any{"other"}}}},
		"waits for pods, running does not": {
			map[string]any{"waitForPodCompletion": map[string]any{"podSelector": "a=b"}},
			[]Difference{{"waitForPodCompletion.podSelector", nil, "a=b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			input := withNode(c.input, "n")
			asked, err := input.Decode()
			if err != nil {
				t.Fatal(err)
			}
			delete(input, "node")
			if diff := cmp.Diff(c.want, differences(input, asked, running)); diff != "" {
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
		input := withNode(map[string]any{"drain": map[string]any{"plan": c.plan}}, "n")
		asked, err := input.Decode()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		delete(input, "node")
		var got []string
		for _, d := range differences(input, asked, running) {
			got = append(got, d.Field)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: want - got +\n%s", name, diff)
		}
	}
}

// withNode is an input for a node.
func withNode(fields map[string]any, node string) Input {
	in := Input(maps.Clone(fields))
	in["node"] = node
	return in
}

func decoded(t *testing.T, input string) spec.Maintenance {
	t.Helper()
	m, err := spec.Decode([]byte(input), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
