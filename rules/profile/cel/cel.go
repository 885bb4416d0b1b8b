// Package cel evaluates the conditions in CEL of profiles. The worker judges nodes by them, and the command line looks whether
// they compile.
package cel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"

	"drydock.dev/drydock/rules/profile/check"
)

// What an expression may cost: its length, and in CEL's units what one evaluation may.
const (
	MaxExpression = 4096
	maxCost       = 1_000_000
	// interruptEvery is after how many elements of a list the cost is checked.
	interruptEvery = 100
)

// expression is a compiled one.
type expression struct{ program cel.Program }

// Compile compiles a condition over node, a Node object as Kubernetes writes it, and profile, state, since and now.
func Compile(text string) (check.Expression, error) {
	env, err := cel.NewEnv(
		cel.Variable("node", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("profile", cel.StringType), cel.Variable("state", cel.StringType),
		cel.Variable("since", cel.TimestampType), cel.Variable("now", cel.TimestampType),
		cel.OptionalTypes(), ext.Strings(), cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(MaxExpression),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()),
	)
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		var problems []error
		for _, e := range issues.Errors() {
			problems = append(problems, fmt.Errorf("line %d, column %d: %s", e.Location.Line(), e.Location.Column()+1, e.Message))
		}
		return nil, errors.Join(problems...)
	}
	if result := ast.OutputType(); !result.IsExactType(types.BoolType) && !result.IsExactType(types.DynType) {
		return nil, fmt.Errorf("want true or false, and this is of type %s", cel.FormatCELType(result))
	}
	program, err := env.Program(ast, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(interruptEvery), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, err
	}
	return expression{program}, nil
}

// Judge is part of check.Expression.
func (e expression) Judge(c check.Case) (bool, error) {
	// As kubectl shows it: expressions have the names of its fields.
	data, err := json.Marshal(c.Node)
	if err != nil {
		return false, err
	}
	var node map[string]any
	if err := json.Unmarshal(data, &node); err != nil {
		return false, err
	}
	value, _, err := e.program.ContextEval(context.Background(), map[string]any{
		"node": node, "profile": c.Profile, "state": string(c.State), "since": c.Since.UTC(), "now": c.Now.In(time.UTC),
	})
	if err != nil {
		return false, err
	}
	holds, ok := value.Value().(bool)
	if !ok {
		return false, fmt.Errorf("it is of type %s, and neither true nor false", value.Type().TypeName())
	}
	return holds, nil
}
