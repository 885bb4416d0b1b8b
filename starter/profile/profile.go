// Package profile has the commands about profiles of SAP's maintenance-controller: what is wrong with their file, what it looks like,
// and what becomes of nodes.
package profile

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/cel"
	"drydock.dev/drydock/rules/profile/check"
	"drydock.dev/drydock/rules/profile/conf"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

// New is the group of the commands about profiles.
func New(a *invocation.App) *cobra.Command {
	return invocation.Noun(&cobra.Command{
		Use:   "profile",
		Short: "Look at profiles of maintenance-controller, and see why a node is in its state",
		Long: `Profiles are the state machines of SAP's maintenance-controller: operational, maintenance-required, in-maintenance. Drydock runs
them as its configuration file has them; a node names its profiles in the label cloud.sap/maintenance-profile.

The worker reads the file that its configuration names (profiles.file), anew at each evaluation. "drydock profile lint" says before
what is wrong with one. The profiles of Temporal's own configuration are another thing: --temporal-profile.`,
		Example: `  drydock profile lint maintenance.yaml
  drydock profile graph os-patching --file maintenance.yaml
  drydock profile list --state in-maintenance
  drydock profile explain worker-07`,
	}, newLint(a), newGraph(a), newList(a), newExplain(a))
}

// Environment is what a file is read with: variables are those of the command's own environment.
func Environment(a *invocation.App) profile.Environment {
	return profile.Environment{Variable: a.Env.LookupEnv, Environment: check.Environment{CEL: cel.Compile}}
}

// ReadFile reads a file, or standard input for "-". What is too long is a problem of the file like others.
func ReadFile(a *invocation.App, path string) ([]byte, error) {
	from := a.Stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, exit.UsageError("%w", err)
		}
		defer func() { _ = file.Close() }() // it was only read
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, conf.MaxFile+1))
	switch {
	case err != nil && path == "-":
		return nil, exit.UsageError("reading standard input: %w", err)
	case err != nil:
		return nil, exit.UsageError("%w", err)
	}
	return text, nil
}

// reportWithin is how long a worker may take to answer: it looks at all nodes, and at what their checks ask for.
const reportWithin = time.Minute

// question is what the commands have in common that ask a worker for a report.
type question struct {
	app     *invocation.App
	output  terminal.Output
	timeout time.Duration
}

// checkTimeout refuses a time in which nobody can answer.
func (q *question) checkTimeout([]string) error {
	if q.timeout <= 0 {
		return exit.UsageError("--timeout %s: want more than 0", q.timeout)
	}
	return nil
}

// report asks a worker, and says in words why there is no answer.
func (q *question) report(ctx context.Context, c *invocation.Connection, in api.ProfileReportInput) (api.ProfileReport, error) {
	within := q.timeout
	ctx, cancel := exit.WithTimeout(ctx, within)
	defer cancel()
	answer, err := c.ProfileReport(ctx, in, within)
	err = exit.GivenUp(exit.OrStopped(ctx, err), fmt.Sprintf("timed out after %s waiting for the report of profiles", within),
		"no longer waiting for the report of profiles")
	return answer, c.Explain(err)
}

// warn says what keeps the file from being in force, and all nodes from being evaluated.
func warn(w io.Writer, r api.ProfileReport) {
	if r.Stopped != "" {
		fmt.Fprintf(w, "Warning: no node is evaluated: %s\n", exit.Indent(r.Stopped))
	}
	if r.Problem != "" {
		fmt.Fprintf(w, "Warning: the file is not in force as it stands: %s\n", exit.Indent(r.Problem))
	}
}
