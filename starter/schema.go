package starter

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/docs/schemas"
	"drydock.dev/drydock/rules/doctor"
	"drydock.dev/drydock/rules/migration"
	"drydock.dev/drydock/rules/preflight"
	rules "drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/setup"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/plan"
	"drydock.dev/drydock/starter/terminal"
)

// outputs are what commands print with -o json and -o yaml: a name, a value of its type, and the commands. Every command that sends a
// maintenance a message prints a summary.
var outputs = map[string]struct {
	of       any
	commands []string
}{
	"summaries":       {api.Maintenances{}, []string{"list", "start"}},
	"summary":         {api.MaintenanceSummary{}, []string{"watch"}},
	"status":          {api.Maintenance{}, []string{"status"}},
	"cluster":         {api.ClusterStatus{}, []string{"status without NODE"}},
	"limits":          {api.Scheduler{}, []string{"limits"}},
	"limits-set":      {api.LimitsInForce{}, []string{"limits set"}},
	"limits-diff":     {[]api.LimitDifference{}, []string{"limits diff"}},
	"freezes":         {[]schedule.Freeze{}, []string{"freeze", "thaw"}},
	"windows":         {api.Windows{}, []string{"windows"}},
	"preflight":       {[]preflight.Report{}, []string{"preflight"}},
	"doctor":          {doctor.Report{}, []string{"doctor"}},
	"setup":           {setup.Report{}, []string{"setup"}},
	"migrate":         {migration.Report{}, []string{"migrate"}},
	"migrate-shadow":  {migration.Compared{}, []string{"migrate --shadow"}},
	"history":         {[]record.Record{}, []string{"history"}},
	"report":          {record.Report{}, []string{"report"}},
	"audit-verify":    {record.Verdict{}, []string{"audit verify"}},
	"rollout":         {[]api.NodeOutcome{}, []string{"rollout", "plan attach"}},
	"plan":            {api.Plan{}, []string{"plan status"}},
	"plans":           {api.Plans{}, []string{"plan list"}},
	"plan-summary":    {api.PlanSummary{}, append([]string{"plan create", "plan set-selector"}, plan.Messages()...)},
	"plan-schedule":   {api.PlanSchedule{}, []string{"plan schedule"}},
	"plan-schedules":  {api.PlanSchedules{}, []string{"plan schedule list"}},
	"plan-preview":    {api.PlanPreview{}, []string{"plan create --dry-run"}},
	"health":          {api.HealthCheck{}, []string{"health status"}},
	"health-checks":   {api.HealthChecks{}, []string{"health list", "health start", "health apply"}},
	"health-summary":  {api.HealthCheckSummary{}, []string{"health pause", "health resume", "health confirm", "health remove"}},
	"health-explain":  {[]api.CheckExplanation{}, []string{"health explain"}},
	"profile-lint":    {rules.Report{}, []string{"profile lint"}},
	"profiles":        {api.ProfileNodes{}, []string{"profile list"}},
	"profile-explain": {api.ProfileExplanation{}, []string{"profile explain"}},
	"version":         {api.Versions{}, []string{"version"}},
}

// inputPrefix begins the names of inputs, which outputs have too.
const inputPrefix = "input-"

func newSchema(a *invocation.App) *cobra.Command {
	var output terminal.Output
	names := slices.Sorted(maps.Keys(outputs))
	for _, input := range schemas.Inputs() {
		names = append(names, inputPrefix+input)
	}
	cmd := &cobra.Command{
		Use:   "schema [OUTPUT | input-INPUT]",
		Short: "Show the JSON schema of what a command prints with -o json, or of an input",
		Long: `Show the JSON schema (draft 2020-12) of what a command prints with -o json, and in the same form with -o yaml, or of what a
workflow takes as input; without an argument, which there are. "drydock explain" has the fields of inputs for people.

Times are RFC 3339 in UTC, durations Go duration strings. Fields may be added; what one means does not change.`,
		Example: `  drydock schema
  drydock schema status > status.schema.json
  drydock schema input-maintenance > maintenance.schema.json`,
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: names,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				renderOutputs(output.Page(a.Stdout), names)
				return nil
			}
			schema, err := schemas.Of(args[0])
			if input, ok := strings.CutPrefix(args[0], inputPrefix); ok {
				schema, err = schemas.OfInput(input)
			}
			if err != nil {
				return exit.UsageError("there is no output %q: want one of %s", args[0], strings.Join(names, ", "))
			}
			_, err = a.Stdout.Write(schema)
			return err
		},
	}
	return cmd
}

func renderOutputs(w io.Writer, names []string) {
	r := terminal.NewRows(w, "OUTPUT", "OF THE COMMANDS")
	for _, name := range names {
		if commands := outputs[name].commands; len(commands) > 0 {
			r.Add(name, strings.Join(commands, ", "))
		}
	}
	r.Done()
	fmt.Fprintln(w, "Commands that tell a maintenance something print a summary.")
	fmt.Fprintf(w, "\nInputs: %s%s\n", inputPrefix, strings.Join(schemas.Inputs(), ", "+inputPrefix))
}
