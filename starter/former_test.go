package starter

import (
	"io"
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
	} {
		var comment string
		cmd := &cobra.Command{Use: "fail"}
		cmd.Flags().StringVar(&comment, "comment", "", "why")
		takeFormerFlags(cmd, invocation.New(invocation.Process{Args: []string{"drydock"}, Stderr: io.Discard}))
		if err := cmd.ParseFlags(c.args); err != nil || comment != c.want {
			t.Errorf("%s: %q (%v), want %q", name, comment, err, c.want)
		}
	}
}
