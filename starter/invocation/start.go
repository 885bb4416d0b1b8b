package invocation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/terminal"
)

// decisionWithin bounds the wait for a worker to read the input of a maintenance, which takes it a moment.
const decisionWithin = 10 * time.Second

// Undecided reports whether no worker has read the input of a maintenance yet, which goes on once one does.
type Undecided struct{ error }

// AwaitDecision waits until a worker takes the input of a maintenance that was started. One that it refuses is an error; an
// Undecided is returned where there is no worker, or none does so in time.
func (c *Connection) AwaitDecision(ctx context.Context, m client.Maintenance) (client.View, error) {
	waiting, cancel := exit.WithTimeout(ctx, decisionWithin)
	defer cancel()
	var noWorker *client.NoWorkerError
	v, err := c.WaitWatching(waiting, m, func(v client.View) (bool, error) {
		if errors.As(v.Unanswered, &noWorker) {
			return false, noWorker
		}
		return client.Accepted(v)
	}, func(client.View, error) {})
	switch {
	case ctx.Err() != nil:
		return v, exit.StopCause(ctx)
	case noWorker != nil:
		return v, Undecided{noWorker}
	case errors.Is(err, exit.ErrTimedOut):
		return v, Undecided{fmt.Errorf("no worker has read the input of the maintenance of %s within %s: see the log of drydock-worker", m.Node, decisionWithin)}
	}
	return v, c.Explain(goalMissed(err))
}

// releasingWithin bounds the wait for the maintenance before to give the node back.
const releasingWithin = time.Minute

// StartAnew is StartOrAdopt, and waits for a maintenance of the same node and requestor that is giving the node back.
func (c *Connection) StartAnew(ctx context.Context, in client.Input, note func(text string)) (v client.View, adopted bool, err error) {
	for {
		v, adopted, err = c.StartOrAdopt(ctx, in)
		var releasing *client.ReleasingError
		if !errors.As(err, &releasing) {
			return v, adopted, err
		}
		note(releasing.Error() + "; starting when it has")
		waiting, cancel := exit.WithTimeout(ctx, releasingWithin)
		_, err = c.Wait(waiting, releasing.View.Maintenance, client.Ended)
		cancel()
		if err = exit.OrStopped(waiting, err); err != nil {
			return v, false, c.Explain(exit.Hint(fmt.Errorf("%w, and has not done so yet: %w", releasing, err),
				`Nothing was started: start again when it has ended; "%s status %s" says what it waits for.`, c.Program, v.Node))
		}
	}
}

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
		r.Add(d.Field, jsonText(d.Running), jsonText(d.Asked))
	}
	r.Done()
	text := fmt.Sprintf("a maintenance of %s for %s is running already (%s), with other settings:\n%s",
		v.Node, v.Requestor, v.Phase(), strings.TrimRight(table.String(), "\n"))
	return exit.Hint(exit.InWords(text, different), `Ask for the settings it has, end it with "%s cancel %s", or start one of your own with another --requestor.`, c.Program, v.Node)
}

// jsonText shows a field's value as it would stand in the input.
func jsonText(value any) string {
	if value == nil {
		return "(not set)"
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(text.String())
}
