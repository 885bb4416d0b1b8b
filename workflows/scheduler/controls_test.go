package scheduler

import (
	"slices"
	"strings"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

func TestControlsKeepOneFreezeAPerson(t *testing.T) {
	c := &controls{&State{Rebuilt: true}}
	if what := c.freeze(api.FreezeRequest{By: "amy"}, noon); what != "grants frozen" {
		t.Error(what)
	}
	if what := c.freeze(api.FreezeRequest{By: "amy", Reason: "storm", Running: true}, noon); what != "grants and running maintenances frozen" {
		t.Error(what)
	}
	c.freeze(api.FreezeRequest{By: "bob", Running: true}, noon)
	c.freeze(api.FreezeRequest{By: "cat"}, noon)
	if got := c.notice().Reasons; !slices.Equal(got, []string{"frozen by amy: storm", "frozen by bob"}) {
		t.Errorf("reasons %q", got)
	}
	if err := c.checkThaw(api.ThawRequest{By: "dan"}); err == nil || !strings.Contains(err.Error(), "frozen by amy, bob, cat") {
		t.Error(err)
	}
	// Before the rebuild nobody knows who froze.
	c.Rebuilt = false
	if err := c.checkThaw(api.ThawRequest{By: "dan"}); err != nil {
		t.Error(err)
	}
	c.Rebuilt = true
	c.thaw(api.ThawRequest{By: "amy"}, noon)
	c.thaw(api.ThawRequest{By: "cat"}, noon)
	if len(c.Freezes) != 1 || c.Freezes[0].By != "bob" {
		t.Errorf("freezes %+v", c.Freezes)
	}
	c.thaw(api.ThawRequest{By: "dan", All: true}, noon)
	if err := c.checkThaw(api.ThawRequest{By: "dan"}); err == nil || err.Error() != "nothing is frozen" {
		t.Error(err)
	}
}

func TestControlsCountChangesOfTheLimits(t *testing.T) {
	c := &controls{&State{Rebuilt: true}}
	asked := api.SetLimits{By: "amy", Limits: schedule.Limits{MaxParallel: schedule.Count(2)}, IfRevision: new(int)}
	if err := c.checkLimits(asked); err != nil {
		t.Fatal(err)
	}
	if what := c.setLimits(asked, noon); !strings.HasPrefix(what, "limits changed from ") || c.Revision != 1 || c.Limits.SetBy != "amy" {
		t.Errorf("%s: %+v", what, c)
	}
	if err := c.checkLimits(asked); err == nil || !strings.Contains(err.Error(), "at revision 1, set by amy") {
		t.Errorf("out of date: %v", err)
	}
	c.Rebuilt = false
	if err := c.checkLimits(asked); err != nil {
		t.Errorf("before the rebuild: %v", err)
	}
	asked.By = strings.Repeat("a", maxName+1)
	if err := c.checkLimits(asked); err == nil || !strings.Contains(err.Error(), "by: 254 bytes are more than 253") {
		t.Error(err)
	}
}
