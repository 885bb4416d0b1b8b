package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/plan"
)

// A list of plans can be asked for those that are paused, and metrics count them by it.
func TestAPlanShowsItsPhaseInLists(t *testing.T) {
	s := newSite(t, "a", "b", "c")
	s.prepared = settings.Prepared{SearchAttributes: true}
	s.begin(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	var shown []string
	s.env.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
		if phase, ok := args.Get(0).(temporal.SearchAttributes).GetKeyword(api.AttributePhase); ok {
			shown = append(shown, phase)
		}
	}).Return(nil)
	s.ends["a"] = []error{temporal.NewNonRetryableApplicationError("broken", api.ErrorMaintenanceFailed, nil)}
	s.signalAt(2*time.Hour, api.MsgResume, nil)
	s.ended(`{"all":true}`, api.PlanIncomplete, plan.Counts{Total: 3, Done: 2, Failed: 1})
	if want := []string{"Running", "Paused", "Running", "Incomplete"}; !slices.Equal(shown, want) {
		t.Errorf("it showed %v, want %v", shown, want)
	}
}
