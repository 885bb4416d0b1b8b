package policy

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/rules/spec"
)

// maintenance decodes an input with its defaults.
func maintenance(t *testing.T, input string) spec.Maintenance {
	t.Helper()
	m, err := spec.Decode([]byte(input), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// compile compiles one rule.
func compile(t *testing.T, when, require string) *Policy {
	t.Helper()
	p, err := Compile([]Rule{{Name: "rule", When: when, Require: require}})
	if err != nil {
		t.Fatalf("%s: %v", require, err)
	}
	return p
}

func worker1() *Node {
	return &Node{
		Name: "worker-1", Labels: map[string]string{"env": "production", "pool": "gpu"},
		Taints: []Taint{{Key: "dedicated", Value: "gpu", Effect: "NoSchedule"}},
	}
}

// Expressions over all that rules may speak of, each with what it comes to for one maintenance.
func TestExpressions(t *testing.T) {
	m := maintenance(t, `{"node":"worker-1","requestor":"ops","ticket":"CHG-17","notBefore":"2026-03-01T22:00:00Z",
		"work":"reboot","readyTimeout":"2h","drain":{"gracePeriodSeconds":30,"plan":{"tiers":[{"podType":"Default","podPriority":5}],"include":["Default"]}},
		"validation":{"checks":["smoke"],"conditions":[{"type":"Ready","forAtLeast":"5m"}]}}`)
	for expression, want := range map[string]bool{
		`maintenance.node == "worker-1" && node.name == maintenance.node`: true,
		`maintenance.approval`: false,
		`maintenance.work == "" || maintenance.requestor in ["sre"]`:                                false,
		`maintenance.drain.force || maintenance.requestor in ["sre"]`:                               false,
		`maintenance.ticket.matches("^CHG-[0-9]+$")`:                                                true,
		`maintenance.ticket.lowerAscii().startsWith("chg")`:                                         true,
		`maintenance.readyTimeout <= duration("2h")`:                                                true,
		`maintenance.readyTimeout < duration("2h")`:                                                 false,
		`maintenance.notBefore > timestamp("2026-03-01T21:59:59Z")`:                                 true,
		`maintenance.notBefore.getHours("Europe/Berlin") == 23`:                                     true,
		`maintenance.drain.gracePeriodSeconds >= 30`:                                                true,
		`maintenance.drain.escalation.exists(r, r.do == "giveBack" && r.after == duration("1h"))`:   true,
		`maintenance.drain.escalation.all(r, r.do != "kill")`:                                       true,
		`maintenance.drain.plan.tiers[0].podPriority == 5`:                                          true,
		`maintenance.drain.plan.include.size() == 1 && "Default" in maintenance.drain.plan.include`: true,
		`maintenance.validation.checks == ["smoke"]`:                                                true,
		`maintenance.validation.conditions[0].forAtLeast == duration("5m")`:                         true,
		`maintenance.hooks.beforeCordon.size() == 0`:                                                true,
		`has(maintenance.sla)`:                                                                      false,
		`has(maintenance.validation)`:                                                               true,
		`has(maintenance.reason)`:                                                                   false,
		`has(maintenance.sla) && maintenance.sla.after > duration("1h")`:                            false,
		`maintenance.?sla.?after.orValue(duration("30m")) == duration("30m")`:                       true,
		`maintenance.?validation.?signal.orValue(true)`:                                             true, // false is not set
		`node.labels["env"] == "production"`:                                                        true,
		`node.labels[?"rack"].orValue("none") == "none"`:                                            true,
		`"env" in node.labels && !("rack" in node.labels)`:                                          true,
		`node.annotations[?"owner"].hasValue()`:                                                     false,
		`node.taints.exists(t, t.key == "dedicated" && t.effect == "NoSchedule")`:                   true,
		`[1, 2].all(x, x > 0)`:                                                                      true,
	} {
		err := compile(t, "", expression).Judge(t.Context(), Case{Maintenance: m, Node: worker1()})
		if got := err == nil; got != want {
			t.Errorf("%s is %v, want %v: %v", expression, got, want, err)
		}
	}
}

// What was never set reads as its zero value, and what is absent has to be asked for first.
func TestAnAbsentFieldRefusesUnlessItIsAskedFor(t *testing.T) {
	err := compile(t, "", `maintenance.sla.after < duration("1h")`).Judge(t.Context(), Case{Maintenance: maintenance(t, `{"node":"n1"}`)})
	if err == nil || !strings.Contains(err.Error(), "policy rule: require could not be evaluated: there is no sla: ask has(...) first") {
		t.Error(err)
	}
}

func TestWhatDoesNotCompile(t *testing.T) {
	deep := strings.Repeat("(", 300) + "true" + strings.Repeat(")", 300)
	for _, c := range []struct {
		rule Rule
		want string
	}{
		{Rule{Name: "a", Require: "maintenance.forse"}, "policy[0] (a).require: line 1, column 12: undefined field 'forse'"},
		{Rule{Name: "a", Require: "true &&\n  nodes.name == 'x'"}, "policy[0] (a).require: line 2, column 3: undeclared reference to 'nodes'"},
		{Rule{Name: "a", Require: "node.labels.env == 3"}, "policy[0] (a).require: line 1, column 17: found no matching overload for '_==_'"},
		{Rule{Name: "a", When: "node.taints[0].keyy == ''", Require: "true"}, "policy[0] (a).when: line 1, column 15: undefined field 'keyy'"},
		{Rule{Name: "a", Require: "approval.name == ''"}, "policy[0] (a).require: line 1, column 9: undefined field 'name'"},
		{Rule{Name: "a", Require: "maintenance.node"}, "policy[0] (a).require: line 1, column 1: want true or false, and this is of type string"},
		{Rule{Name: "a", Require: "dyn(maintenance.node)"}, "policy[0] (a).require: line 1, column 1: want true or false, and this is of type dyn"},
		{Rule{Name: "a", Require: "maintenance.approval &&"}, "policy[0] (a).require: line 1, column 24: syntax error: the expression ends too soon"},
		{Rule{Name: "a", Require: "maintenance.ticket.matches('(')"}, "policy[0] (a).require: line 1, column 28: invalid matches argument"},
		{Rule{Name: "a", Require: "maintenance.readyTimeout < duration('2 h')"}, "policy[0] (a).require: line 1, column 37: invalid duration argument"},
		{Rule{Name: "a", Require: "[1].all(approval, approval > 0)"}, `policy[0] (a).require: "approval" names a variable of a macro`},
		{Rule{Name: "a", Require: "'" + strings.Repeat("x", MaxExpression) + "' == ''"}, "policy[0] (a).require: line "},
		{Rule{Name: "a", Require: deep}, "policy[0] (a).require: line "},
		{Rule{Require: "true"}, `policy[0].name: "" is not a name`},
		{Rule{Name: "No Force", Require: "true"}, `policy[0] (No Force).name: "No Force" is not a name`},
		{Rule{Name: "a"}, "policy[0] (a).require: required"},
		{Rule{Name: "a", Require: "true", Message: strings.Repeat("x", MaxMessage+1)}, "policy[0] (a).message: has 1025 bytes: want 1024 at most"},
	} {
		_, err := Compile([]Rule{c.rule})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+.60v: %v\nwant %s", c.rule, err, c.want)
			continue
		}
		for line := range strings.Lines(err.Error()) {
			if !strings.HasPrefix(line, "policy[0]") {
				t.Errorf("a line that names no rule: %s", line)
			}
		}
	}
	if _, err := Compile([]Rule{{Name: "a", Require: "true"}, {Name: "a", Require: "nope"}}); err == nil ||
		!strings.Contains(err.Error(), `policy[1] (a).name: "a" is the name of policy[0] already`) || !strings.Contains(err.Error(), "undeclared reference to 'nope'") {
		t.Errorf("all mistakes are told at once: %v", err)
	}
	if _, err := Compile(make([]Rule, MaxRules+1)); err == nil || !strings.Contains(err.Error(), "has 101 rules: want 100 at most") {
		t.Error(err)
	}
}

// Every field of an input can be spoken of, under its name in JSON.
func TestEveryFieldHasAType(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var paths func(at string, of reflect.Type) []string
	paths = func(at string, of reflect.Type) (all []string) {
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct {
			at, of = at+"[0]", of.Elem()
		}
		if of.Kind() != reflect.Struct || of == timeType || seen[of] {
			return []string{at}
		}
		seen[of] = true
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			all = append(all, paths(at+"."+name, of.Field(i).Type)...)
		}
		return all
	}
	for _, v := range variables {
		all := paths(v.name, v.of)
		if len(all) < 1 || v.name != varStarter && len(all) < 4 {
			t.Errorf("%s has only %v", v.name, all)
		}
		for _, path := range all {
			if _, err := Compile([]Rule{{Name: "rule", Require: path + " == " + path}}); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestWhichRulesAreJudgedWhen(t *testing.T) {
	p, err := Compile([]Rule{
		{Name: "always", Require: "false"},
		{Name: "of-node", When: `node.name == "worker-1"`, Require: "false"},
		{Name: "of-approval", Require: `approval.by == "amy"`},
		{Name: "of-both", When: `has(approval.principal)`, Require: `node.labels["env"] == "test"`},
	})
	if err != nil {
		t.Fatal(err)
	}
	amy, verified := &Approval{By: "amy"}, "jwt:amy"
	for name, c := range map[string]struct {
		c    Case
		want string
	}{
		"nothing is known of the node":      {Case{}, "always"},
		"a node":                            {Case{Node: worker1()}, "always of-node"},
		"an approval":                       {Case{Node: worker1(), Approval: amy}, ""},
		"an approval by somebody else":      {Case{Node: worker1(), Approval: &Approval{By: "bob"}}, "of-approval"},
		"an approval that was verified":     {Case{Node: worker1(), Approval: &Approval{By: "amy", Principal: &verified}}, "of-both"},
		"an approval, and there is no node": {Case{Approval: amy}, "of-both"},
	} {
		c.c.Maintenance = maintenance(t, `{"node":"worker-1"}`)
		var rules []string
		var refused Refused
		if err := p.Judge(t.Context(), c.c); err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		for _, r := range refused {
			rules = append(rules, r.Rule)
		}
		if got := strings.Join(rules, " "); got != c.want {
			t.Errorf("%s: refused by %q, want %q", name, got, c.want)
		}
	}
	if !p.JudgesApprovals() || !p.NeedsNode(true) || !p.NeedsNode(false) {
		t.Error("what the rules speak of is not known")
	}
	only := compile(t, "", "maintenance.approval")
	if only.JudgesApprovals() || only.NeedsNode(true) || only.NeedsNode(false) {
		t.Error("a rule speaks of what it does not name")
	}
	var none *Policy
	if none.Judge(t.Context(), Case{}) != nil || none.JudgesApprovals() || none.NeedsNode(false) {
		t.Error("no policy refuses")
	}
}

// A principal that nobody verified is no empty text, which a comparison could be content with.
func TestAnUnverifiedPrincipalRefuses(t *testing.T) {
	p := compile(t, "", `approval.principal != starter.principal`)
	m := maintenance(t, `{"node":"n1","requestor":"ops"}`)
	ops, amy := "jwt:ops", "jwt:amy"
	for name, approver := range map[string]*string{"nobody": nil, "somebody": &amy} {
		if p.Judge(t.Context(), Case{Maintenance: m, Approval: &Approval{By: "amy", Principal: approver}}) == nil {
			t.Errorf("nobody verified the starter, and an approval by %s counts", name)
		}
	}
	for name, c := range map[string]struct {
		principal *string
		refused   bool
	}{"nobody": {nil, true}, "the requestor": {&ops, true}, "another": {&amy, false}} {
		err := p.Judge(t.Context(), Case{Maintenance: m, Approval: &Approval{By: "amy", Principal: c.principal}, Starter: Starter{Principal: &ops}})
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A rule that lets a claim decide about a verified name is refused where it is written.
func TestAVerifiedNameIsNotComparedWithAClaim(t *testing.T) {
	for _, refused := range []string{
		`approval.principal != "jwt:" + maintenance.requestor + "@example.com"`,
		`has(approval.principal) && approval.principal != maintenance.requestor`,
		`approval.by == starter.principal`,
		`approval.?principal.orValue("") != maintenance.requestor`,
		`approval.principal in [maintenance.requestor]`,
		`approval.principal.startsWith("jwt:" + maintenance.requestor)`,
		`!maintenance.additionalRequestors.exists(r, r == starter.principal)`,
		`[approval.principal].all(p, p != maintenance.requestor)`,
		`(maintenance.cordon ? starter.principal : "") != approval.by`,
		`dyn(approval).principal != maintenance.requestor`,
		`dyn(approval).principal != dyn(maintenance).requestor`,
		`dyn(starter).principal != maintenance.requestor`,
		`[approval][0].principal != maintenance.requestor`,
		`{"a": approval}["a"].principal != maintenance.requestor`,
		`{"a": approval}.a.principal != maintenance.requestor`,
		`[approval].exists(a, a.principal == maintenance.requestor)`,
		`[approval.principal].exists(p, p == maintenance.requestor)`,
		`[maintenance.requestor].exists_one(p, p == approval.principal)`,
		`[maintenance.requestor].filter(p, p == approval.principal).size() == 0`,
		`[maintenance.requestor].map(p, p + "@example.com")[0] != approval.principal`,
		`["amy", "bob"].exists(n, maintenance.requestor == n && approval.principal == "jwt:" + n)`,
		`["amy", "bob"].all(n, (maintenance.requestor == n ? approval.principal : "") != n)`,
		`approval.?principal.optMap(p, p != maintenance.requestor).orValue(false)`,
		`optional.of(maintenance.requestor).optMap(r, r != approval.principal).value()`,
		`(maintenance.requestor == "ops" ? "jwt:ops" : "jwt:amy") != approval.principal`,
		`(maintenance.requestor == "ops") != (approval.principal == "jwt:ops")`,
		`{approval.principal: true}[maintenance.requestor]`,
		`[{approval.principal: 1}[maintenance.requestor]].all(x, true)`,
		`maintenance.requestor in {approval.principal: 1}`,
		`size(approval.principal) == size(maintenance.requestor)`,
		`approval.principal == node.labels["owner"]`,
		`approval.principal.matches(maintenance.requestor)`,
		`string(approval.principal) == string(approval.comment)`,
	} {
		_, err := Compile([]Rule{{Name: "eyes", Require: refused}})
		if err == nil || !strings.Contains(err.Error(), "policy[0] (eyes).require: line 1") || !strings.Contains(err.Error(), "approval.principal != starter.principal") {
			t.Errorf("%s: %v", refused, err)
		}
	}
	for _, taken := range []string{
		`approval.principal != starter.principal`,
		`approval.by != maintenance.requestor`,
		`maintenance.requestor == "ops" && approval.principal == "jwt:amy"`,
		`maintenance.type != "planned" || starter.principal in ["jwt:amy", "jwt:bob"]`,
		`has(approval.principal) == maintenance.approval`,
		`!maintenance.additionalRequestors.exists(r, r == "root") && approval.principal != "jwt:root"`,
		`["jwt:amy", "jwt:bob"].exists(p, p == approval.principal) || maintenance.requestor == "ops"`,
		`maintenance.type == "planned" ? approval.principal == "jwt:amy" : starter.principal != approval.principal`,
		`approval.?principal.orValue("").startsWith("jwt:") && node.labels[?"env"].orValue("") == "test"`,
		`!(has(starter.principal) && starter.principal == "jwt:ops" && maintenance.drain.mode == "none")`,
		`dyn(maintenance).requestor != approval.by`,
	} {
		if _, err := Compile([]Rule{{Name: "eyes", Require: taken}}); err != nil {
			t.Errorf("%s: %v", taken, err)
		}
	}
}

func TestARefusalNamesTheRuleAndItsMessage(t *testing.T) {
	p, err := Compile([]Rule{
		{Name: "with-message", Require: "maintenance.approval", Message: "ask somebody"},
		{Name: "without", Require: "maintenance.approval\n  || maintenance.ticket != ''"},
		{Name: "not-evaluated", When: "node.labels['env'] == 'production'", Require: "true"},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = p.Judge(t.Context(), Case{Maintenance: maintenance(t, `{"node":"n1"}`), Node: &Node{Name: "n1"}})
	if want := "policy with-message: ask somebody; policy without: it requires maintenance.approval || maintenance.ticket != ''; " +
		"policy not-evaluated: when could not be evaluated: no such key: env"; err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	var many Refused
	for i := range 30 {
		many = append(many, Refusal{Rule: fmt.Sprint("r", i), Message: "no"})
	}
	if text := many.Error(); !strings.HasSuffix(text, "policy r4: no; and 25 more rules") {
		t.Error(text)
	}
}

// An expression that costs too much refuses, and does not keep a worker busy.
func TestCostIsBounded(t *testing.T) {
	var hooks []string
	for i := range 64 {
		hooks = append(hooks, fmt.Sprintf("%q", fmt.Sprint("hook-", i)))
	}
	list := strings.Join(hooks, ",")
	m := maintenance(t, `{"node":"n1","hooks":{"beforeCordon":[`+list+`]}}`)
	all := "maintenance.hooks.beforeCordon"
	p := compile(t, "", all+".all(a, "+all+".all(b, "+all+".all(c, "+all+".all(d, a + b != c + d + 'x'))))")
	began := time.Now()
	err := p.Judge(t.Context(), Case{Maintenance: m})
	if err == nil || !strings.Contains(err.Error(), "policy rule: require could not be evaluated") || !strings.Contains(err.Error(), "cost limit exceeded") {
		t.Error(err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Judge(gone, Case{Maintenance: m}); err == nil {
		t.Error("an evaluation that nobody wants any more is a consent")
	}
}

// Whatever is said in a maintenance, judging it neither panics nor changes it.
func FuzzJudge(f *testing.F) {
	f.Add(`maintenance.drain.escalation.all(r, r.do != "kill")`)
	f.Add(`node.labels[?"env"].orValue("") == approval.principal`)
	f.Add(`type(maintenance) == type(node) || maintenance == maintenance`)
	f.Add(`maintenance.validation.conditions.map(c, c.type).join(",") in [string(approval.at)]`)
	f.Fuzz(func(t *testing.T, expression string) {
		p, err := Compile([]Rule{{Name: "rule", Require: expression}})
		if err != nil {
			return
		}
		m, err := spec.Decode([]byte(`{"node":"n1","drain":{"gracePeriodSeconds":3},"validation":{"signal":true}}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		before := m
		_ = p.Judge(t.Context(), Case{Maintenance: m, Node: worker1(), Approval: &Approval{By: "amy"}})
		if !reflect.DeepEqual(before, m) {
			t.Error("the maintenance was changed")
		}
	})
}
