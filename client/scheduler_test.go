package client

import (
	"fmt"
	"testing"

	"drydock.dev/drydock/api"
)

func TestOnlyLimitsThatChangedMeanwhileAreSetAnew(t *testing.T) {
	refused := func(kind string) error {
		return fmt.Errorf("setting: %w", &RefusedError{By: "the scheduler", Message: api.UpdateSetLimits, Type: kind, Reason: "no"})
	}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"changed":         {refused(api.ErrorLimitsChanged), true},
		"another refusal": {refused("Invalid"), false},
		"no refusal":      {ErrUnreachable, false},
		"none":            {nil, false},
	} {
		if got := LimitsChanged(c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
