package profile

import (
	"os"
	"slices"
	"strings"
	"testing"

	"drydock.dev/drydock/rules/profile/conf"
	"drydock.dev/drydock/rules/profile/state"
)

const wrongProblems = `intervals.requeue: required: how often nodes are evaluated, such as 1m
instances.check[0] (approval).config.key: required: the key of a label
instances.check[1] (max).config.max: required: how many nodes may be in maintenance
instances.check[2] (typo).type: there is no kind of check "haslabel": write hasLabel
instances.check[3] (nothing).config: required: write config with what the kind needs
instances.trigger[0] (drain).config.action: "Drain" is not an action: write cordon, uncordon or drain
instances.notify[0] (slack).config.hook: ${HOOKS} has no value: the environment variable is unset or empty, and no key at the top of the file has its name: set the variable for the worker, or write ${NAME:default}
instances.notify[0] (slack).schedule: required: a notification without a schedule is never sent: write type and config, such as type: periodic
instances.notify[1] (mail).config.message: template: message:1:3: executing "message" at <.Nope>: can't evaluate field Nope in type notice.Parameters: use .Node, .State, .Profile, .Profile.Current, .Profile.Last, .InMaintenance, .LastTransition or .LogDetails
instances.notify[1] (mail).schedule.type: there is no schedule "weekly": write one of oneshot, periodic, scheduled
profiles[0].name: required: the name that is in the label
profiles[1] (os-patching).operational.transitions[0].check: there is no check instance "unknown": declare it in instances.check, or correct the name
profiles[1] (os-patching).operational.transitions[1].check: required: an expression over checks
profiles[1] (os-patching).operational.transitions[1].next: required: the state that it leads to
profiles[1] (os-patching).maintenance-required.notify: there is no notify instance "nobody": declare it in instances.notify, or correct the name
profiles[1] (os-patching).maintenance-required.transitions[0].check: a parenthesis is not closed: write names of checks with &&, ||, ! and parentheses
profiles[1] (os-patching).maintenance-required.transitions[0].trigger: there is no trigger instance "invalid": declare it in instances.trigger, or correct the name
profiles[1] (os-patching).maintenance-required.transitions[0].next: "In-Maintenance" is not a state: write operational, maintenance-required or in-maintenance
profiles[1] (os-patching).in-maintenance.enter: "drain || drain": only && may stand between names here: write names with && between them
profiles[1] (os-patching).in-maintenance.transitions[0].check: check instance "hypervisor" is of kind checkHypervisor, which is not built here: take it out of the chain`

func TestAllProblemsAtOnce(t *testing.T) {
	file, err := os.ReadFile("testdata/wrong.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Load(file, environment())
	if err == nil {
		t.Fatal("it is taken")
	}
	if err.Error() != wrongProblems {
		t.Errorf("%s", err)
	}
	if report := Lint([]byte("intervals: {requeue: 1m}"), environment()); report.Problems == nil || report.Warnings == nil {
		t.Error("lists are null in JSON")
	}
	if got := Lint(file, environment()).Problems; len(got) != strings.Count(wrongProblems, "\n")+1 || got[0].Path != "intervals.requeue" {
		t.Errorf("%+v", got)
	}
}

func TestConfigurationsThatAreRead(t *testing.T) {
	for name, file := range map[string]string{
		"the least":                    "intervals: {requeue: 60}",
		"instances without anything":   "intervals: {requeue: 1.5}\ninstances:\nprofiles:\n",
		"empty states":                 machine("- {name: p, operational: ~, maintenance-required: {}, in-maintenance: {enter: '', notify: ~, transitions: []}}"),
		"chains on several lines":      machine("- name: p\n  operational:\n    transitions:\n    - check: |\n        a &&\n        b\n      next: in-maintenance\n"),
		"an instance that is not used": "intervals: {requeue: 1m}\ninstances: {check: [{type: checkHypervisor, name: h, config: {evicted: true}}], trigger: [{type: alterHypervisor, name: i}]}",
		"instant unquoted":             "intervals: {requeue: 1m}\ninstances: {notify: [{type: slack, name: n, config: {hook: h, channel: c, message: m}, schedule: {type: scheduled, config: {instant: 11:00, weekdays: [\"tue\"]}}}]}",
		"affinity without config":      "intervals: {requeue: 1m}\ninstances: {check: [{type: affinity, name: a}, {type: affinity, name: b, config: ~}]}",
		"an unknown key":               "intervals: {requeue: 1m}\nanything: else\n",
	} {
		if c, err := Load([]byte(file), environment()); err != nil || !c.Known(state.DefaultProfile) || c.Requeue <= 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	for file, want := range map[string]string{
		"":                          "the file has nothing in it",
		"profiles: []":              "intervals.requeue: required",
		"intervals: {requeue: 0s}":  "intervals.requeue: required",
		"intervals: {requeue: -1m}": "intervals.requeue: -1m0s is negative",
		"intervals: 5":              "intervals: is \"5\", and keys with values are wanted",
		"intervals: {requeue: 1m}\nprofiles: {a: {}}":                                                         "profiles: has keys of its own, and a list is wanted",
		"intervals: {requeue: 1m}\nprofiles: [~]":                                                             "profiles[0]: there is nothing in it",
		"intervals: {requeue: 1m}\ninstances: {check: [{type: hasLabel, name: a, config: ~}]}":                "instances.check[0] (a).config: required",
		"intervals: {requeue: 1m}\ninstances: {check: [{name: a}]}":                                           "instances.check[0] (a).type: required",
		machine("- {name: p, operational: {transitions: [{check: invalid&&invalid, next: in-maintenance}]}}"): "profiles[0] (p).operational.transitions[0].check: there is no check instance \"invalid\"",
		machine("- {name: p, operational: {notify: invalid&&invalid}}"):                                       "profiles[0] (p).operational.notify: there is no notify instance \"invalid\"",
		machine("- {name: p, operational: {enter: invalid&&invalid}}"):                                        "profiles[0] (p).operational.enter: there is no trigger instance \"invalid\"",
	} {
		_, err := Load([]byte(file), environment())
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestTheLastOfANameCounts(t *testing.T) {
	c := load(t, `
intervals: {requeue: 1m}
instances:
  trigger:
  - {type: alterLabel, name: t, config: {key: first}}
  - {type: alterLabel, name: t, config: {key: last}}
profiles:
- {name: p, operational: {enter: t}}
- {name: q}
- {name: p, in-maintenance: {enter: t}}
- {name: default, operational: {enter: t}}
`)
	of, _ := c.Trigger("t")
	if got := of.Of.Describe(); got != `set label last to ""` {
		t.Error(got)
	}
	var names []string
	for _, p := range c.Profiles {
		names = append(names, p.Name)
	}
	if !slices.Equal(names, []string{"q", "p", "default"}) {
		t.Error(names)
	}
	p, _ := c.Profile("p")
	if p.Stage(state.Operational).Enter != nil || p.Stage(state.Maintenance).Enter == nil {
		t.Errorf("%+v", p)
	}
}

func TestWhatLintWarnsOf(t *testing.T) {
	for _, c := range []struct{ name, file, path, text string }{
		{"legacy intervals.notify", "intervals: {requeue: 1m, notify: 5h}", "intervals.notify", "of an older version"},
		{"legacy keys", "intervals: {requeue: 1m}\nkeys: {state: a}", "keys", "of an older version"},
		{"legacy check under a state", machine("- {name: p, operational: {check: a}}"), "profiles[0] (p).operational.check", "of an older version"},
		{"legacy trigger under a state", machine("- {name: p, operational: {trigger: t}}"), "profiles[0] (p).operational.trigger", "of an older version"},
		{"unknown key at the top", "intervals: {requeue: 1m}\nprofile: []", "profile", "there is no such key"},
		{"unknown key of a profile", machine("- {name: p, maintenanceRequired: {}}"), "profiles[0] (p).maintenanceRequired", "there is no such key"},
		{"unknown key of a state", machine("- {name: p, operational: {exit: t}}"), "profiles[0] (p).operational.exit", "there is no such key"},
		{"unknown key of a transition", machine("- {name: p, operational: {transitions: [{check: a, next: operational, triggers: t}]}}"), "profiles[0] (p).operational.transitions[0].triggers", "there is no such key"},
		{"unknown key of instances", "intervals: {requeue: 1m}\ninstances: {checks: []}", "instances.checks", "there is no such key"},
		{"unknown key of an instance", "intervals: {requeue: 1m}\ninstances: {trigger: [{type: eviction, name: e, conf: {}, config: {action: drain}}]}", "instances.trigger[0] (e).conf", "there is no such key"},
		{"unknown key of a config", "intervals: {requeue: 1m}\ninstances: {trigger: [{type: eviction, name: e, config: {action: drain, force: true}}]}", "instances.trigger[0] (e).config.force", "there is no such key"},
		{"unknown key of a schedule", strings.Replace(machine(""), "{type: periodic, config: {}}", "{type: periodic, every: 1h, config: {after: 1h}}", 1), "instances.notify[0] (say).schedule.every", "there is no such key"},
		{"unknown key of a schedule's config", strings.Replace(machine(""), "{type: periodic, config: {}}", "{type: periodic, config: {after: 1h}}", 1), "instances.notify[0] (say).schedule.config.after", "there is no such key"},
		{"schedule without config", strings.Replace(machine(""), "{type: periodic, config: {}}", "{type: periodic}", 1), "instances.notify[0] (say).schedule.config", "maintenance-controller wants it"},
		{"timeouts of a drain", "intervals: {requeue: 1m}\ninstances: {trigger: [{type: eviction, name: e, config: {action: drain, evictionTimeout: 5m}}]}", "instances.trigger[0] (e).config.evictionTimeout", "it is ignored"},
		{"not built", "intervals: {requeue: 1m}\ninstances: {check: [{type: kubernikusCount, name: k, config: {cluster: c}}]}", "instances.check[0] (k).type", "kubernikusCount is not built here"},
		{"no name", "intervals: {requeue: 1m}\ninstances: {check: [{type: affinity}]}", "instances.check[0].name", "without a name"},
		{"a name twice", "intervals: {requeue: 1m}\ninstances: {check: [{type: affinity, name: a}, {type: affinity, name: a}]}", "instances.check[0] (a)", "the last counts"},
		{"a profile that no label can name", machine("- {name: a--b}"), "profiles[0] (a--b).name", "has the -- that stands between"},
		{"a profile that cannot stand in a label", machine("- {name: a b}"), "profiles[0] (a b).name", "cannot stand in a label"},
		{"a profile twice", machine("- {name: p}\n- {name: p}"), "profiles[1] (p)", "the last counts"},
		{"a key twice", "intervals: {requeue: 1m}\nintervals: {requeue: 2m}", "", "a key is there twice"},
		{"a name that is a boolean", "intervals: {requeue: 1m}\ninstances: {check: [{type: affinity, name: y}]}", "instances.check[0] (true).name", "write it in quotes"},
		{"another document", "intervals: {requeue: 1m}\n---\nprofiles: []\n", "", "another document"},
		{"not used", "intervals: {requeue: 1m}\ninstances: {check: [{type: affinity, name: a}]}", "instances.check[0] (a)", "no chain has it"},
		{"unreachable", machine("- {name: p, in-maintenance: {transitions: [{check: a, next: operational}]}}"), "profiles[0] (p).in-maintenance", "no transition leads to this state"},
		{"no way out", machine("- {name: p, operational: {transitions: [{check: a, next: in-maintenance}]}}"), "profiles[0] (p).in-maintenance", "no transition leads out"},
		{"the same check before", machine("- {name: p, operational: {transitions: [{check: a, next: operational}, {check: a, next: in-maintenance}]}}"), "profiles[0] (p).operational.transitions[1]", "has the same check"},
		{"triggers that are mixed up there", machine("- {name: p, operational: {transitions: [{check: a, trigger: t, next: in-maintenance}, {check: b, trigger: u, next: in-maintenance}]}}"), "profiles[0] (p).operational.transitions[1].trigger", "runs the triggers of transitions[0]"},
		{"the same state before others", machine("- {name: p, operational: {transitions: [{check: a, next: operational}, {check: b, next: in-maintenance}]}}"), "profiles[0] (p).operational.transitions[0]", "are not looked at"},
		{"without spaces", machine("- {name: p, operational: {transitions: [{check: a&&b, next: operational}]}}"), "profiles[0] (p).operational.transitions[0].check", "cannot read the expression"},
		{"a name with a dash", "intervals: {requeue: 1m}\ninstances: {check: [{type: affinity, name: a-b}]}\nprofiles: [{name: p, operational: {transitions: [{check: a-b, next: operational}]}}]", "profiles[0] (p).operational.transitions[0].check", "cannot read the name \"a-b\""},
		{"a status that is a boolean", "intervals: {requeue: 1m}\ninstances: {check: [{type: condition, name: c, config: {type: Ready, status: True}}]}", "instances.check[0] (c).config.status", "which no condition has"},
		{"over midnight", "intervals: {requeue: 1m}\ninstances: {check: [{type: timeWindow, name: c, config: {start: 22:00, end: 04:00, weekdays: mon}}]}", "instances.check[0] (c).config", "does not read a window like this"},
		{"never open", "intervals: {requeue: 1m}\ninstances: {check: [{type: timeWindow, name: c, config: {start: 22:00, end: 22:00, weekdays: mon}}]}", "instances.check[0] (c).config.end", "never open"},
		{"no Lease", "intervals: {requeue: 1m}\ninstances: {check: [{type: stagger, name: c, config: {duration: 1m, leaseName: a, leaseNamespace: b, parallel: 0}}]}", "instances.check[0] (c).config.parallel", "it never holds"},
	} {
		t.Run(c.name, func(t *testing.T) {
			report := Lint([]byte(c.file), environment())
			if len(report.Problems) > 0 {
				t.Errorf("problems: %v", report.Problems)
			}
			if !slices.ContainsFunc(report.Warnings, func(p conf.Problem) bool {
				return p.Path == c.path && strings.Contains(p.Error(), c.text)
			}) {
				t.Errorf("%v", report.Warnings)
			}
		})
	}
}

// A value of the wrong type is one problem: the keys that it lacks for that are none.
func TestOneMistakeIsOneProblem(t *testing.T) {
	for name, c := range map[string]struct {
		file     string
		problems []string
		warnings int
	}{
		"intervals are a list": {"intervals: [1]", []string{"intervals: is a list"}, 0},
		"instances": {
			"intervals: {requeue: 1m}\ninstances: {check: [text, {type: hasLabel, name: a, config: [1]}], notify: [[a], {type: slack, name: s, config: {hook: h, channel: c, message: m}, schedule: weekly}]}",
			[]string{
				"instances.check[0]: is \"text\"", "instances.notify[0]: is a list", "instances.check[1] (a).config: is a list",
				"instances.notify[1] (s).schedule: is \"weekly\"",
			}, 2,
		},
		"a variable for a whole configuration": {
			"intervals: {requeue: 1m}\ninstances: {trigger: [{type: eviction, name: e, config: \"${NOPE}\"}]}", []string{"instances.trigger[0] (e).config: ${NOPE} has no value"}, 1,
		},
		"transitions": {
			"intervals: {requeue: 1m}\nprofiles: [7, {name: p, operational: {transitions: [5]}}]",
			[]string{"profiles[0]: is \"7\"", "profiles[1] (p).operational.transitions[0]: is \"5\""}, 0,
		},
		"windows": {
			"intervals: {requeue: 1m}\ninstances: {check: [{type: timeWindow, name: w, config: {windows: [5]}}]}", []string{"instances.check[0] (w).config.windows[0]: is \"5\""}, 2,
		},
		"a name that YAML takes for a boolean": {
			machine("- {name: p, operational: {transitions: [{check: y, next: operational}]}}"),
			[]string{"profiles[0] (p).operational.transitions[0].check: there is no check instance \"true\": write it in quotes"}, 10,
		},
	} {
		t.Run(name, func(t *testing.T) {
			report := Lint([]byte(c.file), environment())
			if len(report.Problems) != len(c.problems) || len(report.Warnings) != c.warnings {
				t.Errorf("%d problems: %v; %d warnings: %v", len(report.Problems), report.Problems, len(report.Warnings), report.Warnings)
			}
			for _, want := range c.problems {
				if !slices.ContainsFunc(report.Problems, func(p conf.Problem) bool { return strings.HasPrefix(p.Error(), want) }) {
					t.Errorf("no %s in %v", want, report.Problems)
				}
			}
		})
	}
}

// Keys at the top may be what references name.
func TestKeysThatAreVariablesAreOfUse(t *testing.T) {
	report := Lint([]byte("key: k\nnobody: x\nintervals: {requeue: 1m}\ninstances: {check: [{type: hasLabel, name: b, config: {key: \"${key}\"}}, {type: affinity, name: a}]}"), environment())
	var paths []string
	for _, w := range report.Warnings {
		paths = append(paths, w.Path)
	}
	if !slices.Equal(paths, []string{"nobody", "instances.check[0] (b)", "instances.check[1] (a)"}) {
		t.Error(paths)
	}
}

func TestLintIsSilentWhereAllIsWell(t *testing.T) {
	for _, name := range []string{"document.yaml", "flatcar.yaml"} {
		file, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if report := Lint(file, environment()); len(report.Problems)+len(report.Warnings) > 0 {
			t.Errorf("%s: %v %v", name, report.Problems, report.Warnings)
		}
	}
}

func TestMermaid(t *testing.T) {
	p, _ := loadFile(t, "document.yaml").Profile("os-patching")
	const want = `---
title: "os-patching"
---
stateDiagram-v2
    [*] --> operational
    state "operational" as operational
    state "maintenance-required" as maintenance_required
    state "in-maintenance" as in_maintenance
    operational --> maintenance_required: needs_patch
    maintenance_required --> in_maintenance: check_approval #38;#38; nodes_in_maintenance / cordon_node, remove_approval
    maintenance_required: notify / notify_slack
    in_maintenance --> operational: node_ready #38;#38; #33;needs_patch / uncordon_node
    in_maintenance: enter / drain_node, reboot_ok
`
	if got := p.Mermaid(); got != want {
		t.Errorf("%s", got)
	}
	odd := load(t, "intervals: {requeue: 1m}\ninstances: {check: [{type: affinity, name: 'a;<b>\"#:'}]}\nprofiles: [{name: \"x\\n---\\n\", operational: {transitions: [{check: 'a;<b>\"#:', next: operational}]}}]")
	p = odd.Profiles[0]
	if got := p.Mermaid(); !strings.Contains(got, `title: "x\n---\n"`) || !strings.Contains(got, "operational --> operational: a#59;#60;b#62;#34;#35;#58;\n") {
		t.Errorf("%s", got)
	}
}

// Who looks at a file elsewhere need not have the variables of where it is used.
func TestVariablesWithoutAValueAreForgiven(t *testing.T) {
	const file = `
intervals: {requeue: "${EVERY}"}
instances:
  notify: [{type: slack, name: s, config: {hook: "${HOOK:?where to}", channel: c, message: m}, schedule: {type: periodic}}]
  trigger: [{type: maintenance, name: m, config: {reason: "${WHY}"}}]
profiles: [{name: p, operational: {notify: s, enter: m}}]
`
	strict := Lint([]byte(file), Environment{})
	if len(strict.Problems) != 3 || strict.Problems[0].Variable != "EVERY" || strict.Problems[1].Variable != "WHY" || strict.Problems[2].Text != "where to" {
		t.Errorf("%+v", strict.Problems)
	}
	lenient := Lint([]byte(file), Environment{AllowUnset: true})
	if len(lenient.Problems) != 0 || len(lenient.Warnings) != len(strict.Warnings)+3 {
		t.Errorf("%+v", lenient)
	}
	if c, err := Load([]byte(file), Environment{AllowUnset: true}); err != nil || !c.Known("p") {
		t.Error(err)
	}
	if _, err := Load([]byte("intervals: {requeue: -1m}"), Environment{AllowUnset: true}); err == nil {
		t.Error("what else is wrong is forgiven too")
	}
}
