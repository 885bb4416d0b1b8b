package views_test

import (
	"io"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

func TestLimitTables(t *testing.T) {
	state := api.State{
		Limits: api.LimitsInForce{SetBy: "ops@host", SetAt: startertest.Before(2 * time.Hour), Comment: "two crews", Limits: schedule.Limits{
			MaxParallel: schedule.Count(2), MaxUnavailable: schedule.Percent(20),
			Groups: []schedule.Group{
				{Name: "gpu", NodeSelector: "pool=gpu", MaxParallel: schedule.Unlimited()},
				{Name: "zone", NodeSelector: "a=b", GroupBy: []string{"zone", "rack"}, MaxUnavailable: schedule.Count(1)},
			},
		}},
		Rebuilding: true,
		Freezes:    []schedule.Freeze{{By: "incident-1", Reason: "disk\nfull", At: startertest.Before(time.Hour), Running: true}},
		Holders: []api.Holder{
			{Grant: schedule.Grant{Node: "worker-01", Requestor: "ops"}, GrantedAt: startertest.Before(time.Minute)},
			{Grant: schedule.Grant{Node: "cp-1", Requestor: "health-cp", Kind: schedule.KindControlPlane}, GrantedAt: startertest.Before(time.Hour)},
		},
		Nodes: 6, Unavailable: 3, UnavailableOthers: []schedule.UnavailableNode{{Node: "worker-05", Why: "cordoned"}}, ObservedAt: startertest.Ago(3 * time.Second),
		PendingAll: 23,
	}
	for range 20 {
		state.Pending = append(state.Pending, api.PendingRequest{
			SlotRequest: api.SlotRequest{Request: schedule.Request{Node: "worker-02", Requestor: "net", Priority: 5, Created: startertest.Before(time.Hour)}},
			Reason:      "frozen by incident-1 (disk full)",
		})
	}
	startertest.GoldenInWidths(t, "limits", func(w io.Writer) { terminal.Show(w, views.Scheduler(api.SchedulerOf(state), noon)) })
	startertest.Golden(t, "limits_empty", func(w io.Writer) { terminal.Show(w, views.Scheduler(api.Scheduler{}, noon)) })
}

func TestQuotasAreShownWithTheLimits(t *testing.T) {
	two, none := 2, 0
	l := api.LimitsInForce{SetBy: "ann", Limits: schedule.Limits{MaxParallel: schedule.Count(1), Quotas: schedule.Quotas{
		HeldPerRequestor: &two, Requestors: map[string]schedule.RequestorQuota{"intern": {Pending: &none}},
	}}}
	startertest.Golden(t, "limits_quotas", func(w io.Writer) { terminal.Show(w, views.Limits(l, noon)) })
}
