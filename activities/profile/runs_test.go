package profile

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/mocks"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/profile/state"
)

// Profiles gets no signal of the end of a transition that was reset, or that an earlier run of it has begun.
func TestWhatCameOfATransitionThatDoesNotRun(t *testing.T) {
	moved, id := time.Now().UTC(), api.ProfileTransitionID("", "p", "n2")
	runs := UnderWay{Ref: Ref{"p", "n2"}, UID: "u-n2", RunID: "ours", To: state.Required, Began: time.Now().Add(-time.Minute)}
	done := api.ProfileTransitionEnded{Moved: moved}
	for name, c := range map[string]struct {
		results map[string]any
		taken   bool
		lost    bool
	}{
		"it is done":              {map[string]any{"ours": done, "": errors.New("another")}, false, false},
		"it was reset":            {map[string]any{"ours": &temporal.TerminatedError{}, "": done}, false, false},
		"it was terminated":       {map[string]any{"ours": &temporal.TerminatedError{}, "": &temporal.TerminatedError{}}, false, true},
		"it has failed":           {map[string]any{"ours": errors.New("no such luck"), "": done}, false, true},
		"another ran as it began": {map[string]any{"": done}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDock(t, node("n2", map[string]state.State{"p": state.Operational}))
			asked, _ := d.acts.Temporal.(*mocks.Client)
			asked.On("GetWorkflow", mock.Anything, id, mock.Anything).Return(func(_ context.Context, _, run string) client.WorkflowRun {
				answer := &mocks.WorkflowRun{}
				answer.On("Get", mock.Anything, mock.Anything).Return(func(_ context.Context, into any) error {
					switch result := c.results[run].(type) {
					case error:
						return result
					case api.ProfileTransitionEnded:
						*into.(*api.ProfileTransitionEnded) = result
					default:
						t.Errorf("asked for run %q", run)
					}
					return nil
				})
				return answer
			})
			u := runs
			u.IDTaken = c.taken
			result := d.evaluate(EvaluateInput{UnderWay: api.List[UnderWay]{u}})
			if len(result.Ended) != 1 || result.Ended[0].Lost != c.lost || result.Ended[0].Moved.IsZero() != c.lost {
				t.Errorf("%+v", result)
			}
		})
	}
}
