package plan

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPlansThatDifferInWhatIsSharedAreTold(t *testing.T) {
	for name, c := range map[string]struct{ a, b, want string }{
		"the same":                 {`{"drain":{"force":true,"timeout":"1h"}}`, `{"drain": {"timeout":"1h", "force":true}}`, ""},
		"nothing":                  {``, `{}`, ""},
		"what each has for itself": {`{"reason":"a","ticket":"1","notify":["x"]}`, `{"owner":"b","windows":["w"]}`, ""},
		"one field":                {`{"drain":{"force":true}}`, `{"drain":{"force":false}}`, `maintenance.drain is {"force":true} in plan a and {"force":false} in plan b`},
		"one that is absent":       {`{"work":"patch"}`, `{}`, `maintenance.work is "patch" in plan a and absent in plan b`},
		"a large number":           {`{"x":12345678901234567890}`, `{"x":12345678901234567891}`, "maintenance.x is 12345678901234567890"},
		"many":                     {`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}`, `{}`, "and 2 more fields differ"},
		"a long one":               {`{"x":"` + strings.Repeat("y", 5000) + `"}`, `{}`, "…"},
	} {
		got := Unshareable("a", json.RawMessage(c.a), "b", json.RawMessage(c.b))
		if !strings.Contains(got, c.want) || c.want == "" && got != "" || len(got) > 2000 {
			t.Errorf("%s: %s", name, got)
		}
	}
}
