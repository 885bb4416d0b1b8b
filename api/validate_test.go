package api

import (
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
)

const aRun = "0190b1c0-0000-7000-8000-000000000001"

func TestASlotRequestIsCheckedBeforeItBecomesACommand(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	good := func() SlotRequest {
		return SlotRequest{RunID: aRun, Request: schedule.Request{ID: aRun + "/1", Node: "n1", Requestor: "ops", Created: now}}
	}
	if err := good().Validate("prod", now); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(*SlotRequest)
		says  string
	}{
		"no run":                  {func(r *SlotRequest) { r.RunID = "" }, `runId: "" is not the ID of a run`},
		"a run that is no UUID":   {func(r *SlotRequest) { r.RunID, r.ID = "r", "r/1" }, `runId: "r" is not`},
		"a run without end":       {func(r *SlotRequest) { r.RunID = strings.Repeat("a", 1<<20) }, `aaa"... is not`},
		"no number":               {func(r *SlotRequest) { r.ID = aRun }, "id: "},
		"number 0":                {func(r *SlotRequest) { r.ID = aRun + "/0" }, "is not of the form <runId>/<attempt>"},
		"a text for a number":     {func(r *SlotRequest) { r.ID = aRun + "/x" }, "is not of the form"},
		"a number without end":    {func(r *SlotRequest) { r.ID = aRun + "/" + strings.Repeat("1", 300) }, "is not of the form"},
		"another run's":           {func(r *SlotRequest) { r.ID = strings.Replace(aRun, "0190", "0191", 1) + "/1" }, "is not one of run"},
		"a node that is no name":  {func(r *SlotRequest) { r.Node = "N 1" }, `node: "N 1" is not a node name`},
		"a node without end":      {func(r *SlotRequest) { r.Node = strings.Repeat("n", 254) }, "node: "},
		"a requestor of a letter": {func(r *SlotRequest) { r.Requestor = "o" }, "requestor: "},
		"a slash in a requestor":  {func(r *SlotRequest) { r.Requestor = "ops/x" }, "requestor: "},
		"a priority beyond sense": {func(r *SlotRequest) { r.Priority = 1 << 40 }, "priority: 1099511627776"},
		"never made":              {func(r *SlotRequest) { r.Created = time.Time{} }, "created: required"},
		"a window of words":       {func(r *SlotRequest) { r.Windows = []string{"a b"} }, `windows[0]: "a b" is not the name of a window`},
		"a window twice":          {func(r *SlotRequest) { r.Windows = []string{"a", "a"} }, `windows[1]: "a" is named twice`},
		"a gang without a name":   {func(r *SlotRequest) { r.Gang = &schedule.Gang{Size: 2} }, "gang.name: required"},
		"a gang without end":      {func(r *SlotRequest) { r.Gang = &schedule.Gang{Name: strings.Repeat("g", 254), Size: 1 << 40} }, "gang.size: 1099511627776"},
		"windows without end":     {func(r *SlotRequest) { r.Windows = make([]string, 1000) }, "windows: has 1000 names"},
		"a year's work":           {func(r *SlotRequest) { r.ExpectedDuration = spec.Duration(9000 * time.Hour) }, "expectedDuration: 9000h0m0s is longer"},
		"less than no time":       {func(r *SlotRequest) { r.ExpectedDuration = -1 }, "expectedDuration: -1ns is negative"},
		"a reason without end":    {func(r *SlotRequest) { r.IgnoreWindows = strings.Repeat("a", 1025) }, "ignoreWindows: 1025 bytes are more than 1024"},
		"made tomorrow":           {func(r *SlotRequest) { r.Created = now.Add(24 * time.Hour) }, "created: 2026-07-02T12:00:00Z is in the future"},
	} {
		r := good()
		c.spoil(&r)
		if err := r.Validate("prod", now); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		} else if len(err.Error()) > 5000 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
	if err := good().Validate(strings.Repeat("c", 990), now); err == nil || !strings.Contains(err.Error(), "the workflow ID has 1014 bytes") {
		t.Errorf("an ID that no server takes: %v", err)
	}
}

func TestAReleaseIsBounded(t *testing.T) {
	for says, r := range map[string]SlotRelease{
		"requestId: required":                  {By: "ann"},
		"by: 254 bytes are more than 253":      {RequestID: aRun + "/1", By: strings.Repeat("a", 254)},
		"why: 1025 bytes are more than 1024":   {RequestID: aRun + "/1", Why: strings.Repeat("a", 1025)},
		"requestId: 300 bytes are more than 2": {RequestID: strings.Repeat("a", 300)},
	} {
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	if err := (SlotRelease{RequestID: aRun + "/1"}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestWhoAsksAsWhichKind(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		kind      schedule.HolderKind
		requestor string
		valid     bool
	}{
		{schedule.KindControlPlane, "health-cp", true}, {schedule.KindControlPlane, "health-cp.of-site-" + strings.Repeat("x", 30), true},
		{schedule.KindControlPlane, "ops", false}, {schedule.KindControlPlane, "health-", false}, {schedule.KindControlPlane, "health-A", false},
		{schedule.KindControlPlane, "profile-flatcar", false}, {schedule.KindProfile, "profile-flatcar", true},
		{schedule.KindProfile, "profile-Flat_Car." + strings.Repeat("x", 50), true}, {schedule.KindProfile, "profile-a/b", false},
		{schedule.KindProfile, "health-cp", false}, {"kubelet", "health-cp", false}, {schedule.KindMaintenance, "profile-flatcar", true},
	} {
		r := SlotRequest{RunID: aRun, Request: schedule.Request{ID: aRun + "/1", Node: "n1", Requestor: c.requestor, Created: now, Kind: c.kind}}
		if err := r.Validate("", now); (err == nil) != c.valid {
			t.Errorf("%s as %q: %v", c.requestor, c.kind, err)
		}
		h := Holder{Grant: schedule.Grant{RequestID: r.ID, Node: "n1", Requestor: c.requestor, Kind: c.kind}, RunID: aRun}
		if err := h.Validate(""); (err == nil) != c.valid {
			t.Errorf("holder %s as %q: %v", c.requestor, c.kind, err)
		}
		if cluster, node, err := ParseHolderID(r.WorkflowID("east")); c.valid && (err != nil || cluster != "east" || node != "n1") {
			t.Errorf("%s: %q is of %s, %s: %v", c.requestor, r.WorkflowID("east"), cluster, node, err)
		}
	}
}

func TestAMarkIsCheckedBeforeItBecomesAHolder(t *testing.T) {
	good := StrayMark{Node: "n1", RunID: aRun, Requestor: "ops", WorkflowID: MaintenanceID("prod", "n1", "ops")}
	if err := good.Validate("prod"); err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]StrayMark{
		"of another cluster":  {Node: "n1", RunID: aRun, Requestor: "ops", WorkflowID: MaintenanceID("test", "n1", "ops")},
		"of another node":     {Node: "n2", RunID: aRun, Requestor: "ops", WorkflowID: good.WorkflowID},
		"of another's":        {Node: "n1", RunID: aRun, Requestor: "net", WorkflowID: good.WorkflowID},
		"with a run of words": {Node: "n1", RunID: "r", Requestor: "ops", WorkflowID: good.WorkflowID},
		"with no requestor":   {Node: "n1", RunID: aRun, WorkflowID: MaintenanceID("prod", "n1", "")},
	} {
		if m.Validate("prod") == nil {
			t.Errorf("a mark %s is taken", name)
		}
	}
	holder := Holder{Grant: schedule.Grant{RequestID: aRun + "/1", Node: "n1", Requestor: "ops"}, RunID: aRun}
	if err := holder.Validate("prod"); err != nil {
		t.Error(err)
	}
	holder.RequestID = "x"
	if err := holder.Validate("prod"); err == nil || !strings.Contains(err.Error(), "requestId: ") {
		t.Error(err)
	}
}
