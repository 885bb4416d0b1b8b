package invocation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/terminal"
)

// WouldStop is the exit code of preflights if something would stop a drain.
func WouldStop(reports []preflight.Report) error {
	stops := slices.ContainsFunc(reports, func(r preflight.Report) bool { return r.ProblemCount() > 0 })
	return exit.Unless(!stops, exit.WouldStop)
}

// permittedWithin bounds the question for permissions, which takes a worker a moment.
const permittedWithin = 20 * time.Second

// Permitted refuses what the worker's account lacks a permission for, and names what grants it. If nobody answers, what is started
// says so itself: then, and where it cannot be found out, it warns.
func (c *Connection) Permitted(ctx context.Context, a *App, what string, in api.PermissionsInput) error {
	if c.HasWorker(ctx) != nil {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, permittedWithin)
	defer cancel()
	report, err := client.Permissions(asking, c.Client, in, permittedWithin)
	if err == nil && report.Unchecked != "" {
		err = fmt.Errorf("it could not be found out: %s", report.Unchecked)
	}
	switch {
	case ctx.Err() != nil:
		return exit.StopCause(ctx)
	case err != nil:
		fmt.Fprintf(a.Stderr, "Warning: whether the worker may do all that %s needs is not known: %s\n", what, terminal.OneLine(err.Error()))
		return nil
	case len(report.Missing) == 0:
		return nil
	}
	lines := terminal.NamesOf(report.Missing, func(f preflight.Finding) string { return f.Message })
	return exit.WithCode(exit.WouldStop, fmt.Errorf("%s was not started: %s", what, strings.Join(lines, "\n")))
}
