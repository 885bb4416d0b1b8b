package api_test

import (
	"testing"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"drydock.dev/drydock/api"
)

func TestIdentityOfStarter(t *testing.T) {
	begun := &common.Memo{Fields: map[string]*common.Payload{api.MemoBegun: nil}}
	byNexus, err := converter.GetDefaultDataConverter().ToPayload("0a1b tenant/bios 2.4")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id   string
		memo *common.Memo
		want string
	}{
		{api.MaintenanceID("", "n1", "ops"), nil, "7@pod@"},
		{api.MaintenanceID("", "n1", api.RemediationRequestor("workers")), nil, "7@pod@"}, // by hand
		{api.MaintenanceID("", "n1", api.RemediationRequestor("workers")), begun, "health check workers (worker 7@pod@)"},
		{api.MaintenanceID("east", "n1", api.ProfileRequestor("reboot")), begun, "profile reboot (worker 7@pod@)"},
		{api.MaintenanceID("", "n1", api.PlansRequestor), begun, "the plans that share the node (worker 7@pod@)"},
		{"typed by hand", begun, "7@pod@"},
		{api.NexusOperationID("", "n1", "ops"), &common.Memo{Fields: map[string]*common.Payload{api.MemoNexus: byNexus}}, "workflow tenant/bios 2.4 (worker 7@pod@)"},
	} {
		started := &history.WorkflowExecutionStartedEventAttributes{Identity: "7@pod@", Memo: c.memo}
		if got := api.IdentityOfStarter(c.id, started); got != c.want {
			t.Errorf("%s: %q, want %q", c.id, got, c.want)
		}
	}
}
