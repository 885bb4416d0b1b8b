package input

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/starter/exit"
)

func TestReadLimits(t *testing.T) {
	three := 3
	zone := schedule.Group{Name: "zone", GroupBy: []string{"zone"}, MaxUnavailable: schedule.Count(1)}
	for name, c := range map[string]struct {
		file string
		want schedule.Limits
		err  string
	}{
		"limits alone": {"maxParallel: 3\nmaxUnavailable: 20%\n", schedule.Limits{Remediations: schedule.DefaultRemediations, MaxParallel: schedule.Count(3), MaxUnavailable: schedule.Percent(20)}, ""},
		"a worker's configuration": {
			"cluster: blue\nscheduler:\n  onOrphan: report\n  groups: [{name: zone, groupBy: [zone], maxUnavailable: 1}]\nlog: {level: debug}\n",
			schedule.Limits{Remediations: schedule.DefaultRemediations, MaxParallel: schedule.Count(1), Groups: []schedule.Group{zone}}, "",
		},
		"a configuration with channels": {
			"channels: {oncall: {slack: {token: {file: /t}, channel: C1}}}\naudit: {log: true}\nscheduler: {maxParallel: 2}\n",
			schedule.Limits{Remediations: schedule.DefaultRemediations, MaxParallel: schedule.Count(2)}, "",
		},
		"a configuration without limits": {"cluster: blue\n", schedule.Limits{Remediations: schedule.DefaultRemediations, MaxParallel: schedule.Count(1)}, ""},
		"JSON":                           {`{"maxParallel":"unlimited"}`, schedule.Limits{Remediations: schedule.DefaultRemediations, MaxParallel: schedule.Unlimited()}, ""},
		"a configuration with quotas": {
			"policy: [{name: a, require: \"true\"}]\nquotas: {heldPerRequestor: 3}\nscheduler: {maxParallel: 2}\n",
			schedule.Limits{Remediations: schedule.DefaultRemediations, MaxParallel: schedule.Count(2), Quotas: schedule.Quotas{HeldPerRequestor: &three}}, "",
		},
		"limits alone, with quotas": {
			"quotas: {heldPerRequestor: 3}\n", schedule.Limits{Remediations: schedule.DefaultRemediations, MaxParallel: schedule.Count(1), Quotas: schedule.Quotas{HeldPerRequestor: &three}}, "",
		},
		"quotas in another place": {"log: {}\nscheduler: {quotas: {heldPerRequestor: 3}}", schedule.Limits{}, "scheduler.quotas: write it as quotas"},
		"unknown quota":           {"log: {}\nquotas: {held: 3}", schedule.Limits{}, "quotas.held: unknown field"},
		"refused quota":           {"log: {}\nquotas: {heldPerRequestor: 0}", schedule.Limits{}, "quotas.heldPerRequestor: 0 is refused"},
		"unknown field":           {"scheduler: {maxPara: 2}", schedule.Limits{}, "scheduler.maxPara: unknown field"},
		"remediations alone":      {"remediations: 5%", schedule.Limits{MaxParallel: schedule.Count(1), Remediations: schedule.Percent(5)}, ""},
		"a typo in limits alone":  {"maxParalel: 2", schedule.Limits{}, `maxParalel: unknown field; did you mean "maxParallel"?`},
		"a typo in a section":     {"log: {}\nscheduller: {maxParallel: 2}", schedule.Limits{}, `scheduller: unknown field; did you mean "scheduler"?`},
		"limits in no section":    {"log: {}\nmaxParallel: 2", schedule.Limits{}, "maxParallel: unknown field"},
		"refused limit":           {"maxParallel: 0", schedule.Limits{}, "maxParallel: 0 is refused"},
		"not an object":           {"3", schedule.Limits{}, "want a JSON object"},
		"empty":                   {"", schedule.Limits{}, "want a JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadLimits("-", strings.NewReader(c.file))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || exit.CodeOf(err) != exit.Usage {
					t.Fatalf("error = %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
		})
	}
}
