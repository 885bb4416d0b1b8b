package client

import (
	"errors"
	"fmt"
	"testing"

	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
)

func TestOnlyLimitsThatChangedMeanwhileAreSetAnew(t *testing.T) {
	refused := func(kind string) error {
		var why *temporal.ApplicationError
		if !errors.As(temporal.NewNonRetryableApplicationError("no", kind, nil), &why) {
			t.Fatal("not an application error")
		}
		return fmt.Errorf("setting: %w", refusalOf(why))
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
	if got := refused("Invalid").Error(); got != "setting: refused by the scheduler: no" {
		t.Errorf("error %q", got)
	}
}
