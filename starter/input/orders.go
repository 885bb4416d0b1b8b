package input

import (
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

// Order is one maintenance to start.
type Order struct {
	Input client.Input
	Spec  spec.Maintenance
}

// OrdersOf makes an order for each node from the flags and the file, before anything is started.
func OrdersOf(a *invocation.App, flags *Flags, args []string) ([]Order, error) {
	input, err := flags.Input(a.Env, a.Stdin)
	if err != nil {
		return nil, err
	}
	names, err := NodesOf(args, input)
	if err != nil {
		return nil, err
	}
	return flags.OrdersFor(input, names)
}

// OrdersFor makes an order for each node from an input, which the flags have made.
func (s *Flags) OrdersFor(input map[string]any, names []string) ([]Order, error) {
	orders := make([]Order, len(names))
	for i, name := range names {
		var err error
		if orders[i].Input, orders[i].Spec, err = forNode(input, name); err != nil {
			return nil, s.InFlags(err)
		}
	}
	return orders, nil
}

// OrderNodes are the nodes of orders.
func OrderNodes(orders []Order) []string {
	return terminal.NamesOf(orders, func(o Order) string { return o.Spec.Node })
}
