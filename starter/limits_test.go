package starter

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"drydock.dev/drydock/rules/schedule"
)

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
		"remediations": {
			[]string{"--remediations", "0"}, "",
			schedule.Limits{MaxParallel: schedule.Count(1), MaxUnavailable: schedule.Percent(20), Remediations: schedule.Count(0), Groups: inForce.Groups},
		},
		"0 is a limit": {
			[]string{"--max-unavailable", "0"}, "",
			schedule.Limits{MaxParallel: schedule.Count(1), MaxUnavailable: schedule.Count(0), Groups: inForce.Groups},
		},
		"no limit":       {[]string{"--no-max-unavailable"}, "", schedule.Limits{MaxParallel: schedule.Count(1), Groups: inForce.Groups}},
		"windows":        {[]string{"--window", "nights", "--window", "weekends"}, "", schedule.Limits{MaxParallel: schedule.Count(1), MaxUnavailable: schedule.Percent(20), Groups: inForce.Groups, Windows: []string{"nights", "weekends"}}},
		"no windows":     {[]string{"--no-windows", "--from-file", "-"}, "maxParallel: 4\nwindows: [nights]\n", schedule.Limits{MaxParallel: schedule.Count(4), Remediations: schedule.DefaultRemediations}},
		"a file of both": {[]string{"--from-file", "-"}, "windows: {nights: {from: \"22:00\", to: \"04:00\"}}\nscheduler: {windows: [nights]}\n", schedule.Limits{MaxParallel: schedule.Count(1), Remediations: schedule.DefaultRemediations, Windows: []string{"nights"}}},
		"of a group": {
			[]string{"--group", "gpu", "--max-parallel", "3", "--max-unavailable", "50%", "--window", "nights"}, "",
			schedule.Limits{MaxParallel: schedule.Count(1), MaxUnavailable: schedule.Percent(20), Groups: []schedule.Group{
				{Name: "gpu", NodeSelector: "gpu", MaxParallel: schedule.Count(3), MaxUnavailable: schedule.Percent(50), Windows: []string{"nights"}},
			}},
		},
		"of a requestor": {
			[]string{"--held", "plans=5"}, "",
			schedule.Limits{MaxParallel: schedule.Count(1), MaxUnavailable: schedule.Percent(20), Groups: inForce.Groups,
				Quotas: schedule.Quotas{Requestors: map[string]schedule.RequestorQuota{"plans": {Held: new(5)}}}},
		},
		"flags over file": {[]string{"--from-file", "-", "--max-parallel", "9"}, "maxParallel: 4\nmaxUnavailable: 1\n", schedule.Limits{MaxParallel: schedule.Count(9), MaxUnavailable: schedule.Count(1), Remediations: schedule.DefaultRemediations}},
	} {
		t.Run(name, func(t *testing.T) {
			var o limitsSetOptions
			cmd := &cobra.Command{}
			o.register(cmd)
			if err := cmd.ParseFlags(c.args); err != nil {
				t.Fatal(err)
			}
			change, err := o.change(strings.NewReader(c.stdin))
			if err != nil {
				t.Fatal(err)
			}
			got, err := change(inForce)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
			if inForce.Groups[0].MaxParallel != schedule.Count(1) {
				t.Error("the limits in force were changed in place")
			}
		})
	}
}

func TestLimitsOfAGroupThatIsNotThereAreRefused(t *testing.T) {
	for _, c := range []struct {
		args   []string
		groups []schedule.Group
		want   string
	}{
		{[]string{"--group", "gpu", "--max-parallel", "2"}, nil, `--group: the limits have no group "gpu": they have none`},
		{[]string{"--group", "gpu", "--max-parallel", "2"}, []schedule.Group{{Name: "a"}, {Name: "b"}}, `--group: the limits have no group "gpu": they have a, b`},
		{[]string{"--group", "gpu"}, nil, "--group: say which of its limits to change"},
		{nil, nil, "nothing to change: pass --max-parallel"},
	} {
		var o limitsSetOptions
		cmd := &cobra.Command{}
		o.register(cmd)
		if err := cmd.ParseFlags(c.args); err != nil {
			t.Fatal(err)
		}
		change, err := o.change(nil)
		if err == nil {
			_, err = change(schedule.Limits{Groups: c.groups})
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.args, err, c.want)
		}
	}
}

func TestTheWindowsOfLimitsAreThoseOfGroupsToo(t *testing.T) {
	got := windowsNamed(schedule.Limits{Windows: []string{"nights", "holidays"}, Groups: []schedule.Group{{Windows: []string{"nights"}}, {Windows: []string{"always"}}}})
	if want := []string{"always", "holidays", "nights"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestFlagsOfLimitsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--max-parallel", "many"}, `--max-parallel: "many" is not an amount: want a whole number such as 3, or a percentage from 0% to 100%, or "unlimited"`},
		{[]string{"--max-unavailable", "unlimited"}, "--max-unavailable: unlimited is refused: say --no-max-unavailable"},
		{[]string{"--max-unavailable", "3", "--no-max-unavailable"}, "--max-unavailable and --no-max-unavailable contradict each other"},
		{[]string{"--window", "nights", "--no-windows"}, "--window and --no-windows contradict each other"},
		{[]string{"--group", "gpu", "--remediations", "3"}, "--remediations: is a limit of the whole cluster"},
	} {
		var o limitsSetOptions
		cmd := &cobra.Command{}
		o.register(cmd)
		if err := cmd.ParseFlags(c.args); err != nil {
			t.Fatal(err)
		}
		if _, err := o.change(nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.args, err, c.want)
		}
	}
}
