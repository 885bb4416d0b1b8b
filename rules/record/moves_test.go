package record_test

import (
	"testing"

	"drydock.dev/drydock/rules/record"
)

func TestPodMovesInWords(t *testing.T) {
	for moves, want := range map[record.PodMoves]string{
		{}:                      "",
		{Ended: 160}:            "160 moved, 1.00 times each on average",
		{Ended: 176, Again: 16}: "160 moved, 1.10 times each on average",
		{Ended: 3, Again: 3}:    "3 moved, all younger than the plan",
	} {
		if got := moves.String(); got != want {
			t.Errorf("%+v: %q, want %q", moves, got, want)
		}
	}
}
