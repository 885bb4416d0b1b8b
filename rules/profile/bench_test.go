package profile

import (
	"fmt"
	"testing"

	"drydock.dev/drydock/rules/profile/state"
)

// BenchmarkDecide evaluates 5,000 nodes with two profiles each, of which all wait for maintenance.
func BenchmarkDecide(b *testing.B) {
	config := load(b, machine(`
- {name: p, operational: {transitions: [{check: a, next: maintenance-required}]}, maintenance-required: {notify: say, transitions: [{check: a && one && stagger, next: in-maintenance}]}}
- {name: q, operational: {transitions: [{check: a, next: maintenance-required}]}, maintenance-required: {transitions: [{check: one, next: in-maintenance}, {check: '!a', next: operational}]}}
`))
	c := &cluster{config: config, now: now}
	for i := range 5000 {
		n := newNode(fmt.Sprintf("node-%04d", i), "p--q", "a")
		c.nodes = append(c.nodes, n)
		c.write(Evaluation{Node: n.Object.Name, Label: state.Required, Data: state.Data{Profiles: map[string]state.Profile{
			"p": {Transition: now, Current: state.Required, Previous: state.Required},
			"q": {Transition: now, Current: state.Required, Previous: state.Required},
		}}})
	}
	for b.Loop() {
		c.decide()
	}
}
