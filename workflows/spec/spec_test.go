package spec_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drydock/workflows/drainplan"
	"drydock/workflows/spec"
)

func TestDecodeFillsDefaultsOnlyWhereAbsent(t *testing.T) {
	workers := []byte(`{"drain":{"deleteEmptyDir":true,"force":true},"readyTimeout":"2h"}`)
	got, err := spec.Decode([]byte(`{"node":"worker-01","drain":{"force":false,"escalation":[]},"priority":0}`), workers)
	if err != nil {
		t.Fatal(err)
	}
	want := spec.Maintenance{
		Node: "worker-01", Requestor: "manual", Type: spec.Planned, Cordon: true,
		Drain: spec.Drain{
			Mode: spec.ModeEvict, DeleteEmptyDir: true, Escalation: []spec.Rung{}, Via: spec.ViaEviction,
			ProtectedFor: spec.Duration(30 * time.Minute), OnNodeNotReady: spec.WaitForKubelet,
		},
		Preflight:    spec.PreflightOff,
		ReadyTimeout: spec.Duration(2 * time.Hour), OnReadyTimeout: spec.FailOnTimeout, OnNodeReplaced: spec.AdoptReplacement,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

func TestDecodeDefaultEscalationGivesBackAfterAnHour(t *testing.T) {
	got, err := spec.Decode([]byte(`{"node":"n1"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []spec.Rung{{After: spec.Duration(time.Hour), Do: spec.GiveBack}}; !cmp.Equal(want, got.Drain.Escalation) {
		t.Errorf("escalation = %v, want %v", got.Drain.Escalation, want)
	}
}

func TestEncodedMaintenanceDecodesToItself(t *testing.T) {
	first, err := spec.Decode([]byte(`{"node":"n1","requestor":"ops","additionalRequestors":["net.example"],
		"waitForPodCompletion":{"podSelector":"app=x","timeout":"5m"},
		"drain":{"gracePeriodSeconds":0,"escalation":[],"podEvictionFilters":[{"byResourceNameRegex":"nvidia.com/.*"}]}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	again, err := spec.Decode(encoded, []byte(`{"readyTimeout":"9h"}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

func TestDecodeRefusesAndNamesTheField(t *testing.T) {
	for name, c := range map[string]struct{ input, want string }{
		"nothing":                        {``, `no input`},
		"not JSON":                       {`{"node"`, `not valid JSON`},
		"a string":                       {`"worker-01"`, `want a JSON object, got a string`},
		"an array":                       {`["worker-01"]`, `want a JSON object, got a list`},
		"null":                           {`null`, `want a JSON object, got null`},
		"node missing":                   {`{}`, `node: required`},
		"node empty":                     {`{"node":""}`, `node: required`},
		"node not a name":                {`{"node":"a/b"}`, `node: "a/b" is not a node name`},
		"node null":                      {`{"node":null}`, `node: null is not a value`},
		"node of the wrong type":         {`{"node":7}`, `node: want a string, got number`},
		"unknown field":                  {`{"node":"n","nodee":"m"}`, `nodee: unknown field`},
		"field in another case":          {`{"node":"n","Priority":1}`, `Priority: unknown field`},
		"nested unknown field":           {`{"node":"n","drain":{"mod":"evict"}}`, `drain.mod: unknown field`},
		"duplicate field":                {`{"node":"n","node":"m"}`, `node: duplicate field`},
		"nested null":                    {`{"node":"n","drain":{"mode":null}}`, `drain.mode: null is not a value`},
		"null in a list":                 {`{"node":"n","additionalRequestors":[null]}`, `additionalRequestors[0]: null is not a value`},
		"requestor too short":            {`{"node":"n","requestor":"a"}`, `requestor: "a" has 1 characters: want 2 to 63`},
		"requestor empty":                {`{"node":"n","requestor":""}`, `requestor: "" has 0 characters`},
		"requestor too long":             {`{"node":"n","requestor":"` + strings.Repeat("a", 64) + `"}`, `has 64 characters: want 2 to 63`},
		"requestor with a slash":         {`{"node":"n","requestor":"a/b"}`, `requestor: "a/b": want letters`},
		"additional requestor":           {`{"node":"n","additionalRequestors":["ok","-x-"]}`, `additionalRequestors[1]: "-x-"`},
		"priority not a number":          {`{"node":"n","priority":"high"}`, `priority: want a whole number, got string`},
		"priority a fraction":            {`{"node":"n","priority":1.5}`, `priority: want a whole number, got number 1.5`},
		"cordon a string":                {`{"node":"n","cordon":"yes"}`, `cordon: want true or false, got string`},
		"type":                           {`{"node":"n","type":"urgent"}`, `type: "urgent" is not one of planned, unplanned`},
		"mode":                           {`{"node":"n","drain":{"mode":"kill"}}`, `drain.mode: "kill" is not one of evict, wait, external, none`},
		"drain a string":                 {`{"node":"n","drain":"evict"}`, `drain: want an object, got string`},
		"bad selector":                   {`{"node":"n","drain":{"podSelector":"a=("}}`, `drain.podSelector: "a=(" is not a label selector`},
		"bad wait selector":              {`{"node":"n","waitForPodCompletion":{"podSelector":"a in b"}}`, `waitForPodCompletion.podSelector: "a in b" is not a label selector`},
		"bad regular expression":         {`{"node":"n","drain":{"podEvictionFilters":[{"byResourceNameRegex":"("}]}}`, `drain.podEvictionFilters[0].byResourceNameRegex: error parsing regexp`},
		"empty filter":                   {`{"node":"n","drain":{"podEvictionFilters":[{}]}}`, `drain.podEvictionFilters[0].byResourceNameRegex: must not be empty`},
		"negative duration":              {`{"node":"n","readyTimeout":"-1h"}`, `readyTimeout: "-1h" is negative`},
		"duration a number":              {`{"node":"n","readyTimeout":3600}`, `readyTimeout: 3600 is not a duration`},
		"duration without a unit":        {`{"node":"n","readyTimeout":"60"}`, `readyTimeout: "60" is not a duration`},
		"nested duration":                {`{"node":"n","drain":{"escalation":[{"after":"-1m","do":"fail"}]}}`, `drain.escalation[0].after: "-1m" is negative`},
		"negative grace":                 {`{"node":"n","drain":{"gracePeriodSeconds":-1}}`, `drain.gracePeriodSeconds: -1 is negative`},
		"rung":                           {`{"node":"n","drain":{"escalation":[{"after":"1h","do":"pray"}]}}`, `drain.escalation[0].do: "pray" is not one of notify, bypassBudget, kill, giveBack, fail`},
		"rung at once":                   {`{"node":"n","drain":{"escalation":[{"after":"0s","do":"fail"}]}}`, `drain.escalation[0].after: must be more than 0s`},
		"rungs after the last":           {`{"node":"n","drain":{"escalation":[{"after":"1h","do":"fail"},{"after":"2h","do":"fail"}]}}`, `drain.escalation[0].do: fail ends the drain`},
		"force where nothing is evicted": {`{"node":"n","drain":{"mode":"wait","escalation":[{"after":"1h","do":"kill"}]}}`, `drain.escalation[0].do: kill needs the drain mode evict`},
		"via":                            {`{"node":"n","drain":{"via":"magic"}}`, `drain.via: "magic" is not one of eviction, evictionRequest`},
		"preflight":                      {`{"node":"n","preflight":"maybe"}`, `preflight: "maybe" is not one of off, wait, fail`},
		"not ready":                      {`{"node":"n","drain":{"onNodeNotReady":"pray"}}`, `drain.onNodeNotReady: "pray" is not one of wait, ignore`},
		"plan of nothing":                {`{"node":"n","drain":{"plan":{"include":[]}}}`, `drain.plan: has no tiers`},
		"plan with a typo":               {`{"node":"n","drain":{"plan":{"teirs":[]}}}`, `drain.plan.teirs: unknown field`},
		"plan of words":                  {`{"node":"n","drain":{"plan":["Default"]}}`, `drain.plan: want an object, got array`},
		"pod type":                       {`{"node":"n","drain":{"plan":{"include":["Mirror"]}}}`, `drain.plan.include[0]: "Mirror" is not one of Default, DaemonSet, Static`},
		"tier's pod type":                {`{"node":"n","drain":{"plan":[{"podType":"Pod","podPriority":1}]}}`, `drain.plan.tiers[0].podType`},
		"tier without a priority":        {`{"node":"n","drain":{"plan":{"tiers":[{"podType":"Default"}]}}}`, `drain.plan.tiers[0].podPriority: required`},
		"tier twice":                     {`{"node":"n","drain":{"plan":[{"podPriority":1},{"podPriority":1}]}}`, `drain.plan.tiers[1]: the same entry as tiers[0]`},
		"tier's selector":                {`{"node":"n","drain":{"plan":[{"podPriority":1,"podSelector":{"matchLabel":{"a":"b"}}}]}}`, `drain.plan.tiers[0].podSelector: matchLabel: unknown field`},
		"static":                         {`{"node":"n","drain":{"plan":{"static":"evict"}}}`, `drain.plan.static: "evict" is not one of skip, wait`},
		"reason too long":                {`{"node":"n","reason":"` + strings.Repeat("x", 1025) + `"}`, `reason: has 1025 bytes`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := spec.Decode([]byte(c.input), nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestDecodeReadsBothFormsOfAPlan(t *testing.T) {
	kep := `[{"podType":"Default","podPriority":2000,"podSelector":{"matchLabels":{"app":"postgres"}}},{"podType":"DaemonSet","podPriority":1000}]`
	for name, c := range map[string]struct {
		plan string
		want spec.Plan
	}{
		"the KEP's": {kep, spec.Plan{
			Tiers: []drainplan.Entry{
				{PodType: drainplan.Default, PodPriority: 2000, PodSelector: "app=postgres"}, {PodType: drainplan.DaemonSet, PodPriority: 1000},
			},
			Include: drainplan.Types(), Static: spec.SkipStatic,
		}},
		"ours": {`{"tiers":[{"podPriority":5,"podSelector":"app in (a,b)"}]}`, spec.Plan{
			Tiers:   []drainplan.Entry{{PodType: drainplan.Default, PodPriority: 5, PodSelector: "app in (a,b)"}},
			Include: []drainplan.PodType{drainplan.Default}, Static: spec.SkipStatic,
		}},
		"all static pods": {`{"include":["Default","DaemonSet","Static"],"static":"wait"}`, spec.Plan{Include: drainplan.Types(), Static: spec.WaitForStatic}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := spec.Decode([]byte(`{"node":"n1","drain":{"plan":`+c.plan+`}}`), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, *got.Drain.Plan); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
			encoded, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := spec.Decode(encoded, nil); err != nil || !cmp.Equal(got, again) {
				t.Errorf("it does not decode to itself: %v", err)
			}
		})
	}
}

func TestDecodeReportsAllWrongFieldsAtOnce(t *testing.T) {
	_, err := spec.Decode([]byte(`{"node":"","requestor":"x","type":"odd"}`), nil)
	for _, field := range []string{"node:", "requestor:", "type:"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("error = %v, want it to name %s", err, field)
		}
	}
}

func TestCheckDefaults(t *testing.T) {
	if err := spec.CheckDefaults([]byte(`{"drain":{"force":true}}`)); err != nil {
		t.Errorf("good defaults refused: %v", err)
	}
	if err := spec.CheckDefaults([]byte(`{"node":"n"}`)); err == nil {
		t.Error("a default node was accepted")
	}
	if err := spec.CheckDefaults([]byte(`{"drain":{"mode":"odd"}}`)); err == nil {
		t.Error("a wrong default was accepted")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"node":"n1","drain":{"mode":"wait"}}`))
	f.Add([]byte(`{"node":null}`))
	f.Add([]byte(`[1,2`))
	f.Fuzz(func(t *testing.T, input []byte) {
		m, err := spec.Decode(input, nil)
		if err != nil {
			return
		}
		if again := m.Validate(); again != nil {
			t.Errorf("Decode accepted what Validate refuses: %v", again)
		}
	})
}
