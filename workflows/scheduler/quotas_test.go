package scheduler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

func TestARequestorHoldsNoMoreThanItsQuota(t *testing.T) {
	f := newFleet(t, 4)
	one := 1
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Unlimited(), Quotas: schedule.Quotas{HeldPerRequestor: &one}}
	f.request(time.Second, "n1", "ops", 10*time.Minute)
	second := f.request(2*time.Second, "n2", "ops", 10*time.Minute)
	f.request(3*time.Second, "n3", "net", 10*time.Minute)
	f.expectAt(5*time.Minute, "n1/ops n3/net", "n2/ops")
	f.expectAt(11*time.Minute, "n2/ops", "")
	f.run(time.Hour)
	if got := second.pending; len(got) == 0 || got[0].Code != schedule.Quota || got[0].Reason != "quota: ops holds 1 node (n1); the limit is 1" {
		t.Errorf("n2 got %+v", got)
	}
}

func TestAQuotaOfPendingRequestsTurnsTheNextDown(t *testing.T) {
	f := newFleet(t, 6)
	two, none := 2, 0
	f.state.Limits.Limits = schedule.Limits{Quotas: schedule.Quotas{
		PendingPerRequestor: &two, Requestors: map[string]schedule.RequestorQuota{"intern": {Pending: &none}},
	}}
	f.request(time.Second, "n1", "ops", time.Hour)
	f.request(10*time.Second, "n2", "ops", time.Minute)
	f.request(10*time.Second, "n3", "ops", time.Minute)
	over := f.request(10*time.Second, "n4", "ops", time.Minute)
	f.request(10*time.Second, "n5", "net", time.Minute)
	intern := f.request(10*time.Second, "n6", "intern", time.Minute)
	f.expectAt(time.Minute, "n1/ops", "n2/ops n3/ops n5/net")
	// One that was let in comes back after its node was given back, whatever waits by then.
	f.at(2*time.Minute, func() {
		again := api.SlotRequest{RunID: runOf("n4", "ops"), Request: over.request.Request}
		again.ID = runOf("n4", "ops") + "/2"
		f.mu.Lock()
		over.request.ID = again.ID
		f.mu.Unlock()
		f.signal(api.SignalSlotRequest, again)
	})
	f.at(3*time.Minute, func() {
		if state := f.stateNow(); !slices.ContainsFunc(state.Pending, func(p api.PendingRequest) bool { return p.ID == runOf("n4", "ops")+"/2" }) {
			t.Errorf("%+v", state.Pending)
		}
	})
	f.run(4 * time.Minute)
	if r := over.refused; r == nil || r.Code != schedule.Quota || r.Seen || !strings.Contains(r.Reason, "quota: ops has 2 requests that wait for a slot; the limit is 2") {
		t.Errorf("n4 got %+v", r)
	}
	if r := intern.refused; r == nil || r.Reason != "quota: intern may not ask for nodes" {
		t.Errorf("n6 got %+v", r)
	}
}

// Limits may carry quotas, and the state shows them.
func TestQuotasAreSetWithTheLimits(t *testing.T) {
	f := newFleet(t, 1)
	one, negative := 1, -1
	limits := schedule.Limits{MaxParallel: schedule.Count(3), Quotas: schedule.Quotas{HeldPerRequestor: &one}}
	set := f.update(time.Second, api.UpdateSetLimits, api.SetLimits{Limits: limits, By: "ann"})
	wrong := f.update(2*time.Second, api.UpdateSetLimits, api.SetLimits{By: "ann", Limits: schedule.Limits{Quotas: schedule.Quotas{HeldPerRequestor: &negative}}})
	f.at(3*time.Second, func() {
		if got := f.stateNow().Limits.Quotas.Of("ops").Held; got == nil || *got != 1 {
			t.Errorf("held %v", got)
		}
	})
	f.run(4 * time.Second)
	if set.rejected != nil || wrong.rejected == nil || !strings.Contains(wrong.rejected.Error(), "quotas.heldPerRequestor: -1 is negative") {
		t.Errorf("%v, %v", set.rejected, wrong.rejected)
	}
}
