package views_test

import (
	"strings"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

func TestHoldersThatAreNoMaintenancesAreNamedInOneLine(t *testing.T) {
	holder := func(kind schedule.HolderKind, node, requestor string) api.Holder {
		return api.Holder{Grant: schedule.Grant{Kind: kind, Node: node, Requestor: requestor}}
	}
	maintenance := holder(schedule.KindMaintenance, "worker-01", "ops")
	profile := holder(schedule.KindProfile, "worker-02", "profile-flatcar")
	for name, c := range map[string]struct {
		holders []api.Holder
		want    string
	}{
		"nobody":       {nil, ""},
		"maintenances": {[]api.Holder{maintenance}, ""},
		"others": {
			[]api.Holder{maintenance, profile, holder(schedule.KindControlPlane, "cp-1", "health-cp")},
			"Slots of no maintenance: worker-02 (profile flatcar), cp-1 (control-plane remediation by health-cp)\n",
		},
		"many": {
			[]api.Holder{profile, profile, profile, profile, profile, profile, profile},
			"Slots of no maintenance: " + strings.Repeat("worker-02 (profile flatcar), ", 5) + "2 more\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if terminal.Show(&out, views.OtherHolders(c.holders)); out.String() != c.want {
				t.Errorf("%q, want %q", out.String(), c.want)
			}
		})
	}
}
