package policy

import (
	"fmt"
	"slices"
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// fieldPrincipal is the field of a verified name.
const fieldPrincipal = "principal"

// origin says where the words of a value come from: from a server that verified them, from somebody who claims them.
type origin struct {
	verified, claimed bool
}

func (o origin) with(other origin) origin {
	return origin{o.verified || other.verified, o.claimed || other.claimed}
}

// origins follows words through a checked expression. Known are the origins of a macro's variables.
type origins struct {
	ast   *celast.AST
	known map[string]origin
	mixed celast.Expr
}

// comparesClaim refuses an expression that compares a verified name with a claimed one: whoever writes the claim decides
// how the comparison ends.
func comparesClaim(at string, ast *celast.AST) error {
	o := &origins{ast: ast, known: map[string]origin{}}
	o.of(ast.Expr())
	if o.mixed == nil {
		return nil
	}
	place := ast.SourceInfo().GetStartLocation(o.mixed.ID())
	return located(at, place.Line(), place.Column(), fmt.Sprintf("compares a verified name (%s.%s, %s.%s) with a claim (%s.*, %s.by), "+
		"which its sender chooses: compare verified names, as in %s.%s != %s.%s, or with a name that the rule itself says",
		varApproval, fieldPrincipal, varStarter, fieldPrincipal, varMaintenance, varApproval,
		varApproval, fieldPrincipal, varStarter, fieldPrincipal))
}

// of is the origin of an expression's words. A verdict has none: to ask two things is not to compare them.
func (o *origins) of(e celast.Expr) origin {
	found := o.parts(e)
	if o.ast.GetType(e.ID()).IsExactType(types.BoolType) {
		return origin{}
	}
	return found
}

func (o *origins) parts(e celast.Expr) origin {
	switch e.Kind() {
	case celast.IdentKind:
		name := strings.TrimPrefix(e.AsIdent(), ".")
		if name == varMaintenance {
			return origin{claimed: true}
		}
		return o.known[name]
	case celast.SelectKind:
		return o.field(e.AsSelect().Operand(), e.AsSelect().FieldName())
	case celast.CallKind:
		return o.call(e)
	case celast.ListKind:
		return o.all(e.AsList().Elements())
	case celast.MapKind:
		var found origin
		for _, entry := range e.AsMap().Entries() {
			found = found.with(o.of(entry.AsMapEntry().Key())).with(o.of(entry.AsMapEntry().Value()))
		}
		return found
	case celast.ComprehensionKind:
		return o.comprehension(e.AsComprehension())
	}
	return origin{}
}

// field is the origin of a field of an approval, of a starter, or of what came from elsewhere.
func (o *origins) field(of celast.Expr, name string) origin {
	if of.Kind() == celast.IdentKind {
		switch strings.TrimPrefix(of.AsIdent(), ".") {
		case varApproval, varStarter:
			return origin{verified: name == fieldPrincipal, claimed: name == "by" || name == "comment"}
		}
	}
	return o.of(of)
}

// call is the origin of what a function returns. One that answers true or false compares what it is given.
func (o *origins) call(e celast.Expr) origin {
	call := e.AsCall()
	args := call.Args()
	if call.FunctionName() == operators.OptSelect && len(args) == 2 && args[1].Kind() == celast.LiteralKind {
		name, _ := args[1].AsLiteral().Value().(string)
		return o.field(args[0], name)
	}
	if call.IsMemberFunction() {
		args = append([]celast.Expr{call.Target()}, args...)
	}
	found := o.all(args)
	joins := []string{operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional, operators.NotStrictlyFalse}
	compares := o.ast.GetType(e.ID()).IsExactType(types.BoolType) && !slices.Contains(joins, call.FunctionName())
	if compares && found.verified && found.claimed && o.mixed == nil {
		o.mixed = e
	}
	return found
}

func (o *origins) all(of []celast.Expr) (found origin) {
	for _, e := range of {
		found = found.with(o.of(e))
	}
	return found
}

// comprehension is the origin of what a macro makes of a list. Its accumulator is looked at twice: a step sees what the one
// before it left.
func (o *origins) comprehension(c celast.ComprehensionExpr) origin {
	names := []string{c.IterVar(), c.IterVar2(), c.AccuVar()}
	before := make([]origin, len(names))
	for i, name := range names {
		before[i] = o.known[name]
	}
	ranged := o.of(c.IterRange())
	o.known[c.AccuVar()] = o.of(c.AccuInit())
	for range 2 {
		o.known[c.IterVar()] = ranged
		if c.HasIterVar2() {
			o.known[c.IterVar2()] = ranged
		}
		o.of(c.LoopCondition())
		o.known[c.AccuVar()] = o.known[c.AccuVar()].with(o.of(c.LoopStep()))
	}
	result := o.of(c.Result())
	for i, name := range names {
		o.known[name] = before[i]
	}
	return result
}
