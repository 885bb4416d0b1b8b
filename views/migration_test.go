package views_test

import (
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/rules/migration"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/views"
)

func TestWhatDiffersIsSaidInALine(t *testing.T) {
	at := startertest.Noon
	for want, c := range map[string]migration.Compared{
		"a for os: taken, by Drydock too":                                         {Difference: migration.Same, System: at},
		"a for os: taken; Drydock would have taken it 5m earlier":                 {Difference: migration.Earlier, System: at, By: period.Duration(5 * time.Minute)},
		"a for os: taken; Drydock would have let it wait: maxParallel 1":          {Difference: migration.Later, System: at, Why: "maxParallel 1"},
		"a for os: waits; Drydock would take it":                                  {Difference: migration.Sooner},
		"a for os: waits, with Drydock too: maxParallel 1":                        {Difference: migration.Waits, Why: "maxParallel 1"},
		"a for os: not asked for any more; it was never taken":                    {Difference: migration.Gone, Ended: at},
		"a for os: given back (taken, by Drydock too)":                            {Difference: migration.Same, System: at, Ended: at},
		"a for os: out of service since before":                                   {Difference: migration.Before, System: at},
		"a for os: given back (taken; Drydock would have let it wait: the reason": {Difference: migration.Later, System: at, Ended: at, Why: "the reason"},
	} {
		c.Node, c.For = "a", "os"
		if got := views.Compared(c); !strings.HasPrefix(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
