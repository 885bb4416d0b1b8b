// Package profilereport is the workflow that reports what becomes of nodes by their profiles, and changes nothing.
package profilereport

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/views"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/inbox"
)

// within bounds the question: somebody waits for the answer.
const within = time.Minute

// ProfileReport lists nodes by their profiles, or explains one. Its input is api.ProfileReportInput, in JSON.
func ProfileReport(ctx workflow.Context, input converter.RawValue) (api.ProfileReport, error) {
	asked, err := inbox.Decode[api.ProfileReportInput](inbox.Payload(input))
	if err == nil {
		err = check(asked)
	}
	if err != nil {
		return api.ProfileReport{}, inbox.InvalidSpec(err)
	}
	var report api.ProfileReport
	ctx = call.Within(call.Quick(ctx, "look at nodes by their profiles"), within)
	if err := workflow.ExecuteActivity(ctx, call.Profiles.ReportProfiles, asked).Get(ctx, &report); err != nil {
		return report, err
	}
	workflow.SetCurrentDetails(ctx, document.Details(views.ProfileExplanation(report.Lines, views.Brief())))
	return report, nil
}

func check(asked api.ProfileReportInput) error {
	if asked.Node != "" {
		if asked.Profile != "" || asked.State != "" || asked.After != "" || asked.Limit != 0 {
			return fmt.Errorf("node: it goes with no other field: it has one node explained")
		}
		if err := spec.NodeName(asked.Node); err != nil {
			return fmt.Errorf("node: %w", err)
		}
	}
	if asked.Profile != "" {
		if err := state.CheckName(asked.Profile); err != nil {
			return fmt.Errorf("profile: %w", err)
		}
	}
	if asked.State != "" && !asked.State.Known() {
		return fmt.Errorf("state: %.80q: want one of %s, %s, %s", asked.State, state.Operational, state.Required, state.Maintenance)
	}
	if asked.After != "" {
		if err := spec.NodeName(asked.After); err != nil {
			return fmt.Errorf("after: %w", err)
		}
	}
	if asked.Limit < 0 || asked.Limit > api.MaxProfileReport {
		return fmt.Errorf("limit: %d: want 0 to %d", asked.Limit, api.MaxProfileReport)
	}
	return nil
}
