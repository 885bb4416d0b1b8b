package series

import (
	"fmt"
	"testing"
)

func TestValuesBeyondTheFirstAreOther(t *testing.T) {
	b, got := NewBounded(100), map[string]bool{}
	for range 2 {
		for i := range 10_000 {
			got[b.Of(fmt.Sprint("name-", i))] = true
		}
	}
	if len(got) != 101 || !got["name-0"] || !got["name-99"] || !got[Other] {
		t.Errorf("%d values", len(got))
	}
	var none Bounded
	if got := none.Of("name"); got != Other {
		t.Errorf("the zero value keeps %q apart", got)
	}
}
