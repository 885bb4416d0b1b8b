package starter

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/starter/invocation"
)

func TestAFormerFlagTakesNothingFromTheOneOfToday(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"one of today":  {[]string{"--comment", "by cron"}, "by cron"},
		"the latter":    {[]string{"--comment", "by cron", "--comment", "by hand"}, "by hand"},
		"a former one":  {[]string{"--reason", "disk"}, "disk"},
		"both":          {[]string{"--reason", "disk", "--comment", "by cron"}, "disk; by cron"},
		"the other way": {[]string{"--comment", "by cron", "--reason=disk"}, "by cron; disk"},
		"another one":   {[]string{"--profile", "prod", "--comment", "by cron", "--comment", "by hand"}, "by hand"},
	} {
		var comment string
		cmd := &cobra.Command{Use: "fail"}
		cmd.Flags().StringVar(&comment, "comment", "", "why")
		cmd.Flags().String("temporal-profile", "", "Temporal's")
		takeFormerFlags(cmd, invocation.New(invocation.Process{Args: []string{"drydock"}, Stderr: io.Discard}))
		if err := cmd.ParseFlags(c.args); err != nil || comment != c.want {
			t.Errorf("%s: %q (%v), want %q", name, comment, err, c.want)
		}
	}
}

func TestEachFormerFlagIsNotedOnce(t *testing.T) {
	var said strings.Builder
	cmd := &cobra.Command{Use: "fail"}
	cmd.Flags().String("comment", "", "why")
	cmd.Flags().String("temporal-profile", "", "Temporal's")
	takeFormerFlags(cmd, invocation.New(invocation.Process{Args: []string{"drydock"}, Stderr: &said}))
	if err := cmd.ParseFlags([]string{"--reason", "disk", "--profile", "prod", "--reason", "fan"}); err != nil {
		t.Fatal(err)
	}
	for _, note := range []string{"Note: --reason is now --comment;", "Note: --profile is now --temporal-profile;"} {
		if strings.Count(said.String(), note) != 1 {
			t.Errorf("%q is not there once, in %q", note, said.String())
		}
	}
}
