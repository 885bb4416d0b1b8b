package starter

import (
	"fmt"
	"slices"
	"strings"

	generator "github.com/invopop/jsonschema"
)

// rule is a rule of x-kubernetes-validations: an expression in CEL, and what is said where it is false.
type rule struct{ cel, message string }

func (r rule) written() map[string]any {
	return map[string]any{"rule": strings.Join(strings.Fields(r.cel), " "), "message": r.message}
}

const (
	// together is true in the spec of a plan whose nodes go through its stages together.
	together = `(has(self.strategy) && has(self.strategy.type) && self.strategy.type == 'allAtOnce')`
	// forced are the rungs that need the mode evict.
	forced = `['bypassBudget', 'kill']`
)

var (
	positive = rule{`self.matches('[1-9]')`, "must be more than 0s"}
	// unique is of lists whose order counts: a set has none.
	unique = rule{`self.all(a, self.exists_one(b, a == b))`, "a name is there twice"}
)

// celRules are what inputs are refused for that concerns several fields, or cannot be said otherwise, by their paths. What a worker's configuration
// has, bounds of durations, and the syntax of selectors and regular expressions are left to the decoder.
var celRules = map[string]map[string][]rule{
	"maintenance": {
		"": {
			{`!has(self.sla) || !has(self.sla.do) || !(self.sla.do in ` + forced + `) || !has(self.drain) || !has(self.drain.mode) || self.drain.mode == 'evict'`,
				"sla.do: bypassBudget and kill need the drain mode evict"},
			{`!has(self.outOfService) || !self.outOfService || has(self.work) && self.work != ''`,
				"outOfService: work is required: its success is what proves that the node is off"},
			{`!has(self.outOfService) || !self.outOfService || !has(self.drain) || !has(self.drain.mode) || self.drain.mode != 'external'`,
				"outOfService: drain.mode external: on a node that is off nobody drains; use evict, wait or none"},
		},
		"drain": {
			{`!has(self.mode) || self.mode == 'evict' || !has(self.escalation) || !self.escalation.exists(r, r.do in ` + forced + `)`,
				"escalation: bypassBudget and kill need the drain mode evict"},
		},
		"drain.escalation": {
			{`self.map(r, r.do in ['giveBack', 'fail']).indexOf(true) in [-1, self.size() - 1]`,
				"giveBack and fail end the drain, so no rung can follow them"},
		},
		"drain.escalation[].after": {positive},
		"drain.namespaces": {
			{`!has(self.include) || !has(self.exclude) || !self.include.exists(n, n in self.exclude)`, "a namespace is included and excluded too"},
		},
		"drain.plan": {
			{`!has(self.include) || self.include.size() > 0 || has(self.tiers) && self.tiers.size() > 0`,
				"has no tiers and includes no pod types: no pod would leave; leave it out to drain all Default pods"},
		},
		"hooks.beforeCordon":  {unique},
		"hooks.afterDrain":    {unique},
		"hooks.beforeRelease": {unique},
		"sla.after":           {positive},
		"validation.allocatable[]": {
			{`(has(self.name) && self.name != '') != (has(self.nameRegex) && self.nameRegex != '')`, "want exactly one of name and nameRegex"},
		},
		"validation.deadline": {positive},
		"validation.every":    {positive},
	},
	"plan": {
		"": {
			{`[has(self.nodes) && self.nodes.size() > 0, has(self.selector) && self.selector != '', has(self.nodeSelector), has(self.all) && self.all].exists_one(given, given)`,
				"want exactly one of nodes, selector, nodeSelector and all"},
			{`!has(self.requestor) || (self.requestor == 'plans') == ` + together,
				"requestor: plans is that of the maintenances which plans of strategy allAtOnce share, and of no others: leave it out"},
			{together + ` || !has(self.stage) && !has(self.drainPlan)`, "stage and drainPlan are of strategy allAtOnce"},
			{`!has(self.strategy) || !has(self.strategy.onBlocked) || self.strategy.onBlocked == 'wait' ||
				!has(self.maintenance) || !has(self.maintenance.drain) || !has(self.maintenance.drain.escalation)`,
				"maintenance.drain.escalation: onBlocked skip and abort end a drain after blockedAfter: leave one of them out"},
			{`!` + together + ` || !has(self.maintenance) || !(has(self.maintenance.additionalRequestors) || has(self.maintenance.waitForPodCompletion) ||
				has(self.maintenance.cordon) && !self.maintenance.cordon ||
				has(self.maintenance.preflight) && self.maintenance.preflight != 'off' ||
				has(self.maintenance.work) && self.maintenance.work != '' ||
				has(self.maintenance.hooks) && has(self.maintenance.hooks.afterDrain) && self.maintenance.hooks.afterDrain.size() > 0)`,
				"maintenance: what plans of strategy allAtOnce share has none of additionalRequestors, waitForPodCompletion, cordon false, preflight, work and hooks.afterDrain"},
			{`!` + together + ` || !has(self.maintenance) || !has(self.maintenance.drain) || !(has(self.maintenance.drain.plan) ||
				has(self.maintenance.drain.mode) && self.maintenance.drain.mode in ['external', 'none'] ||
				has(self.maintenance.drain.escalation) && self.maintenance.drain.escalation.exists(r, r.do == 'giveBack'))`,
				"maintenance.drain: what plans of strategy allAtOnce share has no plan (use drainPlan), none of the modes external and none, and no rung giveBack"},
			{`!` + together + ` || !has(self.maintenance) || !has(self.maintenance.sla) || !has(self.maintenance.sla.do) || self.maintenance.sla.do != 'giveBack'`,
				"maintenance.sla.do: giveBack: what plans drain together is not given back by one node alone"},
		},
		"strategy": {
			{`!has(self.type) || self.type != 'allAtOnce' || !(has(self.maxParallel) || has(self.canary) || has(self.maxFailures) || has(self.pauseBetween) ||
				has(self.beginWithin) || has(self.order) || has(self.onBlocked) || has(self.blockedAfter) || has(self.comeBackAfter) || has(self.tries))`,
				"all fields but type are of strategy rolling: the nodes of allAtOnce go through its stages together"},
			{`has(self.onBlocked) && self.onBlocked != 'wait' || !has(self.blockedAfter) && !has(self.comeBackAfter) && !has(self.tries)`,
				"blockedAfter, comeBackAfter and tries are of onBlocked skip and abort"},
		},
		"strategy.blockedAfter": {positive},
		"drainPlan": {
			{`!has(self.include) || self.include.size() > 0 || has(self.tiers) && self.tiers.size() > 0`,
				"has no tiers and includes no pod types, so that no pod would leave: leave it out to have all leave"},
		},
	},
	"health": {
		"": {
			{`[has(self.remediationTemplate), has(self.maintenance), has(self.escalatingRemediations) && self.escalatingRemediations.size() > 0].exists_one(given, given)`,
				"want exactly one of remediationTemplate, maintenance and escalatingRemediations"},
			{`!has(self.minHealthy) || !has(self.maxUnhealthy)`, "want one of minHealthy and maxUnhealthy, not both"},
			{`!has(self.flapping) || has(self.escalatingRemediations) && self.escalatingRemediations.size() > 0`,
				"flapping: needs escalatingRemediations: there is no next step without them"},
			{`!has(self.maxUnhealthy) || !(has(self.remediationTemplate) && self.remediationTemplate.kind.lowerAscii() == 'machinedeletionremediationtemplate' ||
				has(self.escalatingRemediations) && self.escalatingRemediations.exists(e, has(e.remediationTemplate) &&
				e.remediationTemplate.kind.lowerAscii() == 'machinedeletionremediationtemplate'))`,
				"maxUnhealthy: MachineDeletionRemediationTemplate deletes nodes, which it cannot count: set minHealthy"},
		},
		"selector": {
			{`has(self.matchLabels) && self.matchLabels.size() > 0 || has(self.matchExpressions) && self.matchExpressions.size() > 0`,
				"want matchLabels or matchExpressions: an empty one would select all nodes"},
		},
		"unhealthyConditions[]": {
			{`has(self.missing) ? !has(self.type) && !has(self.status) : has(self.type) && has(self.status)`, "want type and status, or missing"},
		},
		"groups": {
			{`has(self.minHealthy) != has(self.maxUnhealthy)`, "want one of minHealthy and maxUnhealthy"},
		},
		"escalatingRemediations": {
			{`self.all(e, self.exists_one(f, (has(e.order) ? e.order : 0) == (has(f.order) ? f.order : 0)))`, "an order is there twice"},
		},
		"escalatingRemediations[]": {
			{`has(self.remediationTemplate) != has(self.maintenance)`, "want exactly one of remediationTemplate and maintenance"},
		},
		"escalatingRemediations[].timeout": {positive},
		"flapping.within":                  {positive},
	},
}

// rulesAt are those of a field of an input, also where it is of an input that is a part of this one.
func rulesAt(input, path string) []rule {
	rules := slices.Clone(celRules[input][path])
	for under, of := range inputTypes[input].parts {
		if below, is := strings.CutPrefix(path, under); is && (below == "" || below[0] == '.') {
			rules = append(rules, rulesAt(of.input, strings.TrimPrefix(below, "."))...)
		}
	}
	return rules
}

// bounded are lists that rules look at and that inputs bound by their bytes alone: the cost of a rule is that of the longest list.
var bounded = map[string]int{
	"maintenance:drain.escalation":                                       64,
	"plan:maintenance.drain.escalation":                                  64,
	"health:maintenance.input.drain.escalation":                          64,
	"health:escalatingRemediations[].maintenance.input.drain.escalation": 64,
}

// rulesOfNames are about the requestor that an object has by its name.
var rulesOfNames = []rule{
	{`has(self.spec.requestor) || self.metadata.name.size() >= 2 && self.metadata.name.size() <= 63`,
		"spec.requestor is required: the name of the object, which is the requestor without it, has not 2 to 63 letters"},
	{`(has(self.spec.requestor) ? self.spec.requestor : self.metadata.name) != 'plans'`,
		"spec.requestor: plans is that of the maintenances which plans share: choose another one"},
}

// shortName bounds the name of an object, which is that of what it asks for.
func shortName(of string, most int) rule {
	return rule{fmt.Sprintf(`self.metadata.name.size() <= %d`, most), fmt.Sprintf("metadata.name: the name of %s has at most %d letters", of, most)}
}

// rulesOfStages are which changes of a plan go with its strategy.
var rulesOfStages = []rule{
	{together + ` || ` + unchanged("nodes", "selector", "nodeSelector", "all", "exclude"), "a plan that is rolling keeps the nodes that it was created with"},
	{`!has(oldSelf.stage) || oldSelf.stage == 'Idle' || has(self.stage) && self.stage in [oldSelf.stage, 'Drain']`, "stage: the order is Idle, Cordon, Drain, and no plan goes back"},
}

// constant has all fields of a spec but those that may change stay as they are.
func constant(schema *generator.Schema, changing []string) rule {
	const begin = "cannot change: "
	switch {
	case changing == nil:
		return rule{unchanged("requestedBy"), "requestedBy " + begin + "it is who created the object"}
	case len(changing) == 0:
		return rule{`self == oldSelf`, begin + "create another object"}
	}
	var fields []string
	for name, field := range schema.Properties.FromOldest() {
		within := func(of string) bool { return strings.HasPrefix(of, name+".") }
		switch {
		case slices.Contains(changing, name):
		case slices.ContainsFunc(changing, within):
			for below := range field.Properties.FromOldest() {
				if path := name + "." + below; !slices.Contains(changing, path) {
					fields = append(fields, path)
				}
			}
		default:
			fields = append(fields, name)
		}
	}
	return rule{unchanged(fields...), begin + "all but " + strings.Join(changing, ", ") + ": create another object"}
}

// unchanged is true where fields are as they were, or as absent.
func unchanged(fields ...string) string {
	var all []string
	for _, path := range fields {
		is, was := there("self", path), there("oldSelf", path)
		all = append(all, fmt.Sprintf("%s == %s && (!%s || self.%s == oldSelf.%s)", is, was, is, path, path))
	}
	return "(" + strings.Join(all, " && ") + ")"
}

// there is true where a field, and all that it is in, is set.
func there(of, path string) string {
	above, name, found := strings.Cut(path, ".")
	if !found {
		return fmt.Sprintf("has(%s.%s)", of, path)
	}
	return fmt.Sprintf("(has(%s.%s) && has(%s.%s.%s))", of, above, of, above, name)
}
