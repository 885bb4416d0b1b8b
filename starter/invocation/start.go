package invocation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"drydock/client"
	"drydock/starter/exit"
	"drydock/starter/show"
	"drydock/starter/terminal"
)

// StartOrAdopt starts a maintenance, or adopts the one that runs already if it is the same.
func (c *Connection) StartOrAdopt(ctx context.Context, in client.Input) (v client.View, adopted bool, err error) {
	v, adopted, err = c.Start(ctx, in)
	var (
		different   *client.DifferentError
		notCompared *client.NotComparedError
	)
	switch {
	case errors.As(err, &different):
		err = c.errDifferent(different)
	case errors.As(err, &notCompared):
		err = exit.Hint(err, "%s", notCompared.Unanswered)
	default:
		err = c.Explain(err)
	}
	return v, adopted, err
}

func (c *Connection) errDifferent(different *client.DifferentError) error {
	v := different.View
	var table strings.Builder
	r := terminal.NewRows(&table, "FIELD", "RUNNING", "ASKED FOR")
	for _, d := range different.Differences {
		r.Add(d.Field, show.JSONText(d.Running), show.JSONText(d.Asked))
	}
	r.Done()
	text := fmt.Sprintf("a maintenance of %s for %s is running already (%s), with other settings:\n%s",
		v.Node, v.Requestor, v.Phase(), strings.TrimRight(table.String(), "\n"))
	return exit.Hint(exit.InWords(text, different), `Ask for the settings it has, end it with "%s cancel %s", or start one of your own with another --requestor.`, c.Program, v.Node)
}
