package windows_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	windowsactivity "drydock.dev/drydock/activities/windows"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/window"
	"drydock.dev/drydock/workflows/windows"
	"drydock.dev/drydock/workflows/workflowtest"
)

func ask(t *testing.T, input any) (horizon window.Horizon, asked []api.WindowsInput, err error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartTime(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	acts, err := windowsactivity.New(map[string]window.Window{"nights": {From: "22:00", To: "04:00"}})
	if err != nil {
		t.Fatal(err)
	}
	env.RegisterActivity(acts)
	env.OnActivity("ListWindows", mock.Anything, mock.Anything).Return(func(ctx context.Context, in api.WindowsInput) (window.Horizon, error) {
		asked = append(asked, in)
		return acts.ListWindows(ctx, in)
	})
	env.ExecuteWorkflow(windows.Windows, input)
	if err = env.GetWorkflowError(); err == nil {
		err = env.GetWorkflowResult(&horizon)
	}
	return horizon, asked, err
}

func TestWindowsAreReturned(t *testing.T) {
	horizon, asked, err := ask(t, workflowtest.Raw(`{}`))
	if err != nil || len(horizon.Windows["nights"].Openings) != api.DefaultNextOpenings || len(asked) != 1 || asked[0].At.Hour() != 12 {
		t.Errorf("%+v, asked %+v: %v", horizon, asked, err)
	}
	if horizon, _, err = ask(t, workflowtest.Raw(`{"name":"nights","next":5}`)); err != nil || len(horizon.Windows["nights"].Openings) != 5 {
		t.Errorf("%+v: %v", horizon, err)
	}
	for input, want := range map[string]string{
		`{"nam":"nights"}`: "nam: unknown field", `{"next":101}`: "next: 101: want 0 to 100", `{"next":-1}`: "next: -1",
		`{"name":"a b"}`: `name: "a b" is not the name of a window`, `{"name":"days"}`: `no window "days"`,
	} {
		if _, _, err := ask(t, workflowtest.Raw(input)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", input, err, want)
		}
	}
}
