package permissions_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/workflow"

	preflightactivity "drydock.dev/drydock/activities/preflight"
	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/api"
	rules "drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/permissions"
	"drydock.dev/drydock/workflows/workflowtest"
)

// askPermissions runs the workflow, and returns what the activity was asked.
func askPermissions(t *testing.T, in any) (asked preflightactivity.PermissionsInput, report api.PermissionsReport, err error) {
	t.Helper()
	env := workflowtest.Environment(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	env.RegisterWorkflowWithOptions(permissions.Permissions, workflow.RegisterOptions{Name: api.PermissionsType})
	env.RegisterActivity(call.Preflights)
	env.RegisterActivity((*settings.Activities)(nil).Prepare)
	env.OnActivity(call.Settings.Prepare, mock.Anything, mock.Anything).Return(settings.Prepared{}, nil)
	env.OnActivity(call.Preflights.CheckPermissions, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in preflightactivity.PermissionsInput) (api.PermissionsReport, error) {
			asked = in
			return api.PermissionsReport{Missing: []rules.Finding{{Code: rules.MissingPermission}}}, nil
		})
	env.ExecuteWorkflow(api.PermissionsType, in)
	if err = env.GetWorkflowError(); err == nil {
		err = env.GetWorkflowResult(&report)
	}
	return asked, report, err
}

func TestPermissionsAreAskedForWhatIsStarted(t *testing.T) {
	check := json.RawMessage(`{"selector":{"matchLabels":{"role":"worker"}},"escalatingRemediations":[
		{"order":1,"timeout":"10m","maintenance":{"input":{"drain":{"mode":"wait"}}}},
		{"order":2,"timeout":"10m","remediationTemplate":{"apiVersion":"r/v1","kind":"RebootTemplate","namespace":"n","name":"soft"}}]}`)
	asked, report, err := askPermissions(t, api.PermissionsInput{HealthCheck: check})
	if err != nil || !asked.HealthCheck || len(asked.Drains) != 1 || asked.Drains[0].Drain.Mode != spec.ModeWait || len(report.Missing) != 1 {
		t.Errorf("%+v, %+v, %v", asked, report, err)
	}
	asked, _, err = askPermissions(t, api.PermissionsInput{Maintenance: json.RawMessage(`{"node":"any","waitForPodCompletion":{"podSelector":"a=b"}}`)})
	if err != nil || asked.HealthCheck || len(asked.Drains) != 1 || !asked.Drains[0].WaitsForPods || asked.Drains[0].Drain.Mode != spec.ModeEvict {
		t.Errorf("%+v, %v", asked, err)
	}
	for text, want := range map[string]string{
		`{}`: "give either maintenance or healthCheck", `{"maintenance":{"node":"any"},"healthCheck":{}}`: "give either",
		`{"maintenance":{"nod":"any"}}`: "nod", `{"other":1}`: "other",
	} {
		if _, _, err := askPermissions(t, json.RawMessage(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
