package bridge

import (
	"strings"
	"testing"
)

func TestWrongFlagsAreRefused(t *testing.T) {
	for want, args := range map[string][]string{
		`--log-level: "loud" is not one of debug, info, warn, error`: {"--log-level", "loud"},
		`--log-format: "xml" is neither text nor json`:               {"--log-format", "xml"},
		"unknown flag: --clutser":                                    {"--clutser", "prod-1"},
		`unknown command "up"`:                                       {"up"},
	} {
		var stderr strings.Builder
		status := Main(t.Context(), args, &stderr)
		if status == 0 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%v: exit status %d, %q; want %q", args, status, stderr.String(), want)
		}
	}
}
