package invocation

import "testing"

func TestWhoeverSitsAtAnotherMachineIsTheSame(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"jane@laptop", "jane@bastion", true},
		{"jane@laptop", "bob@laptop", false},
		{"unknown@pod-1", "unknown@pod-1", false},
		{"", "", false},
		{"4711@host@", "jane@host", false},
	} {
		if got := samePerson(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
	}
}
