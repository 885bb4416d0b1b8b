package main

import (
	"encoding/json"
	"reflect"
	"testing"

	"drydock.dev/drydock/rules/spec"
)

func TestPlansFollowFromTheSeed(t *testing.T) {
	const most = 400
	same, valid, seen := 0, 0, map[string]int{}
	for n := range most {
		p := newPlan(7, n, 200)
		if !reflect.DeepEqual(p, newPlan(7, n, 200)) {
			t.Errorf("plan %d is another the second time", n)
		}
		if reflect.DeepEqual(p.input, newPlan(8, n, 200).input) {
			same++
		}
		input, err := json.Marshal(p.input)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := spec.Decode(input, nil); p.valid != (err == nil) {
			t.Errorf("plan %d, valid %v: %s: %v", n, p.valid, input, err)
		}
		if p.valid {
			valid++
		}
		seen[string(p.ending)]++
		for _, name := range p.extras {
			seen[name]++
		}
	}
	if same > 0 || valid == most || valid < most*9/10 {
		t.Errorf("%d plans are those of another seed, %d of %d are valid", same, valid, most)
	}
	for _, ending := range endings {
		if seen[string(ending)] == 0 {
			t.Errorf("no maintenance is to end %s", ending)
		}
	}
}
