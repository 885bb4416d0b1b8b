// Package policy judges maintenances by rules in CEL, the language that Kubernetes admins know from admission policies:
// rules of the worker's configuration, which no input overrides.
package policy

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/rules/number"
)

// What rules may cost.
const (
	// MaxRules bounds a policy, MaxExpression an expression in characters, MaxMessage a message in bytes.
	MaxRules      = 100
	MaxExpression = 4096
	MaxMessage    = 1024
	// maxCost is what one expression may cost, in CEL's units: the limit of Kubernetes' admission policies.
	maxCost = 1_000_000
	// interruptEvery is after how many elements of a list an evaluation looks whether it is still wanted.
	interruptEvery = 100
)

// Rule is one rule of a policy.
type Rule struct {
	// Name is the name of the rule in refusals: lower-case letters, digits and `-`.
	Name string `json:"name" jsonschema:"required"`
	// When is a condition in CEL: if it is false, the rule does not apply. If absent, the rule always applies.
	When string `json:"when,omitempty"`
	// Require is what must hold, in CEL.
	Require string `json:"require" jsonschema:"required"`
	// Message is what a refusal says; if absent, the text of `require`. It has at most 1024 bytes.
	Message string `json:"message,omitempty"`
}

// Policy is a compiled list of rules. The nil Policy has none and refuses nothing. It is safe for concurrent use.
type Policy struct {
	rules []compiled
}

// compiled is a rule ready to be judged.
type compiled struct {
	Rule
	when, require cel.Program
	// node, approval and starter tell that the rule speaks of them.
	node, approval, starter bool
}

// Compile checks and compiles rules. The error joins one line per mistake, each beginning with the rule and the field,
// such as policy[1] (no-force).require, and for an expression with its line and column.
func Compile(rules []Rule) (*Policy, error) {
	if len(rules) == 0 {
		return nil, nil
	}
	if len(rules) > MaxRules {
		return nil, fmt.Errorf("policy: has %d rules: want %d at most", len(rules), MaxRules)
	}
	env, err := newEnvironment()
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	var problems []error
	p := &Policy{}
	names := map[string]int{}
	for i, rule := range rules {
		at := fmt.Sprintf("policy[%d]", i)
		if rule.Name != "" {
			at += " (" + rule.Name + ")"
		}
		if first, taken := names[rule.Name]; taken && rule.Name != "" {
			problems = append(problems, fmt.Errorf("%s.name: %q is the name of policy[%d] already", at, rule.Name, first))
		}
		names[rule.Name] = i
		problems = append(problems, rule.check(at)...)
		c := compiled{Rule: rule}
		if rule.When != "" {
			c.when, err = c.compile(env, at+".when", rule.When)
			problems = append(problems, err)
		}
		if rule.Require != "" {
			c.require, err = c.compile(env, at+".require", rule.Require)
			problems = append(problems, err)
		}
		p.rules = append(p.rules, c)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return p, nil
}

// check looks at all of a rule but its expressions.
func (r Rule) check(at string) []error {
	var problems []error
	if wrong := validation.IsDNS1123Label(r.Name); len(wrong) > 0 {
		problems = append(problems, fmt.Errorf("%s.name: %q is not a name: %s", at, r.Name, wrong[0]))
	}
	if r.Require == "" {
		problems = append(problems, fmt.Errorf("%s.require: required: what must hold", at))
	}
	if len(r.Message) > MaxMessage {
		problems = append(problems, fmt.Errorf("%s.message: has %d bytes: want %d at most", at, len(r.Message), MaxMessage))
	}
	return problems
}

// compile compiles one expression of a rule, and notes of what it speaks.
func (c *compiled) compile(env *cel.Env, at, text string) (cel.Program, error) {
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		var problems []error
		for _, e := range issues.Errors() {
			problems = append(problems, located(at, e.Location.Line(), e.Location.Column(), e.Message))
		}
		return nil, errors.Join(problems...)
	}
	if result := ast.OutputType(); !result.IsExactType(types.BoolType) {
		return nil, located(at, 1, 0, "want true or false, and this is of type "+cel.FormatCELType(result))
	}
	mentioned, err := mentions(ast.NativeRep())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	if err := comparesClaim(at, ast.NativeRep()); err != nil {
		return nil, err
	}
	c.node = c.node || mentioned[varNode]
	c.starter = c.starter || mentioned[varStarter]
	c.approval = c.approval || mentioned[varApproval]
	program, err := env.Program(ast, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(interruptEvery), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	return program, nil
}

// notUnderstood are the ways in which CEL's parser says where it stopped.
var notUnderstood = regexp.MustCompile(`^Syntax error: (?:mismatched input|extraneous input|no viable alternative at input|token recognition error at:|missing .* at) '(.*?)'(?: expecting .*)?$`)

// understood is the parser's message without the list of tokens that it expected.
func understood(message string) string {
	found := notUnderstood.FindStringSubmatch(message)
	switch {
	case found == nil:
		return message
	case strings.HasSuffix(found[1], "<EOF>"):
		return "syntax error: the expression ends too soon"
	}
	return fmt.Sprintf("syntax error at %q", found[1])
}

// located is an error in an expression. CEL counts columns from 0, people from 1.
func located(at string, line, column int, message string) error {
	message, _, _ = strings.Cut(message, "\n")
	message = understood(message)
	return fmt.Errorf("%s: line %d, column %d: %s", at, line, column+1, message)
}

// mentions returns the variables that a checked expression uses. A variable of a macro with the name of one of them would hide
// what the rule refers to, and so when it has to be judged.
func mentions(ast *celast.AST) (map[string]bool, error) {
	found := map[string]bool{}
	var hidden string
	celast.PreOrderVisit(ast.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		switch e.Kind() {
		case celast.IdentKind:
			found[strings.TrimPrefix(e.AsIdent(), ".")] = true
		case celast.ComprehensionKind:
			c := e.AsComprehension()
			for _, name := range []string{c.IterVar(), c.IterVar2(), c.AccuVar()} {
				if isVariable(name) {
					hidden = name
				}
			}
		}
	}))
	if hidden != "" {
		return nil, fmt.Errorf("%q names a variable of a macro, and is the name of what is judged: take another", hidden)
	}
	return found, nil
}

// JudgesApprovals reports whether a rule speaks of the approval.
func (p *Policy) JudgesApprovals() bool {
	return p.any(func(c compiled) bool { return c.approval })
}

// NeedsNode reports whether a rule speaks of the node, of those that are judged at an approval, or of the others.
func (p *Policy) NeedsNode(atApproval bool) bool {
	return p.any(func(c compiled) bool { return c.node && c.approval == atApproval })
}

// NeedsStarter reports whether a rule speaks of the starter, of those that are judged at an approval, or of the others.
func (p *Policy) NeedsStarter(atApproval bool) bool {
	return p.any(func(c compiled) bool { return c.starter && c.approval == atApproval })
}

func (p *Policy) any(is func(compiled) bool) bool {
	if p == nil {
		return false
	}
	for _, c := range p.rules {
		if is(c) {
			return true
		}
	}
	return false
}

// Judge returns nil, or a Refused of every rule that refuses. With an approval it judges the rules that speak of it,
// without one the others. If nothing is known of the node, a rule that speaks of it refuses an approval; without an
// approval it is left out, and so is one that speaks of a starter who is not known yet: a caller that leaves rules out judges again
// before the node is touched.
func (p *Policy) Judge(ctx context.Context, c Case) error {
	if p == nil {
		return nil
	}
	variables := c.variables()
	var refused Refused
	for _, rule := range p.rules {
		switch {
		case rule.approval != (c.Approval != nil):
		case (rule.node && c.Node == nil || rule.starter && c.StarterUnknown) && c.Approval == nil:
		case rule.node && c.Node == nil:
			refused = append(refused, Refusal{Rule: rule.Name, Message: "it speaks of the node, and there is no node " + c.Maintenance.Node})
		default:
			if message, ok := rule.judge(ctx, variables); !ok {
				refused = append(refused, Refusal{Rule: rule.Name, Message: message})
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return refused
}

// judge evaluates one rule. What cannot be evaluated refuses.
func (c compiled) judge(ctx context.Context, variables map[string]any) (message string, ok bool) {
	if c.when != nil {
		applies, err := evaluate(ctx, c.when, variables)
		if err != nil {
			return "when could not be evaluated: " + err.Error(), false
		}
		if !applies {
			return "", true
		}
	}
	holds, err := evaluate(ctx, c.require, variables)
	switch {
	case err != nil:
		return "require could not be evaluated: " + err.Error(), false
	case holds:
		return "", true
	case c.Message != "":
		return c.Message, false
	default:
		return "it requires " + strings.Join(strings.Fields(c.Require), " "), false
	}
}

func evaluate(ctx context.Context, program cel.Program, variables map[string]any) (bool, error) {
	value, _, err := program.ContextEval(ctx, variables)
	if err != nil {
		return false, err
	}
	truth, ok := value.Value().(bool)
	if !ok {
		return false, fmt.Errorf("it is of type %s, and neither true nor false", value.Type().TypeName())
	}
	return truth, nil
}

// Refusal is the word of one rule.
type Refusal struct {
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// Refused are the rules that refuse, in the order of the policy.
type Refused []Refusal

// maxNamed is how many refusals an error names before it counts the rest.
const maxNamed = 5

// Error names each rule with its message.
func (r Refused) Error() string {
	var parts []string
	for i, refusal := range r {
		if i == maxNamed {
			parts = append(parts, "and "+number.Of(len(r)-maxNamed, "more rule"))
			break
		}
		parts = append(parts, fmt.Sprintf("policy %s: %s", refusal.Rule, refusal.Message))
	}
	return strings.Join(parts, "; ")
}
