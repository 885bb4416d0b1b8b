package policy

import (
	"fmt"
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// fieldPrincipal is the field of a verified name.
const fieldPrincipal = "principal"

// origin says on whose words a value depends: on what a server verified, on what somebody claims.
type origin struct {
	verified, claimed bool
}

func (o origin) with(other origin) origin {
	return origin{o.verified || other.verified, o.claimed || other.claimed}
}

// origins follows words through a checked expression. Known are the origins of a macro's variables, mixed is the first part of the
// expression that depends on both.
type origins struct {
	ast   *celast.AST
	known map[string]origin
	mixed celast.Expr
}

// comparesClaim refuses an expression in which a verified name meets a claimed one: who writes the claim decides how that ends.
// Only whole conditions may stand beside each other, joined by &&, ||, ! and ?:, and not inside a macro, whose variable could carry
// the one to the other.
func comparesClaim(at string, ast *celast.AST) error {
	o := &origins{ast: ast, known: map[string]origin{}}
	o.of(ast.Expr())
	if o.mixed == nil {
		return nil
	}
	place := ast.SourceInfo().GetStartLocation(o.mixed.ID())
	return located(at, place.Line(), place.Column(), fmt.Sprintf("compares a verified name (%s.%s, %s.%s) with a claim (%s.*, %s.by, %s.*), "+
		"which its sender chooses: compare verified names, as in %s.%s != %s.%s, or with a name that the rule itself says; "+
		"join conditions on the one and on the other by && or || outside of macros",
		varApproval, fieldPrincipal, varStarter, fieldPrincipal, varMaintenance, varApproval, varNode,
		varApproval, fieldPrincipal, varStarter, fieldPrincipal))
}

// of is the origin of an expression.
func (o *origins) of(e celast.Expr) origin {
	found := o.parts(e)
	if found.verified && found.claimed && o.mixed == nil && !o.joins(e) {
		o.mixed = e
	}
	return found
}

// joins reports whether an expression only puts conditions together.
func (o *origins) joins(e celast.Expr) bool {
	if e.Kind() != celast.CallKind {
		return false
	}
	switch e.AsCall().FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.NotStrictlyFalse:
		return true
	case operators.Conditional:
		return o.ast.GetType(e.ID()).IsExactType(types.BoolType)
	}
	return false
}

func (o *origins) parts(e celast.Expr) origin {
	switch e.Kind() {
	case celast.IdentKind:
		return o.ident(strings.TrimPrefix(e.AsIdent(), "."))
	case celast.SelectKind:
		found := o.field(e.AsSelect().Operand(), e.AsSelect().FieldName())
		if e.AsSelect().IsTestOnly() {
			return origin{} // that a name is there is not the name
		}
		return found
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
	case celast.StructKind:
		var found origin
		for _, field := range e.AsStruct().Fields() {
			found = found.with(o.of(field.AsStructField().Value()))
		}
		return found
	case celast.ComprehensionKind:
		return o.comprehension(e.AsComprehension())
	}
	return origin{}
}

// ident is the origin of a variable. An approval as a whole has words of both kinds: it is read field by field, or not at all.
func (o *origins) ident(name string) origin {
	switch name {
	case varMaintenance, varNode:
		return origin{claimed: true}
	case varApproval:
		return origin{verified: true, claimed: true}
	case varStarter:
		return origin{verified: true}
	}
	return o.known[name]
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

// call is the origin of what a function returns.
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
	return o.all(args)
}

func (o *origins) all(of []celast.Expr) (found origin) {
	for _, e := range of {
		found = found.with(o.of(e))
	}
	return found
}

// comprehension is the origin of what a macro makes of a list: everything that the macro reads, since its result depends on the number
// of iterations. The accumulator is visited twice: a step sees the result of the one before it.
func (o *origins) comprehension(c celast.ComprehensionExpr) origin {
	names := []string{c.IterVar(), c.IterVar2(), c.AccuVar()}
	before := make([]origin, len(names))
	for i, name := range names {
		before[i] = o.known[name]
	}
	ranged := o.of(c.IterRange())
	found := ranged.with(o.of(c.AccuInit()))
	o.known[c.AccuVar()] = found
	for range 2 {
		o.known[c.IterVar()] = ranged
		if c.HasIterVar2() {
			o.known[c.IterVar2()] = ranged
		}
		found = found.with(o.of(c.LoopCondition())).with(o.of(c.LoopStep()))
		o.known[c.AccuVar()] = found
	}
	found = found.with(o.of(c.Result()))
	for i, name := range names {
		o.known[name] = before[i]
	}
	return found
}
