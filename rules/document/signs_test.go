package document

import "testing"

func TestSparks(t *testing.T) {
	for want, numbers := range map[string][]int{"": nil, "▁▁": {0, 0}, "▁▄█": {0, 50, 100}, "█": {1}, "▁█": {-3, 2}} {
		if got := Sparks(numbers); got != want {
			t.Errorf("%v: %q, want %q", numbers, got, want)
		}
	}
}

func TestBar(t *testing.T) {
	for want, c := range map[string][2]int{
		"": {1, 0},
		"░░░░░░░░░░░░░░░░░░░░": {0, 10},
		"█░░░░░░░░░░░░░░░░░░░": {1, 1000},
		"██████████░░░░░░░░░░": {5, 10},
		"████████████████████": {10, 10},
	} {
		if got := Bar(c[0], c[1]); got != want {
			t.Errorf("%d of %d: %q, want %q", c[0], c[1], got, want)
		}
	}
}
