package trust

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/config/temporalenv"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/starter/invocation"
)

// apiKeyOf has the started process call with the API key of a file, in plain text.
func apiKeyOf(t *testing.T, dir, key string) []string {
	t.Helper()
	path := filepath.Join(dir, key)
	if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"TEMPORAL_TLS=false", temporalenv.VariableAPIKeyFile + "=" + path}
}

// startWithRoles runs a Temporal whose callers have roles, each by the key of its name; the test itself may do everything.
func startWithRoles(t *testing.T, lines ...string) (temporal *devstack.Temporal, keyOf func(string) []string) {
	t.Helper()
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys")
	if err := os.WriteFile(keys, []byte("everything\n"+strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keyOf = func(key string) []string { return apiKeyOf(t, dir, key) }
	options, err := temporalenv.Options(invocation.Environment(keyOf("everything")), "")
	if err != nil {
		t.Fatal(err)
	}
	temporal, err = devstack.StartTemporal(t.Context(), devstack.TemporalOptions{
		Dir: filepath.Join(site.Shared.Dir, "temporal-with-roles"), Attributes: true, InMemory: true, Connection: options, Environment: keyOf("everything"),
		Args: []string{"--api-keys-file", keys, "--dynamic-config-value", "frontend.enablePrincipalPropagation=true"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { site.Stop(temporal.Process) })
	return temporal, keyOf
}

// TestRolesAreKeptApart has those who start, who approve and who operate each do their own and be refused the others', while a worker with
// its role alone sees to the maintenance from the start to the end.
func TestRolesAreKeptApart(t *testing.T) {
	t.Parallel()
	temporal, keyOf := startWithRoles(t,
		"starts starter stella", "approves approver amy", "both starter,approver pat", "operates operator otto", "works worker drydock")
	s := site.PrepareOf(t, site.Shared.Lanes.Take(t), temporal, "policy:\n- name: two-pairs-of-eyes\n  require: approval.principal != starter.principal\n")
	s.Options.Environment = keyOf("works")
	s.StartWorker()
	as := func(key string, args ...string) site.Ran {
		cmd := s.Command("drydock", args...)
		cmd.Env = append(cmd.Env, keyOf(key)...)
		return s.Execute(cmd)
	}
	clientOfKey := func(key string) client.Client {
		options, err := temporalenv.Options(invocation.Environment(keyOf(key)), "")
		if err != nil {
			t.Fatal(err)
		}
		options.HostPort = temporal.Address
		c, err := client.DialContext(s.Ctx, options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	refused := func(what string, err error) {
		t.Helper()
		var denied *serviceerror.PermissionDenied
		if !errors.As(err, &denied) || denied.Reason == "" {
			t.Errorf("%s: %v, want a refusal with its reason", what, err)
		}
	}

	s.Exits(as("starts", "start", "worker-01", "--approval"), 0)
	run := s.RunOf("worker-01")
	s.Until(run, api.AwaitingApproval)
	starter := clientOfKey("starts")
	refused("the starter approves by signal", starter.SignalWorkflow(s.Ctx, run.GetID(), "", api.MsgApprove, nil))
	_, err := starter.UpdateWorkflow(s.Ctx, client.UpdateWorkflowOptions{
		WorkflowID: run.GetID(), UpdateName: api.MsgApprove, Args: []any{nil}, WaitForStage: client.WorkflowUpdateStageAccepted,
	})
	refused("the starter approves by update", err)
	s.Exits(as("starts", "approve", "worker-01"), 1, "refuses access", `message "approve" is for the role approver`)
	s.Exits(as("operates", "approve", "worker-01"), 1, "is for the role approver")
	s.Exits(as("starts", "limits", "set", "--max-parallel", "3"), 1, "is for the role operator")
	refused("the starter terminates", starter.TerminateWorkflow(s.Ctx, run.GetID(), "", "mine"))
	_, err = clientOfKey("approves").ExecuteWorkflow(s.Ctx, client.StartWorkflowOptions{
		ID: api.MaintenanceID(s.Cluster, "worker-02", "ops"), TaskQueue: api.TaskQueue(s.Cluster, api.DefaultTaskQueue),
	}, api.NodeMaintenanceType, map[string]string{"node": "worker-02", "requestor": "ops"})
	refused("the approver starts", err)
	if status := s.MustStatus(run); status.Phase != api.AwaitingApproval || status.Approval != nil {
		t.Errorf("%s, approval %+v", status.Phase, status.Approval)
	}

	s.Exits(as("operates", "limits", "set", "--max-parallel", "3"), 0)
	if limits := s.State().Limits; limits.MaxParallel != schedule.Count(3) {
		t.Errorf("limits %+v", limits)
	}
	s.Exits(as("approves", "approve", "worker-01"), 0)
	status := s.Until(run, api.Ready)
	if status.Starter == nil || status.Starter.Principal != "api-key:stella" || status.Approval == nil || status.Approval.Principal != "api-key:amy" {
		t.Errorf("starter %+v, approval %+v", status.Starter, status.Approval)
	}
	s.Exits(as("starts", "done", "worker-01", "--wait"), 0)
	s.MustEnd(run, api.Completed)

	// One pair of eyes with both roles is still one.
	s.Exits(as("both", "start", "worker-02", "--approval"), 0)
	own := s.RunOf("worker-02")
	s.Until(own, api.AwaitingApproval)
	if err := clientOfKey("both").SignalWorkflow(s.Ctx, own.GetID(), "", api.MsgApprove, nil); err != nil {
		t.Fatal(err)
	}
	s.UntilStatus(own, "the policy has refused", func(status api.Status) bool {
		return len(status.Messages) == 1 && strings.Contains(fmt.Sprint(status.Messages[0].Effect), "two-pairs-of-eyes")
	})
	s.Exits(as("approves", "deny", "worker-02"), 0)
	s.MustEnd(own, api.Cancelled)
}
