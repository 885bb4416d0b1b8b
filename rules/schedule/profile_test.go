package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestProfilesKeepToWhatMayBeUnavailable(t *testing.T) {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	profile := func(node string, age time.Duration) Request {
		return Request{ID: node + "/p", Node: node, Requestor: "profile-p", Created: at.Add(-age), Kind: KindProfile}
	}
	planned := func(node string) Request {
		return Request{ID: node + "/ops", Node: node, Requestor: "ops", Created: at}
	}
	for name, c := range map[string]struct {
		limits  Limits
		down    []string
		granted []Request
		pending []Request
		freezes []Freeze
		want    string
	}{
		"one at a time":               {Limits{MaxUnavailable: Count(1)}, nil, nil, []Request{profile("n1", 2), profile("n2", 1)}, nil, "n1/p, n2/p MaxUnavailable"},
		"not beside a maintenance":    {Limits{MaxUnavailable: Count(1)}, nil, []Request{planned("n1")}, []Request{profile("n2", 1)}, nil, "n2/p MaxUnavailable"},
		"nor a maintenance beside it": {Limits{MaxUnavailable: Count(1)}, nil, []Request{profile("n1", 1)}, []Request{planned("n2")}, nil, "n2/ops MaxUnavailable"},
		"the node of a maintenance":   {Limits{MaxUnavailable: Count(1)}, nil, []Request{planned("n1")}, []Request{profile("n1", 1)}, nil, "n1/p"},
		"a maintenance of its node":   {Limits{MaxUnavailable: Count(1)}, nil, []Request{profile("n1", 1)}, []Request{planned("n1")}, nil, "n1/ops"},
		"both at once":                {Limits{MaxUnavailable: Count(1)}, nil, nil, []Request{profile("n1", 1), planned("n1"), planned("n2")}, nil, "n1/p, n1/ops, n2/ops MaxUnavailable"},
		"a node that is down":         {Limits{MaxUnavailable: Count(1)}, []string{"n1"}, nil, []Request{profile("n1", 1), profile("n2", 1)}, nil, "n1/p, n2/p MaxUnavailable"},
		"one that it took out":        {Limits{MaxUnavailable: Count(1)}, []string{"n1"}, []Request{profile("n1", 1)}, []Request{profile("n2", 1)}, nil, "n2/p MaxUnavailable"},
		"without a limit":             {Limits{MaxParallel: Count(1)}, nil, []Request{planned("n4")}, []Request{profile("n1", 1), profile("n2", 1)}, nil, "n1/p, n2/p"},
		"and no slot of it":           {Limits{MaxParallel: Count(1)}, nil, []Request{profile("n1", 1)}, []Request{planned("n2")}, nil, "n2/ops"},
		"a group's": {Limits{Groups: []Group{{Name: "g", NodeSelector: "a=b", MaxUnavailable: Count(1)}}}, nil, []Request{profile("n1", 1)},
			[]Request{profile("n2", 1)}, nil, "n2/p GroupMaxUnavailable"},
		"frozen":  {Limits{}, nil, nil, []Request{profile("n1", 1)}, []Freeze{{By: "ops"}}, "n1/p Frozen"},
		"missing": {Limits{}, nil, nil, []Request{profile("n9", 1)}, nil, "n9/p NodeMissing"},
	} {
		o := &Observation{Nodes: 4, Facts: map[string]NodeFacts{"n9": {Missing: true}}, Groups: map[string]GroupCount{"g": {Nodes: 4}}}
		for i := range 4 {
			o.Facts[fmt.Sprintf("n%d", i+1)] = NodeFacts{Groups: []string{"g"}}
		}
		for _, node := range c.down {
			o.Facts[node] = NodeFacts{Unavailable: true, Groups: []string{"g"}}
			o.Unavailable, o.Groups["g"] = 1, GroupCount{Nodes: 4, Unavailable: 1}
		}
		in := Input{Limits: c.limits.WithDefaults(), Observed: o, Pending: c.pending, Freezes: c.freezes}
		if c.limits.MaxParallel.IsZero() {
			in.Limits.MaxParallel = Unlimited()
		}
		for _, r := range c.granted {
			in.Granted = append(in.Granted, slotOf(r))
		}
		d := Decide(in)
		var got []string
		for _, r := range d.Grants {
			got = append(got, r.ID)
		}
		for _, r := range d.Refused {
			got = append(got, r.Request.ID+" "+string(r.Code))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %s, want %s (%+v)", name, text, c.want, d.Refused)
		}
	}
}
