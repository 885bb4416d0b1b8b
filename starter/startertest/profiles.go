package startertest

import (
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/state"
)

// ProfileNodes are nodes whose profiles are in states of all kinds.
func ProfileNodes() []api.ProfileNode {
	return []api.ProfileNode{
		{Node: "worker-01", State: state.Operational, Profiles: []api.NodeProfile{
			{Profile: "os-patching", State: state.Operational, Since: Before(50 * time.Hour), Waiting: []string{"needs_patch"}},
		}},
		{Node: "worker-02", State: state.Maintenance, Profiles: []api.NodeProfile{
			{Profile: "os-patching", State: state.Maintenance, Since: Before(5 * time.Minute), Busy: &profile.Busy{To: state.Maintenance, Enter: true, Since: Before(4 * time.Minute)}},
			{Profile: "flatcar", State: state.Required, Since: Before(time.Hour), Waiting: []string{"max", "working_hours"}, Failing: []string{"load"}},
		}},
		{Node: "worker-03", State: state.Required, Profiles: []api.NodeProfile{
			{Profile: "os-patching", State: state.Required, Since: Before(time.Hour), Busy: &profile.Busy{To: state.Maintenance}},
			{Profile: "flatcar", State: state.Required, Since: Before(time.Hour), Failure: "trigger reboot_ok: the node\nwas changed at 2026-07-01T09:55:00Z"},
		}},
		{Node: "worker-04", State: state.Operational, Profiles: []api.NodeProfile{{Profile: "gone", Unknown: true, State: state.Required}}},
		{Node: "worker-05", Problem: "the annotation cloud.sap/maintenance-data cannot be read: unexpected end of JSON input"},
	}
}
