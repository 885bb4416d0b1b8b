package migration

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestTheLimitsOfAConfiguration(t *testing.T) {
	number, text := func(n int) *intstr.IntOrString { return new(intstr.FromInt(n)) }, func(s string) *intstr.IntOrString { return new(intstr.FromString(s)) }
	for name, c := range map[string]struct {
		parallel, unavailable *intstr.IntOrString
		frozen                bool
		limits                string
		wrong                 string
	}{
		"none":                 {limits: `{"maxParallel":1}`},
		"numbers":              {parallel: number(3), unavailable: number(0), limits: `{"maxParallel":3,"maxUnavailable":0}`},
		"percentages":          {parallel: text("50%"), unavailable: text("10%"), limits: `{"maxParallel":"50%","maxUnavailable":"10%"}`},
		"no operations":        {parallel: number(0), unavailable: number(2), frozen: true, limits: `{"maxParallel":1,"maxUnavailable":2}`},
		"fewer than none":      {parallel: number(-1), frozen: true, limits: `{"maxParallel":1}`},
		"a negative limit":     {unavailable: number(-1), limits: `{"maxParallel":1}`},
		"what is no amount":    {parallel: text("abc"), wrong: "spec.maxParallelOperations"},
		"nor a limit":          {unavailable: text("abc"), wrong: "spec.maxUnavailable"},
		"more than everything": {parallel: text("120%"), limits: `{"maxParallel":"100%"}`},
	} {
		frozen, limits, err := OperatorLimits(c.parallel, c.unavailable)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		got, failed := json.Marshal(limits)
		if err != nil || failed != nil || frozen != c.frozen || string(got) != c.limits {
			t.Errorf("%s: %v %v, frozen %t, %s", name, err, failed, frozen, got)
		}
	}
}
