package starter

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"drydock/rules/schedule"
)

func TestReadLimits(t *testing.T) {
	zone := schedule.Group{Name: "zone", GroupBy: []string{"zone"}, MaxUnavailable: schedule.Count(1)}
	for name, c := range map[string]struct {
		file string
		want schedule.Limits
		err  string
	}{
		"limits alone": {"maxParallel: 3\nmaxUnavailable: 20%\n", schedule.Limits{MaxParallel: schedule.Count(3), MaxUnavailable: schedule.Percent(20)}, ""},
		"a worker's configuration": {
			"cluster: blue\nscheduler:\n  onOrphan: report\n  groups: [{name: zone, groupBy: [zone], maxUnavailable: 1}]\nlog: {level: debug}\n",
			schedule.Limits{MaxParallel: schedule.Count(1), Groups: []schedule.Group{zone}}, "",
		},
		"a configuration with channels": {
			"channels: {oncall: {slack: {token: {file: /t}, channel: C1}}}\naudit: {log: true}\nscheduler: {maxParallel: 2}\n",
			schedule.Limits{MaxParallel: schedule.Count(2)}, "",
		},
		"a configuration without limits": {"cluster: blue\n", schedule.Limits{MaxParallel: schedule.Count(1)}, ""},
		"JSON":                           {`{"maxParallel":"unlimited"}`, schedule.Limits{MaxParallel: schedule.Unlimited()}, ""},
		"unknown field":                  {"scheduler: {maxPara: 2}", schedule.Limits{}, "scheduler.maxPara: unknown field"},
		"refused limit":                  {"maxParallel: 0", schedule.Limits{}, "maxParallel: 0 is refused"},
		"not an object":                  {"3", schedule.Limits{}, "want a JSON object"},
		"empty":                          {"", schedule.Limits{}, "want a JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readLimits("-", strings.NewReader(c.file))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || codeOf(err) != exitUsage {
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

func TestLimitsAreChangedOneByOne(t *testing.T) {
	inForce := schedule.Limits{
		MaxParallel: schedule.Count(1), MaxUnavailable: schedule.Percent(20),
		Groups: []schedule.Group{{Name: "gpu", NodeSelector: "gpu", MaxParallel: schedule.Count(1)}},
	}
	for name, c := range map[string]struct {
		args  []string
		stdin string
		want  schedule.Limits
	}{
		"one": {[]string{"--max-parallel", "2"}, "", schedule.Limits{MaxParallel: schedule.Count(2), MaxUnavailable: schedule.Percent(20), Groups: inForce.Groups}},
		"0 is a limit": {
			[]string{"--max-unavailable", "0"}, "",
			schedule.Limits{MaxParallel: schedule.Count(1), MaxUnavailable: schedule.Count(0), Groups: inForce.Groups},
		},
		"no limit":        {[]string{"--no-max-unavailable"}, "", schedule.Limits{MaxParallel: schedule.Count(1), Groups: inForce.Groups}},
		"flags over file": {[]string{"--from-file", "-", "--max-parallel", "9"}, "maxParallel: 4\nmaxUnavailable: 1\n", schedule.Limits{MaxParallel: schedule.Count(9), MaxUnavailable: schedule.Count(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			var o limitsSetOptions
			cmd := &cobra.Command{}
			o.register(cmd)
			if err := cmd.ParseFlags(c.args); err != nil {
				t.Fatal(err)
			}
			change, err := o.change(cmd.Flags(), strings.NewReader(c.stdin))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, change(inForce)); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
		})
	}
}

func TestLimitDifferences(t *testing.T) {
	inForce := schedule.Limits{MaxParallel: schedule.Count(2), MaxUnavailable: schedule.Percent(20), Groups: []schedule.Group{
		{Name: "b", NodeSelector: "b", MaxParallel: schedule.Count(1)}, {Name: "a", NodeSelector: "a", MaxParallel: schedule.Count(1)},
	}}
	file := schedule.Limits{MaxUnavailable: schedule.Percent(20), Groups: []schedule.Group{
		{Name: "a", NodeSelector: "a", MaxParallel: schedule.Count(1)}, {Name: "c", GroupBy: []string{"zone"}, MaxUnavailable: schedule.Count(1)},
	}}
	want := []limitDifference{
		{"groups.b.maxParallel", "1", ""}, {"groups.b.nodes", "b", ""},
		{"groups.c.maxUnavailable", "", "1"}, {"groups.c.nodes", "", "each zone"}, {"maxParallel", "2", "1"},
	}
	if diff := cmp.Diff(want, limitDifferences(inForce, file)); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if same := limitDifferences(file, file.WithDefaults()); same == nil || len(same) != 0 {
		t.Errorf("equal limits differ: %v", same)
	}
}
