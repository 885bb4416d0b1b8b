package invocation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"drydock.dev/drydock/client"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/terminal"
)

// FindByFlag returns the running maintenance of a node. With an empty requestor, which the flag names, it is the user's own, or the only
// one there is; a requestor that shares somebody else's maintenance addresses that one. The note says so where the maintenance is not the
// one asked for.
func (c *Connection) FindByFlag(ctx context.Context, node, requestor, flag string) (found client.Found, note string, err error) {
	found, err = c.Find(ctx, node, requestor)
	var missing *client.NotFoundError
	switch {
	case errors.As(err, &missing):
		return found, "", c.notFound(ctx, missing, flag)
	case err != nil:
		return found, "", c.Explain(err)
	case found.Shared:
		note = fmt.Sprintf("%s shares the maintenance of %s", found.For, found.Requestor)
	case found.Only:
		note = fmt.Sprintf("using the maintenance of %s for %s, the only one that runs", node, found.Requestor)
	}
	return found, note, nil
}

// notFound says which maintenances there are instead.
func (c *Connection) notFound(ctx context.Context, missing *client.NotFoundError, flag string) error {
	switch {
	case len(missing.Others) > 0 && missing.Named:
		return exit.Hint(missing, "Running on %s for: %s.", missing.Node, strings.Join(missing.Requestors(), ", "))
	case len(missing.Others) > 0:
		return exit.Hint(missing, "Pass %s.", flag)
	}
	var err error = missing
	if last := missing.Last; last != nil {
		err = fmt.Errorf("%w: that of %s ended %s ago", err, last.Requestor, period.Age(c.Clock().Sub(last.Closed)))
	}
	running, listErr := c.List(ctx, client.ListOptions{Running: true})
	if listErr != nil || len(running) == 0 {
		return exit.Hint(err, `See those that ended with "%s list --all".`, c.Program)
	}
	names := NodeNames(running)
	if near := k8s.Similar(missing.Node, names); len(near) > 0 {
		return exit.Hint(err, "Did you mean %s?", terminal.OrList(near))
	}
	return exit.Hint(err, "Running: %s.", terminal.SomeOf(names, 10))
}

// NodeNames are the nodes of some maintenances, each once and in order.
func NodeNames(all []client.Maintenance) []string {
	return terminal.InOrder(terminal.NamesOf(all, func(m client.Maintenance) string { return m.Node }))
}
