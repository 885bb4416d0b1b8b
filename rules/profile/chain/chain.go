// Package chain reads the chains of a profile: boolean expressions over checks, and lists of triggers and notifications.
package chain

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Check is a boolean expression over instances of checks. The zero value holds.
type Check struct {
	// Names are the instances in the order in which they are written, each once.
	Names []string
	// Spaced reports that maintenance-controller reads it too: there operators have to stand between spaces.
	Spaced bool
	text   string
	root   *term
}

// term is a name, or an operator with what it is applied to.
type term struct {
	operator string // "", "!", "&&", "||"
	name     string
	of       []*term
}

// MaxNames bounds a chain.
const MaxNames = 200

// ParseCheck reads an expression of names, &&, ||, ! and parentheses; && binds closer than ||.
func ParseCheck(text string) (Check, error) {
	tokens, err := split(text)
	if err != nil {
		return Check{}, err
	}
	p := &parser{tokens: tokens}
	root, err := p.either()
	if err == nil && p.at < len(p.tokens) {
		err = fmt.Errorf("%q stands where &&, || or the end is wanted", p.tokens[p.at])
	}
	if err != nil {
		return Check{}, err
	}
	return Check{Names: p.names, Spaced: spaced(text, p.names), text: strings.Join(strings.Fields(text), " "), root: root}, nil
}

// String is the expression in one line.
func (c Check) String() string { return c.text }

// Holds evaluates the expression, with all of its names known already.
func (c Check) Holds(holds func(name string) bool) bool {
	return c.root == nil || c.root.holds(holds)
}

func (t *term) holds(holds func(string) bool) bool {
	switch t.operator {
	case "!":
		return !t.of[0].holds(holds)
	case "&&":
		return !slices.ContainsFunc(t.of, func(o *term) bool { return !o.holds(holds) })
	case "||":
		return slices.ContainsFunc(t.of, func(o *term) bool { return o.holds(holds) })
	}
	return holds(t.name)
}

// Missing are the names that keep an expression from holding, in the order in which they are written; of those that ought not to hold
// it has their negation. It is empty if the expression holds.
func (c Check) Missing(holds func(name string) bool) []string {
	if c.Holds(holds) {
		return nil
	}
	is := map[string]bool{}
	c.root.decide(holds, is)
	var missing []string
	for _, name := range c.Names {
		switch {
		case is[name] && holds(name):
			missing = append(missing, "!"+name)
		case is[name]:
			missing = append(missing, name)
		}
	}
	return missing
}

// decide notes the names that make a term what it is.
func (t *term) decide(holds func(string) bool, is map[string]bool) {
	if t.operator == "" {
		is[t.name] = true
	}
	result := t.holds(holds)
	for _, o := range t.of {
		// Of what is joined, those decide that come to the same; behind a negation there is only one.
		if t.operator == "!" || o.holds(holds) == result {
			o.decide(holds, is)
		}
	}
}

// ParseList reads names joined by &&, in order; an empty text has none. A name may be there twice.
func ParseList(text string) ([]string, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var names []string
	for part := range strings.SplitSeq(text, "&&") {
		name := strings.TrimSpace(part)
		switch {
		case name == "":
			return nil, fmt.Errorf("%q has nothing on one side of a &&", short(text))
		case strings.ContainsAny(name, "|!()&"):
			return nil, fmt.Errorf("%q: only && may stand between names here", short(name))
		case strings.ContainsFunc(name, unicode.IsSpace):
			return nil, fmt.Errorf("%q: there is no && between two names", short(name))
		}
		names = append(names, name)
	}
	if len(names) > MaxNames {
		return nil, fmt.Errorf("it has %d names: at most %d are taken", len(names), MaxNames)
	}
	return names, nil
}

// split takes an expression apart.
func split(text string) ([]string, error) {
	var tokens []string
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimLeftFunc(rest, unicode.IsSpace) {
		n := 1
		switch {
		case strings.HasPrefix(rest, "&&"), strings.HasPrefix(rest, "||"):
			n = 2
		case rest[0] == '&' || rest[0] == '|':
			return nil, fmt.Errorf("a single %c: write it twice", rest[0])
		case strings.ContainsRune("!()", rune(rest[0])):
		default:
			n = strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("&|!()", r) })
			if n < 0 {
				n = len(rest)
			}
		}
		tokens, rest = append(tokens, rest[:n]), rest[n:]
		if len(tokens) > 10*MaxNames {
			return nil, fmt.Errorf("it has more than %d names and operators", 10*MaxNames)
		}
	}
	return tokens, nil
}

type parser struct {
	tokens []string
	at     int
	names  []string
	depth  int
}

func (p *parser) next() string {
	if p.at == len(p.tokens) {
		return ""
	}
	return p.tokens[p.at]
}

func (p *parser) either() (*term, error) { return p.joined("||", p.both) }

func (p *parser) both() (*term, error) { return p.joined("&&", p.one) }

func (p *parser) joined(operator string, side func() (*term, error)) (*term, error) {
	first, err := side()
	if err != nil {
		return nil, err
	}
	all := []*term{first}
	for p.next() == operator {
		p.at++
		more, err := side()
		if err != nil {
			return nil, err
		}
		all = append(all, more)
	}
	if len(all) == 1 {
		return first, nil
	}
	return &term{operator: operator, of: all}, nil
}

// maxDepth bounds parentheses within parentheses.
const maxDepth = 100

func (p *parser) one() (*term, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("it is nested deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	token := p.next()
	p.at++
	switch token {
	case "":
		return nil, fmt.Errorf("it ends where the name of a check is wanted")
	case "&&", "||", ")":
		return nil, fmt.Errorf("%q stands where the name of a check is wanted", token)
	case "!":
		of, err := p.one()
		return &term{operator: "!", of: []*term{of}}, err
	case "(":
		inner, err := p.either()
		if err != nil {
			return nil, err
		}
		if p.next() != ")" {
			return nil, fmt.Errorf("a parenthesis is not closed")
		}
		p.at++
		return inner, nil
	}
	if !slices.Contains(p.names, token) {
		p.names = append(p.names, token)
	}
	if len(p.names) > MaxNames {
		return nil, fmt.Errorf("it has more than %d names", MaxNames)
	}
	return &term{name: token}, nil
}

// operators are what maintenance-controller takes out of an expression before it looks for names between spaces.
var operators = strings.NewReplacer("&", "", "|", "", "!", "", "(", "", ")", "")

// spaced reports whether maintenance-controller finds the same names.
func spaced(text string, names []string) bool {
	for word := range strings.SplitSeq(operators.Replace(text), " ") {
		if word != "" && !slices.Contains(names, word) {
			return false
		}
	}
	return true
}

// Readable reports whether expressions of maintenance-controller can read a name: it has letters, digits and _, and no digit
// first.
func Readable(name string) bool {
	for i, r := range name {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return name != ""
}

func short(text string) string {
	const most = 80
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
