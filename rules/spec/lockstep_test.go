package spec_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/rules/spec"
)

func TestWhatPlansCannotShareIsRefused(t *testing.T) {
	for field, c := range map[string]struct{ input, want string }{
		"requestor":               {`"requestor":"ops"`, `"ops": a maintenance with lockstep has the requestor "plans"`},
		"cordon":                  {`"cordon":false`, "hold its node cordoned"},
		"waitForPodCompletion":    {`"waitForPodCompletion":{"podSelector":"app=x"}`, "a later tier in the plan's drainPlan"},
		"preflight":               {`"preflight":"wait"`, "wait: it is not known beforehand"},
		"drain.mode":              {`"drain":{"mode":"external"}`, "external: a maintenance that plans share"},
		"drain.plan":              {`"drain":{"plan":[{"podPriority":1000}]}`, "use the plan's drainPlan"},
		"drain.escalation[1].do":  {`"drain":{"escalation":[{"after":"1m","do":"notify"},{"after":"2m","do":"giveBack"}]}`, "giveBack: what plans drain together"},
		"sla.do":                  {`"sla":{"after":"1m","do":"giveBack"},"drain":{"escalation":[]}`, "giveBack: what plans drain together"},
		"hooks.afterDrain":        {`"hooks":{"afterDrain":["detach"]}`, "drain its node several times"},
		"work":                    {`"work":"reboot"`, "its end would end the maintenance for all plans"},
		"lockstep":                {`"lockstep":"yes"`, "want true or false, got string"},
		"drain.escalation[0].do ": {`"drain":{"mode":"wait","escalation":[{"after":"1m","do":"kill"}]}`, "needs the drain mode evict"},
	} {
		input := `{"node":"n1","lockstep":true,` + c.input + `}`
		if field == "lockstep" {
			input = `{"node":"n1",` + c.input + `}`
		}
		_, err := spec.Decode([]byte(input), nil)
		if err == nil || !strings.HasPrefix(err.Error(), strings.TrimSpace(field)+": ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s: %s", input, err, field, c.want)
		}
	}
	taken := `{"node":"n1","requestor":"plans","lockstep":true,"approval":true,"windows":["night"],"preflight":"off","cordon":true,
		"drain":{"mode":"wait","escalation":[{"after":"1h","do":"fail"}],"force":true},"sla":{"after":"10m","do":"notify"},
		"hooks":{"beforeCordon":["a"],"beforeRelease":["b"]},"validation":{"ready":true},"onReadyTimeout":"release","additionalRequestors":["ops"]}`
	if _, err := spec.Decode([]byte(taken), nil); err != nil {
		t.Error(err)
	}
}

func TestDefaultsThatPlansCannotShareAreLeftOut(t *testing.T) {
	workers := `{"requestor":"ops","cordon":false,"waitForPodCompletion":{"podSelector":"app=x"},"preflight":"wait","work":"reboot","readyTimeout":"2h",
		"hooks":{"afterDrain":["a"],"beforeRelease":["b"]},"sla":{"after":"10m","do":"giveBack"},
		"drain":{"mode":"none","force":true,"plan":[{"podPriority":1000}],"escalation":[{"after":"5m","do":"notify"},{"after":"15m","do":"giveBack"}]}}`
	for name, defaults := range map[string]string{"none": "", "the worker's": workers} {
		got, err := spec.Decode([]byte(`{"node":"n1","lockstep":true}`), []byte(defaults))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, err := spec.Decode([]byte(`{"node":"n1","requestor":"plans"}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		want.Lockstep = true
		want.Drain.Escalation = []spec.Rung{{After: spec.Duration(time.Hour), Do: spec.Notify}}
		if defaults != "" {
			want.ReadyTimeout, want.Drain.Force, want.SLA = spec.Duration(2*time.Hour), true, &spec.SLA{After: spec.Duration(10 * time.Minute)}
			want.Hooks.BeforeRelease = []string{"b"}
			want.Drain.Escalation = []spec.Rung{{After: spec.Duration(5 * time.Minute), Do: spec.Notify}, {After: spec.Duration(15 * time.Minute), Do: spec.Notify}}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: want - got +\n%s", name, diff)
		}
		encoded, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := spec.Decode(encoded, []byte(defaults)); err != nil || !cmp.Equal(got, again) {
			t.Errorf("%s: again: %v\n%s", name, err, cmp.Diff(got, again))
		}
	}
	if err := spec.CheckDefaults([]byte(`{"lockstep":true}`)); err == nil || !strings.Contains(err.Error(), "lockstep: ") {
		t.Errorf("as a default: %v", err)
	}
}

func TestTheRequestorOfPlansIsReserved(t *testing.T) {
	for _, c := range []struct {
		m    spec.Maintenance
		want string
	}{
		{spec.Maintenance{Requestor: "ops"}, ""},
		{spec.Maintenance{Requestor: "plans", Lockstep: true}, ""},
		{spec.Maintenance{Requestor: "plans"}, "choose another name"},
	} {
		err := c.m.Reserved()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.m, err)
		}
	}
}
