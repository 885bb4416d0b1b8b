package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

func numbered(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("node-%d", i))
	}
	return names
}

func TestFactsAreTheSameInColumns(t *testing.T) {
	names := numbered(api.PackAbove + 5)
	facts := map[string]schedule.NodeFacts{}
	for i, name := range names {
		facts[name] = schedule.NodeFacts{Unavailable: i%7 == 0, Groups: []string{"gpu", fmt.Sprintf("zone[zone=%d]", i%3)}[i%2:]}
	}
	facts[names[3]] = schedule.NodeFacts{Missing: true, Suggestion: "node-4"}
	facts[names[5]] = schedule.NodeFacts{Missing: true}
	facts[names[6]] = schedule.NodeFacts{}
	packed := Observed{Observation: schedule.Observation{Revision: 3, Facts: facts}, Digest: "d"}.Pack(names)
	if packed.Columns == nil || packed.Observation.Facts != nil {
		t.Fatal("the facts are not in columns")
	}
	data, err := json.Marshal(packed)
	if err != nil {
		t.Fatal(err)
	}
	var back Observed
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if back, err = back.Unpack(names); err != nil {
		t.Fatal(err)
	}
	same := func(a, b schedule.NodeFacts) bool {
		return a.Missing == b.Missing && a.Suggestion == b.Suggestion && a.Unavailable == b.Unavailable && slices.Equal(a.Groups, b.Groups)
	}
	if !maps.EqualFunc(back.Observation.Facts, facts, same) || back.Columns != nil || back.Observation.Revision != 3 {
		t.Errorf("%d facts became %d", len(facts), len(back.Observation.Facts))
	}
	if _, err := packed.Unpack(names[1:]); err == nil {
		t.Error("facts on other nodes were taken")
	}
}
