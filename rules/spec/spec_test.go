package spec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/spec"
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

// refused are inputs with what the error has to say of them.
var refused = map[string]struct{ input, want string }{
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
	"unknown field":                  {`{"node":"n","nodee":"m"}`, `nodee: unknown field; did you mean "node"?`},
	"priority beyond sense":          {`{"node":"n","priority":1000000001}`, `priority: 1000000001: want at least -1000000000`},
	"field in another case":          {`{"node":"n","Priority":1}`, `Priority: unknown field; did you mean "priority"?`},
	"nested unknown field":           {`{"node":"n","drain":{"mod":"evict"}}`, `drain.mod: unknown field; did you mean "mode"?`},
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
	"one of a list, wrong type":      {`{"node":"n","drain":{"escalation":[{"after":"1h","do":"notify"},{"after":"2h","do":3}]}}`, `drain.escalation[1].do: want a string, got number`},
	"two wrong types":                {`{"node":3,"priority":"high"}`, "node: want a string, got number\npriority: want a whole number, got string"},
	"cordon a string":                {`{"node":"n","cordon":"yes"}`, `cordon: want true or false, got string`},
	"type":                           {`{"node":"n","type":"urgent"}`, `type: "urgent" is not one of planned, unplanned`},
	"mode":                           {`{"node":"n","drain":{"mode":"kill"}}`, `drain.mode: "kill" is not one of evict, wait, external, none`},
	"drain a string":                 {`{"node":"n","drain":"evict"}`, `drain: want an object, got string`},
	"namespace not a name":           {`{"node":"n","drain":{"namespaces":{"exclude":["kube system"]}}}`, `drain.namespaces.exclude[0]: "kube system" is not the name of a namespace`},
	"namespace twice":                {`{"node":"n","drain":{"namespaces":{"include":["a","b","a"]}}}`, `drain.namespaces.include[2]: "a" is named twice`},
	"namespace in and out":           {`{"node":"n","drain":{"namespaces":{"include":["a","b"],"exclude":["b"]}}}`, `drain.namespaces.include[1]: "b" is excluded too`},
	"no namespace at all":            {`{"node":"n","drain":{"namespaces":{"include":[]}}}`, `drain.namespaces.include: is empty`},
	"namespaces a list":              {`{"node":"n","drain":{"namespaces":["a"]}}`, `drain.namespaces: want an object, got array`},
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
	"not a time":                     {`{"node":"n","notBefore":"tomorrow"}`, `notBefore: tomorrow is not a time: write it in RFC 3339`},
	"a window of words":              {`{"node":"n","windows":["nights","Week Ends"]}`, `windows[1]: "Week Ends" is not the name of a window`},
	"a window twice":                 {`{"node":"n","windows":["nights","nights"]}`, `windows[1]: "nights" is named twice`},
	"too many windows":               {`{"node":"n","windows":["a","b","c","d","e","f","g","h","i","j","k"]}`, `windows: has 11 names: at most 10 are taken`},
	"a month's work":                 {`{"node":"n","expectedDuration":"30d"}`, `expectedDuration: 720h0m0s is longer than openings are looked ahead for`},
	"a moment's work":                {`{"node":"n","expectedDuration":"1ms"}`, `expectedDuration: 1ms is too short`},
	"ignores windows for nothing":    {`{"node":"n","ignoreWindows":{}}`, `ignoreWindows.reason: required`},
	"ignores windows with a flag":    {`{"node":"n","ignoreWindows":true}`, `ignoreWindows: want an object, got bool`},
	"ignores windows at length":      {`{"node":"n","ignoreWindows":{"reason":"` + strings.Repeat("a", 1025) + `"}}`, `ignoreWindows.reason: has 1025 bytes`},
	"reminders all the time":         {`{"node":"n","approval":true,"approvalReminder":"1s"}`, `approvalReminder: 1s is too often`},
	"SLA at once":                    {`{"node":"n","sla":{"after":"0s"}}`, `sla.after: must be more than 0s`},
	"SLA with no rung":               {`{"node":"n","sla":{"after":"30m","do":"pray"}}`, `sla.do: "pray" is not one of`},
	"SLA that never ends":            {`{"node":"n","sla":{"after":"2h"}}`, `sla.after: 2h0m0s is later than the rung giveBack (1h0m0s)`},
	"SLA by force without evictions": {`{"node":"n","sla":{"after":"2m","do":"kill"},"drain":{"mode":"wait"}}`, `sla.do: kill needs the drain mode evict`},
	"hook":                           {`{"node":"n","hooks":{"afterDrain":["a b"]}}`, `hooks.afterDrain[0]: "a b" is not a name`},
	"channel":                        {`{"node":"n","notify":["a/b"]}`, `notify[0]: "a/b" is not the name of a channel`},
	"validation":                     {`{"node":"n","validation":{"soak":"1h","newBootID":true}}`, `validation.soak: 1h0m0s must be shorter than the deadline (30m0s)`},
	"via":                            {`{"node":"n","drain":{"via":"magic"}}`, `drain.via: "magic" is not one of eviction, evictionRequest`},
	"preflight":                      {`{"node":"n","preflight":"maybe"}`, `preflight: "maybe" is not one of off, wait, fail`},
	"not ready":                      {`{"node":"n","drain":{"onNodeNotReady":"pray"}}`, `drain.onNodeNotReady: "pray" is not one of wait, ignore`},
	"plan of nothing":                {`{"node":"n","drain":{"plan":{"include":[]}}}`, `drain.plan: has no tiers`},
	"plan with a typo":               {`{"node":"n","drain":{"plan":{"teirs":[]}}}`, `drain.plan.teirs: unknown field; did you mean "tiers"?`},
	"plan of words":                  {`{"node":"n","drain":{"plan":["Default"]}}`, `drain.plan[0]: want an object, got a string`},
	"pod type":                       {`{"node":"n","drain":{"plan":{"include":["Mirror"]}}}`, `drain.plan.include[0]: "Mirror" is not one of Default, DaemonSet, Static`},
	"tier's pod type":                {`{"node":"n","drain":{"plan":[{"podType":"Pod","podPriority":1}]}}`, `drain.plan.tiers[0].podType`},
	"tier without a priority":        {`{"node":"n","drain":{"plan":{"tiers":[{"podType":"Default"}]}}}`, `drain.plan.tiers[0].podPriority: required`},
	"tier twice":                     {`{"node":"n","drain":{"plan":[{"podPriority":1},{"podPriority":1}]}}`, `drain.plan.tiers[1]: the same entry as tiers[0]`},
	"tier's selector":                {`{"node":"n","drain":{"plan":[{"podPriority":1,"podSelector":{"matchLabel":{"a":"b"}}}]}}`, `drain.plan[0].podSelector: matchLabel: unknown field`},
	"static":                         {`{"node":"n","drain":{"plan":{"static":"evict"}}}`, `drain.plan.static: "evict" is not one of skip, wait`},
	"reason too long":                {`{"node":"n","reason":"` + strings.Repeat("x", 1025) + `"}`, `reason: has 1025 bytes`},
	"plan null":                      {`{"node":"n","drain":{"plan":null}}`, `drain.plan: null is not a value`},
	"tier null":                      {`{"node":"n","drain":{"plan":[null]}}`, `drain.plan[0]: null is not a value`},
	"tier null in our form":          {`{"node":"n","drain":{"plan":{"tiers":[null]}}}`, `drain.plan.tiers[0]: null is not a value`},
	"tiers null":                     {`{"node":"n","drain":{"plan":{"tiers":null}}}`, `drain.plan.tiers: null is not a value`},
	"null in a selector":             {`{"node":"n","drain":{"plan":[{"podPriority":1,"podSelector":{"matchLabels":null}}]}}`, `drain.plan[0].podSelector.matchLabels: null is not a value`},
	"tier a list":                    {`{"node":"n","drain":{"plan":[{"podPriority":1},[]]}}`, `drain.plan[1]: want an object, got a list`},
	"tiers of words":                 {`{"node":"n","drain":{"plan":{"tiers":["Default"]}}}`, `drain.plan.tiers[0]: want an object, got a string`},
	"tiers a word":                   {`{"node":"n","drain":{"plan":{"tiers":"all"}}}`, `drain.plan.tiers: want a list, got string`},
	"plan a number":                  {`{"node":"n","drain":{"plan":7}}`, `drain.plan: want an object, got number`},
	"plan in another case":           {`{"node":"n","drain":{"PLAN":[{"podPriority":1}]}}`, `drain.PLAN: unknown field`},
	"drain in another case":          {`{"node":"n","Drain":{"plan":[{"podPriority":1}]}}`, `Drain: unknown field`},
	"plan in two cases":              {`{"node":"n","drain":{"plan":[{"podPriority":1}],"Plan":{}}}`, `drain.Plan: unknown field`},
	"tiers in another case":          {`{"node":"n","drain":{"plan":{"Tiers":[{"podPriority":1}]}}}`, `drain.plan.Tiers: unknown field`},
	"selector in another case":       {`{"node":"n","drain":{"plan":[{"podPriority":1,"PodSelector":"a=b"}]}}`, `PodSelector: unknown field`},
	"unknown field beside a plan":    {`{"node":"n","nodee":"m","drain":{"plan":[{"podPriority":1}]}}`, `nodee: unknown field`},
	"unknown field in a tier":        {`{"node":"n","drain":{"plan":[{"podPriority":1,"prio":2}]}}`, `prio: unknown field`},
	"duplicate beside a plan":        {`{"node":"n","node":"m","drain":{"plan":[{"podPriority":1}]}}`, `node: duplicate field`},
	"duplicate in drain":             {`{"node":"n","drain":{"plan":[{"podPriority":1}],"mode":"evict","mode":"none"}}`, `drain.mode: duplicate field`},
	"two plans":                      {`{"node":"n","drain":{"plan":[],"plan":{"include":["Static"]}}}`, `drain.plan: duplicate field`},
	"two drains":                     {`{"node":"n","drain":{"plan":[{"podPriority":1}]},"drain":{"mode":"none"}}`, `drain: duplicate field`},
	"duplicate in a plan":            {`{"node":"n","drain":{"plan":{"static":"skip","static":"wait"}}}`, `drain.plan.static: duplicate field`},
	"duplicate in a tier":            {`{"node":"n","drain":{"plan":[{"podPriority":1,"podPriority":2}]}}`, `drain.plan[0].podPriority: duplicate field`},
	"duplicate in a selector":        {`{"node":"n","drain":{"plan":[{"podPriority":1,"podSelector":{"matchLabels":{"a":"b","a":"c"}}}]}}`, `drain.plan[0].podSelector.matchLabels.a: duplicate field`},
	"tier priority a fraction":       {`{"node":"n","drain":{"plan":[{"podPriority":1000.0}]}}`, `podPriority: want a whole number, got number 1000.0`},
	"tier priority with exponent":    {`{"node":"n","drain":{"plan":[{"podPriority":1e3}]}}`, `podPriority: want a whole number, got number 1e3`},
	"tier priority just past":        {`{"node":"n","drain":{"plan":[{"podPriority":2147483647.0000000001}]}}`, `podPriority: want a whole number`},
	"tier priority too large":        {`{"node":"n","drain":{"plan":[{"podPriority":2147483648}]}}`, `podPriority: want a whole number`},
	"tier priority a string":         {`{"node":"n","drain":{"plan":[{"podPriority":"1"}]}}`, `podPriority: want a whole number, got string`},
	"static a list":                  {`{"node":"n","drain":{"plan":{"static":["skip"]}}}`, `drain.plan.static: want a string`},
	"include a word":                 {`{"node":"n","drain":{"plan":{"include":"Default"}}}`, `drain.plan.include: want a list`},
}

func TestDecodeRefusesAndNamesTheField(t *testing.T) {
	for name, c := range refused {
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

func TestDefaultsAreAsStrictAsTheInput(t *testing.T) {
	for defaults, want := range map[string]string{
		`{"drain":{"plan":null}}`: "drain.plan: null", `{"drain":{"plan":[null]}}`: "drain.plan[0]: null",
		`{"drain":{"plan":[],"mode":"evict","mode":"none"}}`: "drain.mode: duplicate field",
	} {
		if _, err := spec.Decode([]byte(`{"node":"n"}`), []byte(defaults)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", defaults, err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		f.Add([]byte(refused[name].input))
	}
	for _, accepted := range []string{
		`{"node":"n1","drain":{"mode":"wait"}}`,
		`{"node":"n1","requestor":"ops","additionalRequestors":["net.example"],"waitForPodCompletion":{"podSelector":"app=x","timeout":"5m"}}`,
		`{"node":"n1","drain":{"gracePeriodSeconds":0,"escalation":[{"after":"1h","do":"kill"}],"podEvictionFilters":[{"byResourceNameRegex":"nvidia.com/.*"}]}}`,
		`{"node":"n1","drain":{"plan":[{"podType":"Default","podPriority":2000,"podSelector":{"matchLabels":{"app":"postgres"}}},{"podType":"DaemonSet","podPriority":1000}]}}`,
		`{"node":"n1","drain":{"plan":{"tiers":[{"podPriority":5,"podSelector":"app in (a,b)"}],"include":["Static"],"static":"wait"}}}`,
		`{"node":"n1","drain":{"plan":[{"podPriority":-1,"podSelector":{"matchExpressions":[{"key":"a","operator":"NotIn","values":["b",""]},{"key":"c","operator":"Exists"}]}}]}}`,
	} {
		f.Add([]byte(accepted))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		first, err := spec.Decode(input, nil)
		if err != nil {
			return
		}
		if flaw := flawOf(json.NewDecoder(bytes.NewReader(input))); flaw != "" {
			t.Errorf("accepted in spite of %s", flaw)
		}
		if again := first.Validate(); again != nil {
			t.Errorf("Decode accepted what Validate refuses: %v", again)
		}
		encoded, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		again, err := spec.Decode(encoded, nil)
		if err != nil {
			t.Fatalf("%s is refused: %v", encoded, err)
		}
		if diff := cmp.Diff(first, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("want - got +\n%s", diff)
		}
	})
}

// flawOf finds a null or a duplicate field in the next JSON value, by its tokens alone.
func flawOf(d *json.Decoder) string {
	token, err := d.Token()
	switch {
	case err != nil:
		return err.Error()
	case token == nil:
		return "null"
	case token == json.Delim('['):
		for d.More() {
			if flaw := flawOf(d); flaw != "" {
				return flaw
			}
		}
	case token == json.Delim('{'):
		seen := map[json.Token]bool{}
		for d.More() {
			key, _ := d.Token()
			if seen[key] {
				return fmt.Sprintf("two fields %q", key)
			}
			seen[key] = true
			if flaw := flawOf(d); flaw != "" {
				return flaw
			}
		}
	default:
		return ""
	}
	_, err = d.Token() // the end of the list or object
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestDecodeFillsAValidation(t *testing.T) {
	m, err := spec.Decode([]byte(`{"node":"n","validation":{"newBootID":true,"soak":"1m"}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if v := m.Validation; v == nil || v.Soak != spec.Duration(time.Minute) || v.Deadline != spec.Duration(30*time.Minute) || v.Every == 0 {
		t.Errorf("%+v", v)
	}
}

func TestDecodeFillsAnApproval(t *testing.T) {
	for input, want := range map[string]time.Duration{
		`{"node":"n"}`:                 0,
		`{"node":"n","approval":true}`: 24 * time.Hour,
		`{"node":"n","approval":true,"approvalReminder":"0s"}`:   0,
		`{"node":"n","approval":false}`:                          0,
		`{"node":"n","approval":true,"approvalReminder":"1h0m"}`: time.Hour,
	} {
		m, err := spec.Decode([]byte(input), nil)
		if err != nil || m.ApprovalReminder.Std() != want {
			t.Errorf("%s: %s, %v", input, m.ApprovalReminder, err)
		}
	}
}

func TestTheLadderHoldsTheSLA(t *testing.T) {
	for name, c := range map[string]struct{ input, want string }{
		"no SLA":                     {`{}`, "1h0m0s giveBack"},
		"an SLA that only tells":     {`{"sla":{"after":"10m"}}`, "10m0s expireSLA, 1h0m0s giveBack"},
		"an SLA with an action":      {`{"sla":{"after":"10m","do":"kill"}}`, "10m0s expireSLA, 10m0s kill, 1h0m0s giveBack"},
		"an SLA that ends the drain": {`{"sla":{"after":"10m","do":"fail"}}`, "10m0s expireSLA, 10m0s fail"},
		"at the time of a rung": {`{"sla":{"after":"1h"},"drain":{"escalation":[{"after":"1h","do":"notify"},{"after":"2h","do":"fail"}]}}`,
			"1h0m0s expireSLA, 1h0m0s notify, 2h0m0s fail"},
		"no escalation": {`{"sla":{"after":"1h"},"drain":{"escalation":[]}}`, "1h0m0s expireSLA"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := spec.Decode([]byte(`{"node":"n"}`), []byte(c.input))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, rung := range m.Ladder() {
				got = append(got, rung.After.String()+" "+rung.Do)
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("%s, want %s", text, c.want)
			}
		})
	}
}

func TestDaysAreFoundWhereADurationIsWritten(t *testing.T) {
	for text, want := range map[string]bool{
		`{"readyTimeout":"2d"}`:                                true,
		`{"drain":{"escalation":[{"after":"1d12h"}]}}`:         true,
		`{"validation":{"soak":"1d"}}`:                         true,
		`{"readyTimeout":"48h","reason":"2d","node":"1d"}`:     false,
		`{"drain":{"escalation":[{"after":"36h","do":"2d"}]}}`: false,
		`{"readyTimeout":2}`:                                   false,
		`not even JSON`:                                        false,
	} {
		if got := spec.HasDays([]byte(text), &spec.Maintenance{}); got != want {
			t.Errorf("%s has days: %v", text, got)
		}
	}
	m, err := spec.Decode([]byte(`{"node":"n","readyTimeout":"2d"}`), nil)
	if err != nil || m.ReadyTimeout.String() != "48h0m0s" {
		t.Errorf("%s, %v", m.ReadyTimeout, err)
	}
}
