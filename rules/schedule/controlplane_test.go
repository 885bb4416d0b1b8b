package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func controlPlane(node, check string, age time.Duration) Request {
	return Request{
		ID: node + "/" + check, Node: node, Requestor: "health-" + check, Created: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC).Add(-age),
		Kind: KindControlPlane,
	}
}

func slotOf(r Request) Grant {
	return Grant{RequestID: r.ID, Node: r.Node, Requestor: r.Requestor, Kind: r.Kind, Remediation: r.Remediation}
}

func TestOneControlPlaneNodeIsRemediatedAtATime(t *testing.T) {
	a, b, again := controlPlane("cp-1", "x", time.Minute), controlPlane("cp-2", "y", time.Hour), controlPlane("cp-1", "x", 0)
	again.ID = "another run"
	for name, c := range map[string]struct {
		granted []Grant
		pending []Request
		freezes []Freeze
		want    string
	}{
		"the one that waits longest":         {nil, []Request{a, b}, nil, "granted cp-2/y, refused cp-1/x: ControlPlane: one control-plane node is remediated at a time, now cp-2"},
		"not while another is":               {[]Grant{slotOf(a)}, []Request{b}, nil, "refused cp-2/y: ControlPlane: one control-plane node is remediated at a time, now cp-1"},
		"the node that has a slot":           {[]Grant{slotOf(a)}, []Request{b, again}, nil, "granted another run, refused cp-2/y: ControlPlane: one control-plane node is remediated at a time, now cp-1"},
		"none while frozen":                  {nil, []Request{a}, []Freeze{{By: "ops"}}, "refused cp-1/x: Frozen: frozen by ops"},
		"maintenances are another matter":    {[]Grant{{RequestID: "m", Node: "cp-3", Requestor: "ops"}}, []Request{a}, nil, "granted cp-1/x"},
		"also one of the node that it is of": {[]Grant{{RequestID: "m", Node: "cp-1", Requestor: "health-x", Remediation: true}}, []Request{a}, nil, "granted cp-1/x"},
	} {
		d := Decide(Input{Limits: Limits{MaxParallel: Count(1)}, Freezes: c.freezes, Granted: c.granted, Pending: c.pending})
		var got []string
		for _, g := range d.Grants {
			got = append(got, "granted "+g.ID)
		}
		for _, r := range d.Refused {
			got = append(got, fmt.Sprintf("refused %s: %s: %s", r.Request.ID, r.Code, r.Reason))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
}

// A remediation by a maintenance has both slots: that of the control plane must not keep its own maintenance out.
func TestTheSlotOfTheControlPlaneIsNoSlotOfTheNode(t *testing.T) {
	r := controlPlane("cp-1", "x", time.Minute)
	repair := Request{ID: "m/1", Node: "cp-1", Requestor: "health-x", Created: r.Created, Remediation: true}
	planned := Request{ID: "p/1", Node: "cp-2", Requestor: "ops", Created: r.Created}
	in := Input{
		Limits:   Limits{MaxParallel: Count(1), MaxUnavailable: Count(2)},
		Observed: &Observation{Nodes: 3, Facts: map[string]NodeFacts{"cp-1": {}, "cp-2": {}}}, Granted: []Grant{slotOf(r)}, Pending: []Request{repair, planned},
	}
	if d := Decide(in); len(d.Grants) != 2 {
		t.Errorf("granted %+v, refused %+v", d.Grants, d.Refused)
	}
	if u := UsageOf(in); u.ControlPlane.Used != 1 || *u.ControlPlane.Limit != 1 || u.Slots.Used+u.Remediations.Used+u.Unavailable.Used != 0 {
		t.Errorf("used %+v", u)
	}
}
