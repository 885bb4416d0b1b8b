package check

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"net/url"
	"strconv"
	"strings"

	"drydock.dev/drydock/rules/profile/conf"
)

func readPrometheusInstant(o *conf.Object, _ Environment) Check {
	p := prometheus{query: Query{URL: o.Required("url", "the URL of a Prometheus server"), Query: o.Text("query")}, text: o.Text("expr")}
	expression, err := parseExpression(p.text)
	if err != nil {
		o.Refuse("expr", "compare value with numbers, such as value > 5", "%s", err)
	}
	p.expression = expression
	return p
}

// prometheus compares the one sample that a query has.
type prometheus struct {
	query      Query
	text       string
	expression ast.Expr
}

func (p prometheus) needs(n *Needs) { n.Queries = append(n.Queries, p.query) }

// Hold is part of Check.
func (p prometheus) Hold(c Case) Result {
	s, there := c.View.Samples[p.query]
	switch {
	case !there:
		return failed("the query was not asked")
	case s.Error != "":
		return failed("%s", s.Error)
	}
	value, err := evaluate(p.expression, s.Value)
	if err != nil {
		return failed("expr: %s", err)
	}
	r := Result{Holds: value != 0}
	if !r.Holds {
		r.Reason = fmt.Sprintf("value is %v, and %s is wanted", s.Value, p.text)
	}
	r = r.info("url", shown(p.query.URL)).info("query", p.query.Query).info("expr", p.text).info("value", s.Value)
	if len(s.Warnings) > 0 {
		r = r.info("warns", strings.Join(s.Warnings, "; "))
	}
	return r
}

// shown is a URL without a password in it.
func shown(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Redacted()
}

// maxExpression bounds an expression, in bytes.
const maxExpression = 1024

// parseExpression reads an arithmetic expression over value. Go's grammar has all that these need.
func parseExpression(text string) (ast.Expr, error) {
	if strings.TrimSpace(text) == "" {
		return nil, fmt.Errorf("required")
	}
	if len(text) > maxExpression {
		return nil, fmt.Errorf("it has %d bytes: at most %d are taken", len(text), maxExpression)
	}
	e, err := parser.ParseExpr(text)
	if err != nil {
		return nil, fmt.Errorf("%.80q is not an expression over value", text)
	}
	_, err = evaluate(e, 1)
	return e, err
}

// evaluate gives 1 for true and 0 for false, so that a number other than 0 holds.
func evaluate(e ast.Expr, value float64) (float64, error) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return evaluate(e.X, value)
	case *ast.Ident:
		switch e.Name {
		case "value":
			return value, nil
		case "true":
			return 1, nil
		case "false":
			return 0, nil
		}
		return 0, fmt.Errorf("there is no %.40q: only value", e.Name)
	case *ast.BasicLit:
		if e.Kind == token.INT || e.Kind == token.FLOAT {
			return strconv.ParseFloat(strings.ReplaceAll(e.Value, "_", ""), 64)
		}
		return 0, fmt.Errorf("%.40s is not a number", e.Value)
	case *ast.UnaryExpr:
		x, err := evaluate(e.X, value)
		switch e.Op {
		case token.SUB:
			return -x, err
		case token.ADD:
			return x, err
		case token.NOT:
			return truth(x == 0), err
		}
		return 0, fmt.Errorf("%s is not known here", e.Op)
	case *ast.BinaryExpr:
		x, err := evaluate(e.X, value)
		if err != nil {
			return 0, err
		}
		y, err := evaluate(e.Y, value)
		if err != nil {
			return 0, err
		}
		return combine(e.Op, x, y)
	}
	return 0, fmt.Errorf("only value, numbers, comparisons, + - * / %%, &&, || and ! are known here")
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// binary are the operators between two numbers.
var binary = map[token.Token]func(x, y float64) float64{
	token.ADD: func(x, y float64) float64 { return x + y }, token.SUB: func(x, y float64) float64 { return x - y },
	token.MUL: func(x, y float64) float64 { return x * y }, token.QUO: func(x, y float64) float64 { return x / y },
	token.REM: math.Mod,
	token.EQL: func(x, y float64) float64 { return truth(x == y) }, token.NEQ: func(x, y float64) float64 { return truth(x != y) },
	token.LSS: func(x, y float64) float64 { return truth(x < y) }, token.LEQ: func(x, y float64) float64 { return truth(x <= y) },
	token.GTR: func(x, y float64) float64 { return truth(x > y) }, token.GEQ: func(x, y float64) float64 { return truth(x >= y) },
	token.LAND: func(x, y float64) float64 { return truth(x != 0 && y != 0) },
	token.LOR:  func(x, y float64) float64 { return truth(x != 0 || y != 0) },
}

func combine(operator token.Token, x, y float64) (float64, error) {
	of, ok := binary[operator]
	if !ok {
		return 0, fmt.Errorf("%s is not known here", operator)
	}
	return of(x, y), nil
}
