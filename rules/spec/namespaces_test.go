package spec_test

import (
	"testing"

	"drydock.dev/drydock/rules/spec"
)

func TestNamespacesOfADrain(t *testing.T) {
	for name, c := range map[string]struct {
		input, defaults string
		has, lacks      []string
	}{
		"all":      {`{"node":"n"}`, ``, []string{"a", "kube-system"}, nil},
		"included": {`{"node":"n","drain":{"namespaces":{"include":["a","b"]}}}`, ``, []string{"a", "b"}, []string{"c"}},
		"excluded": {`{"node":"n","drain":{"namespaces":{"exclude":["a"]}}}`, ``, []string{"b"}, []string{"a"}},
		"the worker's under the input's": {
			`{"node":"n","drain":{"namespaces":{"include":["a"]}}}`, `{"drain":{"namespaces":{"exclude":["kube-system"]}}}`,
			[]string{"a"}, []string{"b", "kube-system"}},
		"the worker's lifted": {
			`{"node":"n","drain":{"namespaces":{"exclude":[]}}}`, `{"drain":{"namespaces":{"exclude":["kube-system"]}}}`, []string{"kube-system"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := spec.Decode([]byte(c.input), []byte(c.defaults))
			if err != nil {
				t.Fatal(err)
			}
			for _, namespace := range c.has {
				if !m.Drain.Namespaces.Has(namespace) {
					t.Errorf("%s is not drained", namespace)
				}
			}
			for _, namespace := range c.lacks {
				if m.Drain.Namespaces.Has(namespace) {
					t.Errorf("%s is drained", namespace)
				}
			}
		})
	}
}

func TestWhoeverJudgesADrainSeesItsSLA(t *testing.T) {
	m, err := spec.Decode([]byte(`{"node":"n","sla":{"after":"30m","do":"kill"},"drain":{"escalation":[{"after":"1h","do":"fail"}]}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, rung := range m.Judged().Escalation {
		order = append(order, rung.Do)
	}
	if len(order) != 3 || order[0] != spec.ExpireSLA || order[1] != spec.Kill || order[2] != spec.Fail || len(m.Drain.Escalation) != 1 {
		t.Errorf("it is judged by %v, and drained by %v", order, m.Drain.Escalation)
	}
}
