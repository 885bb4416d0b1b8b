package policy

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"

	"drydock.dev/drydock/rules/spec"
)

// The names of what rules speak of.
const (
	varMaintenance = "maintenance"
	varNode        = "node"
	varApproval    = "approval"
	varStarter     = "starter"
)

// variable is something that rules speak of, with its Go type.
type variable struct {
	name string
	of   reflect.Type
}

var variables = []variable{
	{varMaintenance, reflect.TypeFor[spec.Maintenance]()},
	{varNode, reflect.TypeFor[Node]()},
	{varApproval, reflect.TypeFor[Approval]()},
	{varStarter, reflect.TypeFor[Starter]()},
}

func isVariable(name string) bool {
	return slices.ContainsFunc(variables, func(v variable) bool { return v.name == name })
}

// Case is what is judged.
type Case struct {
	// Maintenance is the input with its defaults.
	Maintenance spec.Maintenance
	// Node is nil if nothing is known of it.
	Node *Node
	// Approval is nil but where one is judged.
	Approval *Approval
	// Starter is who started it, as far as the server verified that. StarterUnknown: the server could not be asked.
	Starter        Starter
	StarterUnknown bool
}

// Node is what rules see of a node.
type Node struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Taints      []Taint           `json:"taints"`
}

// Taint is a taint of a node.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// Approval is what rules see of an approval. By is a claim; Principal, which is absent if the server verified nobody,
// is not.
type Approval struct {
	By        string    `json:"by"`
	Comment   string    `json:"comment"`
	At        time.Time `json:"at"`
	Principal *string   `json:"principal"`
}

// Starter is what rules see of the person who started a maintenance: only what the server verified, absent if it
// verified nobody.
type Starter struct {
	Principal *string `json:"principal"`
}

// variables are the values of an evaluation.
func (c Case) variables() map[string]any {
	all := map[string]any{varMaintenance: c.Maintenance, varStarter: c.Starter}
	if c.Node != nil {
		all[varNode] = *c.Node
	}
	if c.Approval != nil {
		all[varApproval] = *c.Approval
	}
	return all
}

// newEnvironment is what expressions are compiled in.
func newEnvironment() (*cel.Env, error) {
	objects, err := newObjects()
	if err != nil {
		return nil, err
	}
	options := []cel.EnvOption{
		// Before whatever registers types with them.
		cel.CustomTypeAdapter(objects), cel.CustomTypeProvider(objects),
		cel.OptionalTypes(), ext.Strings(),
		cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(MaxExpression),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()),
	}
	for _, v := range variables {
		t, err := objects.typeOf(v.of)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		options = append(options, cel.Variable(v.name, t))
	}
	return cel.NewEnv(options...)
}
