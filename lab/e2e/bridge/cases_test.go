package bridge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"drydock.dev/drydock/docs/schemas"
)

// specCase is a spec: a base with one field set otherwise.
type specCase struct {
	name, path, value string
	spec              json.RawMessage
}

func (c specCase) String() string { return fmt.Sprintf("%s: %s", c.path, c.value) }

// bases are valid specs of the kinds, with as many fields as go together: what is wrong with a field is then all that is wrong.
var bases = [][]string{
	{`{"requestedBy": "system:serviceaccount:ci:rollout", "node": "worker-01", "requestor": "ci", "additionalRequestors": ["ops"], "reason": "kernel", "ticket": "OPS-7",
		"owner": "ann", "type": "planned", "approval": true, "approvalReminder": "2h", "notBefore": "2099-03-01T22:00:00Z", "windows": ["night"],
		"expectedDuration": "1h", "ignoreWindows": {"reason": "urgent"}, "priority": 5, "cordon": true,
		"waitForPodCompletion": {"podSelector": "app=training", "timeout": "12h"},
		"drain": {"mode": "evict", "podSelector": "app=web", "podEvictionFilters": [{"byResourceNameRegex": "nvidia.com/.*"}],
			"namespaces": {"include": ["web"], "exclude": ["db"]}, "force": true, "deleteEmptyDir": true, "gracePeriodSeconds": 30,
			"plan": {"tiers": [{"podType": "Default", "podPriority": 1000, "podSelector": {"matchLabels": {"app": "web"}}}], "include": ["Default"], "static": "skip"},
			"via": "eviction", "protectedFor": "30m", "onNodeNotReady": "wait", "skipWaitForDeleteTimeout": "10m", "waitForVolumeDetach": true,
			"escalation": [{"after": "12h", "do": "notify"}, {"after": "24h", "do": "giveBack"}]},
		"preflight": "wait", "readyTimeout": "4h", "onReadyTimeout": "fail", "onNodeReplaced": "adopt", "sla": {"after": "30m", "do": "notify"},
		"hooks": {"beforeCordon": ["drain-lb"], "afterDrain": ["power-off"], "beforeRelease": ["fill-lb"]}, "work": "flash", "outOfService": true,
		"validation": {"ready": true, "conditions": [{"type": "Ready", "status": "True", "forAtLeast": "1m"}], "newBootID": true, "daemonSets": "all",
			"allocatable": [{"name": "nvidia.com/gpu", "atLeast": "8"}, {"nameRegex": "example.com/.*", "atLeast": "500m"}], "checks": ["smoke"], "signal": true, "soak": "1m", "deadline": "3h", "every": "10s"},
		"notify": ["ops"]}`},
	{`{"requestedBy": "ann@example.com", "nodes": ["worker-01", "worker-02"], "exclude": ["worker-03"], "requestor": "ci", "maintenance": {"priority": 3, "readyTimeout": "2h"},
		"strategy": {"type": "rolling", "maxParallel": "10%", "canary": {"nodes": 1, "soak": "1h", "approval": true}, "maxFailures": 2, "pauseBetween": "5m",
			"beginWithin": "8h", "order": "zone", "onBlocked": "skip", "blockedAfter": "30m", "comeBackAfter": "10m", "tries": 3},
		"windows": ["night"], "reason": "kernel", "ticket": "OPS-7", "owner": "ann", "notify": ["ops"]}`,
		`{"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]},
		"strategy": {"type": "allAtOnce"}, "stage": "Cordon", "maintenance": {"reason": "kernel"},
		"drainPlan": {"tiers": [{"podType": "Default", "podPriority": 1000, "podSelector": "app=web"}], "include": ["Default"], "static": "skip"}}`,
		`{"selector": "pool=gpu", "maintenance": {}}`,
		`{"all": true, "strategy": {}}`},
	{`{"requestedBy": "ann", "selector": {"matchExpressions": [{"key": "node-role.kubernetes.io/worker", "operator": "Exists"}]},
		"unhealthyConditions": [{"type": "Ready", "status": "Unknown", "duration": "5m"}], "minHealthy": "51%", "groups": {"by": ["topology.kubernetes.io/zone"], "minHealthy": 2},
		"stormCooldownDuration": "10m", "healthyDelay": "5m",
		"remediationTemplate": {"apiVersion": "self-node-remediation.medik8s.io/v1alpha1", "kind": "SelfNodeRemediationTemplate", "namespace": "medik8s", "name": "auto"},
		"pauseRequests": ["upgrade"], "notify": ["ops"], "etcd": {"namespace": "openshift-etcd", "budget": "etcd-guard"}, "controlPlane": {"allow": "healthy"}}`,
		`{"selector": {"matchLabels": {"pool": "gpu"}}, "unhealthyConditions": [{"missing": "GPUHealthy", "duration": "5m"}], "maxUnhealthy": 3,
		"groups": {"by": ["zone"], "maxUnhealthy": "40%"}, "flapping": {"within": "1h"},
		"escalatingRemediations": [
			{"remediationTemplate": {"apiVersion": "v1", "kind": "ATemplate", "namespace": "a", "name": "a"}, "order": 5, "timeout": "10m"},
			{"maintenance": {"input": {"work": "power-cycle", "outOfService": true}, "outOfService": true}, "order": 10, "timeout": "1h"}]}`,
		`{"selector": {"matchLabels": {"pool": "gpu"}}, "maintenance": {"input": {"work": "power-cycle"}, "outOfService": true}}`},
}

// firsts are specs of the kinds, as they are kept, and statuses what is then shown of them.
var (
	firsts   = []string{`{"node": "worker-01"}`, `{"all": true}`, `{"selector": {"matchLabels": {"pool": "gpu"}}, "maintenance": {}}`}
	statuses = []string{
		`{"observedGeneration": 1, "phase": "Ready", "since": "2026-03-01T22:00:00Z", "requestors": [{"name": "ci"}, {"name": "ops", "done": true}],
			"drain": {"ended": 3, "remaining": 0, "blocked": 0}, "workflowID": "node-maintenance/worker-01/ci", "runID": "r", "message": "m",
			"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "observedGeneration": 1, "lastTransitionTime": "2026-03-01T22:00:00Z"}]}`,
		`{"observedGeneration": 1, "phase": "Running", "since": "2026-03-01T22:00:00Z",
			"counts": {"total": 12, "done": 3, "running": 2, "failed": 1, "waiting": 6, "held": 0, "skipped": 0, "gone": 0}, "workflowID": "w", "runID": "r"}`,
		`{"phase": "Remediating", "counts": {"observedNodes": 12, "healthyNodes": 10, "minHealthy": 7, "soon": 0, "unhealthy": 2, "remediating": 1}}`,
	}
)

// values are what fields are set to, by what they are: what such a field takes, what it does not take, and what is of another type.
var values = map[string][]string{
	"boolean":  {`true`, `false`, `"true"`, `1`, `null`},
	"integer":  {`0`, `1`, `7`, `-1`, `1.5`, `"1"`, `true`, `[]`, `99999999999`},
	"string":   {`"a1"`, `""`, `"With Space!"`, `"a_b"`, `"-a"`, `"a/b"`, `1`, `true`, `[]`, `{}`, `"` + strings.Repeat("a", 2000) + `"`},
	"duration": {`"90m"`, `"0s"`, `"0"`, `"1.5h"`, `"-5m"`, `"5"`, `""`, `"90m "`, `"1.2.3h"`, `".h"`, `"123456d"`, `"90M"`, `5`, `true`, `{}`},
	"time":     {`"2099-03-01T22:00:00+01:00"`, `"2099-03-01"`, `"2099-03-01t22:00:00z"`, `"2099-13-01T22:00:00Z"`, `"tomorrow"`, `""`, `1`},
	"amount":   {`1`, `0`, `"3"`, `"20%"`, `"0%"`, `"101%"`, `-1`, `"-1"`, `"+1"`, `1.5`, `"1.5"`, `""`, `"unlimited"`, `"x"`, `true`, `[]`},
	"object":   {`{}`, `{"unknown": 1}`, `[]`, `"x"`, `1`},
	"list":     {`[]`, `{}`, `"x"`, `1`, `[1]`, `[""]`, `["a1", "a1"]`, `["With Space!"]`, `[null]`},
}

// casesOf are the specs of a kind: each field of its bases with each value of its type, unknown fields in each object, and those of extra.
func casesOf(t *testing.T, k kind) []specCase {
	t.Helper()
	number := slices.IndexFunc(kinds, func(one kind) bool { return one.name == k.name })
	var all []specCase
	add := func(base, path, value string) {
		all = append(all, specCase{name, path, value, with(t, base, path, value)})
	}
	fields := append(schemas.InputOf(k.input).Below(), schemas.Field{Path: "requestedBy", Type: "string"})
	met := map[string]bool{}
	for _, base := range bases[number] {
		all = append(all, specCase{name: name, path: "all of", value: base, spec: json.RawMessage(base)})
		add(base, "unknown", `1`)
		for _, f := range fields {
			if !isIn(t, base, f.Path) {
				continue
			}
			met[f.Path] = true
			for _, value := range valuesOf(f) {
				add(base, f.Path, value)
			}
		}
	}
	for _, f := range fields {
		if own := []string{"lockstep", "remediation", "remediation.check", "name", "object"}; !met[f.Path] && !slices.Contains(own, f.Path) && !strings.HasPrefix(f.Path, "object.") &&
			!strings.HasPrefix(f.Path, "reportTo") {
			t.Errorf("%s: no base has %s", k.name, f.Path)
		}
	}
	for _, e := range extras[number] {
		c := specCase{name: name, path: "extra", value: e, spec: json.RawMessage(e)}
		if given, spec, named := strings.Cut(e, ": {"); named && !strings.HasPrefix(e, "{") {
			c.name, c.spec = given, json.RawMessage("{"+spec)
		}
		all = append(all, c)
	}
	return all
}

func valuesOf(f schemas.Field) []string {
	of := f.Type
	if f.List {
		of = "list"
	}
	all := slices.Clone(values[of])
	for _, value := range f.Values {
		if f.List {
			all = append(all, fmt.Sprintf("[%q]", value))
		} else {
			all = append(all, fmt.Sprintf("%q", value))
		}
	}
	return all
}

// with is a base with a field set to a value.
func with(t *testing.T, base, path, value string) json.RawMessage {
	t.Helper()
	object, at, last := walk(t, base, path)
	if at == nil {
		t.Fatalf("there is no %s", path)
	}
	at[last] = json.RawMessage(value)
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func isIn(t *testing.T, base, path string) bool {
	t.Helper()
	_, at, last := walk(t, base, path)
	return at[last] != nil
}

// walk finds the object that a field is in: of a list that of its first element which has the field.
func walk(t *testing.T, base, path string) (object, at map[string]any, last string) {
	t.Helper()
	if err := json.Unmarshal([]byte(base), &object); err != nil {
		t.Fatalf("%v: %s", err, base)
	}
	parts := strings.Split(path, ".")
	last = parts[len(parts)-1]
	ats := []map[string]any{object}
	for _, part := range parts[:len(parts)-1] {
		part, list := strings.CutSuffix(part, "[]")
		var below []map[string]any
		for _, at := range ats {
			if !list {
				if inner, ok := at[part].(map[string]any); ok {
					below = append(below, inner)
				}
				continue
			}
			elements, _ := at[part].([]any)
			for _, element := range elements {
				if inner, ok := element.(map[string]any); ok {
					below = append(below, inner)
				}
			}
		}
		ats = below
	}
	for _, at := range ats {
		if at[last] != nil {
			return object, at, last
		}
	}
	if len(ats) == 0 {
		return object, nil, last
	}
	return object, ats[0], last
}

// disagreement is what the decoder alone knows, or says otherwise, of values at a path; empty are all values, or all paths.
type disagreement struct {
	why    string
	paths  []string
	values []string
}

// disagreements are all that are known.
var disagreements = []disagreement{
	{why: "null is nothing to the API server, which drops it: the object that is kept does not have it", values: []string{`null`}},
	{
		why:    "a selector as text is a string to the API server",
		paths:  []string{"drain.podSelector", "waitForPodCompletion.podSelector", "validation.daemonSets", "selector"},
		values: values["string"],
	},
	{
		why:   "a selector of pods in a tier is text or an object, which is no type of a structural schema",
		paths: []string{"drain.plan.tiers[].podSelector", "drainPlan.tiers[].podSelector"}, values: append([]string{`{"matchLabels": 1}`}, values["string"]...),
	},
	{
		why:   "the drain plan as a list, KEP-4212's own form, is no object: the API server takes the object alone",
		paths: []string{"drain.plan", "drainPlan"}, values: []string{`[]`},
	},
	{
		why:   `"" is absent to the decoder, and no value to the API server`,
		paths: []string{"sla.do", "validation.conditions[].status", "requestor"}, values: []string{`""`},
	},
	{
		why: "the decoder alone compares durations, and knows their bounds, the syntax of regular expressions and of labels, what is there twice in a list of objects, " +
			"and how many bytes an input has",
		paths: []string{"extra"}, values: slices.Concat(decoders[0], decoders[1], decoders[2]),
	},
	{
		why:   "what a strategy does not have is refused by the API server as zero too",
		paths: []string{"extra"}, values: []string{zeroInTogether},
	},
}

const zeroInTogether = `{"all": true, "strategy": {"type": "allAtOnce", "tries": 0}}`

// known is why the API server and the decoder may disagree about a case; empty if they may not.
func known(c specCase) string {
	for _, d := range disagreements {
		if (d.paths == nil || slices.Contains(d.paths, c.path)) && (d.values == nil || slices.Contains(d.values, c.value)) {
			return d.why
		}
	}
	return ""
}

// change is a merge patch of an object that is there.
type change struct {
	kind        int
	spec, patch string
	taken       bool
}

func patched(kind int, spec, patch string, taken bool) change {
	return change{kind, spec, `{"spec":` + patch + `}`, taken}
}

var changes = []change{
	patched(0, firsts[0], `{"node":"worker-02"}`, false),
	patched(0, firsts[0], `{"requestedBy":"eve"}`, false),
	patched(0, firsts[0], `{"reason":"kernel"}`, false),
	patched(0, bases[0][0], `{"drain":{"mode":null}}`, false),
	{0, firsts[0], `{"metadata":{"labels":{"a":"b"}}}`, true},
	patched(1, `{"nodes":["a"]}`, `{"nodes":["a","b"]}`, false),
	patched(1, `{"nodes":["a"]}`, `{"nodes":null,"all":true}`, false),
	patched(1, `{"nodes":["a"]}`, `{"strategy":{"maxParallel":5}}`, true),
	patched(1, `{"nodes":["a"]}`, `{"strategy":{"order":"zone"}}`, false),
	patched(1, `{"nodes":["a"]}`, `{"strategy":{"type":"allAtOnce"}}`, false),
	patched(1, `{"nodes":["a"],"maintenance":{"priority":1}}`, `{"maintenance":{"priority":2}}`, false),
	patched(1, bases[1][1], `{"stage":"Drain"}`, true),
	patched(1, bases[1][1], `{"stage":"Idle"}`, false),
	patched(1, bases[1][1], `{"stage":null}`, false),
	patched(1, bases[1][1], `{"nodeSelector":null,"selector":"pool=gpu"}`, true),
	patched(1, bases[1][1], `{"drainPlan":null}`, false),
	patched(1, bases[1][1], `{"requestedBy":"eve"}`, false),
	patched(2, bases[2][0], `{"minHealthy":"60%"}`, true),
	patched(2, bases[2][0], `{"unhealthyConditions":null,"selector":{"matchLabels":{"a":"b"}}}`, true),
	patched(2, bases[2][0], `{"requestedBy":"eve"}`, false),
	patched(2, bases[2][0], `{"requestedBy":null}`, false),
}

// listed are so many names, as a list in JSON.
func listed(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("worker-%05d", i)
	}
	text, err := json.Marshal(names)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// labels are so many labels with values of their greatest length.
func labels(n int) string {
	all := map[string]string{}
	for i := range n {
		all[fmt.Sprintf("l%d", i)] = strings.Repeat("v", 63)
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(text)
}
