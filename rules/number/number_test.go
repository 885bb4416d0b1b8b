package number_test

import (
	"testing"

	"drydock.dev/drydock/rules/number"
)

func TestOneIsNoPlural(t *testing.T) {
	for n, want := range map[int][2]string{
		0: {"0 nodes", "0 nodes are"}, 1: {"1 node", "1 node is"}, 2: {"2 nodes", "2 nodes are"},
	} {
		if of, are := number.Of(n, "node"), number.Are(n, "node"); of != want[0] || are != want[1] {
			t.Errorf("%d: %q, %q", n, of, are)
		}
	}
}
