package setup

import (
	"strings"
	"testing"

	"drydock.dev/drydock/rules/setup"
)

func TestAnOpenTemporalIsWarnedOf(t *testing.T) {
	for _, open := range []bool{true, false} {
		var out strings.Builder
		show(&out, setup.Report{Address: "temporal:7233", Namespace: "fleet", Open: open}, false, "drydock")
		const want = "WARNING: Temporal at temporal:7233 asks for no credentials: anyone who reaches it can evict pods"
		if got := out.String(); strings.Contains(got, want) != open || strings.Contains(got, "WARNING") != open {
			t.Errorf("open %t: %q", open, got)
		}
	}
}
