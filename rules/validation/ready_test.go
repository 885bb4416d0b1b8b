package validation_test

import (
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/validation"
)

func TestANodeThatIsNotReadyIsNotValidated(t *testing.T) {
	restarted := func(ready string) validation.Facts {
		facts := boots("a", "b")
		facts.Node.Conditions = []validation.NodeCondition{{Type: "Ready", Status: ready, Message: "kubelet stopped posting"}}
		return facts
	}
	named := []validation.Condition{{Type: "Ready", ForAtLeast: period.Duration(time.Minute)}}
	for name, c := range map[string]struct {
		v    validation.Validation
		want string
	}{
		"implied":         {validation.Validation{NewBootID: true}, "conditions Ready: is Unknown, want True: kubelet stopped posting"},
		"said":            {validation.Validation{NewBootID: true, Ready: new(true)}, "conditions Ready: is Unknown"},
		"alone":           {validation.Validation{Ready: new(true)}, "conditions Ready: is Unknown"},
		"beside a signal": {validation.Validation{Signal: true}.Looks(), "conditions Ready: is Unknown"},
		"once, by name":   {validation.Validation{NewBootID: true, Conditions: named}, "conditions Ready: is Unknown"},
		"switched off":    {validation.Validation{NewBootID: true, Ready: new(false)}, ""},
		"of nothing":      {validation.Validation{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := validation.Decide(c.v, restarted("Unknown"), noon)
			if got := r.Summary(9); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") || strings.Count(got, "Ready") > 1 {
				t.Errorf("missing: %q, want %q", got, c.want)
			}
			if got := validation.Decide(c.v, restarted("True"), noon); !got.AllGood {
				t.Errorf("on a node that is Ready: %+v", got)
			}
			if c.v.LooksAt("Ready") != (c.want != "") || c.v.LooksAt("MemoryPressure") {
				t.Error("what is looked at is not what is decided")
			}
		})
	}
}
