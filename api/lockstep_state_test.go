package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/rules/drainplan"
)

func TestAnIntentIsCheckedBeforeItCounts(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	good := func() PlanIntent {
		return PlanIntent{
			Name: "a", RunID: aRun, CreatedAt: now, Revision: 1, Stage: StageDrain, Nodes: []string{"n1", "n2"},
			Tiers: []drainplan.Entry{{PodType: drainplan.Default, PodPriority: 5}}, Maintenance: json.RawMessage(`{"reason":"x"}`),
		}
	}
	if tiers, err := good().Validate(now); err != nil || tiers.Len() != 1 {
		t.Fatal(err)
	}
	many := make([]string, 15001)
	for i := range many {
		many[i] = fmt.Sprintf("n%d", i)
	}
	for name, c := range map[string]struct {
		spoil func(*PlanIntent)
		says  string
	}{
		"no name":               {func(i *PlanIntent) { i.Name = "A b" }, `name: "A b" is not the name of a plan`},
		"no run":                {func(i *PlanIntent) { i.RunID = "r" }, `runId: "r" is not the ID of a run`},
		"never made":            {func(i *PlanIntent) { i.CreatedAt = time.Time{} }, "createdAt: required"},
		"of the future":         {func(i *PlanIntent) { i.CreatedAt = now.Add(2 * time.Hour) }, "is in the future"},
		"no revision":           {func(i *PlanIntent) { i.Revision = 0 }, "revision: 0: want 1 or more"},
		"a stage of its own":    {func(i *PlanIntent) { i.Stage = "Drian" }, `stage: "Drian" is not one of`},
		"no tiers":              {func(i *PlanIntent) { i.Tiers = nil }, "tiers: required"},
		"a tier twice":          {func(i *PlanIntent) { i.Tiers = append(i.Tiers, i.Tiers[0]) }, "tiers[1]: the same entry as tiers[0]"},
		"tiers without end":     {func(i *PlanIntent) { i.Tiers = make([]drainplan.Entry, 101) }, "tiers: 101 entries"},
		"a long selector":       {func(i *PlanIntent) { i.Tiers[0].PodSelector = strings.Repeat("a", 17<<10) }, "bytes: at most 16384"},
		"a node that is none":   {func(i *PlanIntent) { i.Nodes[1] = "N" }, `nodes[1]: "N" is not a node name`},
		"a node twice":          {func(i *PlanIntent) { i.Nodes[1] = "n1" }, `nodes[1]: "n1" is named twice`},
		"too many nodes":        {func(i *PlanIntent) { i.Nodes = many }, "nodes: 15001 entries: at most 15000"},
		"a maintenance of list": {func(i *PlanIntent) { i.Maintenance = json.RawMessage(`[]`) }, "maintenance: want a JSON object"},
		"a long maintenance":    {func(i *PlanIntent) { i.Maintenance = json.RawMessage(strings.Repeat(" ", 65<<10)) }, "maintenance: 66560 bytes"},
		"whose it is":           {func(i *PlanIntent) { i.Maintenance = json.RawMessage(`{"requestor":"x"}`) }, "maintenance.requestor: is the lockstep's to say"},
	} {
		in := good()
		c.spoil(&in)
		if _, err := in.Validate(now); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	idle := PlanIntent{Name: "a", RunID: aRun, CreatedAt: now, Revision: 1, Stage: StageIdle}
	if _, err := idle.Validate(now); err != nil {
		t.Errorf("a plan that holds nothing: %v", err)
	}
}

func TestWhatAMaintenanceSaysIsChecked(t *testing.T) {
	if err := (NodeProgress{Node: "n1", RunID: aRun}).Validate(); err != nil {
		t.Fatal(err)
	}
	wrong := NodeProgress{Node: "N", RunID: "r", Revision: -1, Targets: []drainplan.Entry{{PodSelector: strings.Repeat("a", 65<<10)}}}
	err := wrong.Validate()
	for _, want := range []string{"node: ", `runId: "r"`, "want 0 or more", "targets: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in %v", want, err)
		}
	}
}
