package witness_test

import (
	"slices"
	"testing"

	"drydock.dev/drydock/lab/witness"
)

func TestTallyCountsAtOneInstant(t *testing.T) {
	tally := witness.NewTally()
	for _, one := range []struct {
		name string
		is   bool
	}{{"a", true}, {"a", true}, {"b", false}, {"a", false}, {"b", true}, {"a", true}, {"b", false}} {
		tally.Note(one.name, one.is)
	}
	if tally.Most() != 2 || tally.Times("a") != 2 || tally.Times("b") != 1 || tally.All() != 3 || !slices.Equal(tally.Now(), []string{"a"}) {
		t.Errorf("%+v", tally)
	}
	tally.Forget()
	if tally.Note("a", true); tally.Most() != 1 {
		t.Errorf("after Forget: %+v", tally)
	}
}
