package starter

import (
	"errors"
	"fmt"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
)

// TestAProfileIsShownWhereNoMaintenanceRuns, and does not hide that several do, or that nobody knows.
func TestAProfileIsShownWhereNoMaintenanceRuns(t *testing.T) {
	running := client.Maintenance{Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}
	ended := client.Maintenance{Execution: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED}
	for name, c := range map[string]struct {
		found client.Maintenance
		err   error
		want  bool
	}{
		"one runs":         {running, nil, false},
		"one has ended":    {ended, nil, true},
		"there was none":   {client.Maintenance{}, exit.Hint(&client.NotFoundError{Node: "n"}, "Running: m."), true},
		"several run":      {client.Maintenance{}, exit.Hint(&client.NotFoundError{Node: "n", Others: []client.Maintenance{running, running}}, "Pass --requestor."), false},
		"Temporal is away": {client.Maintenance{}, fmt.Errorf("looking: %w", errors.New("unavailable")), false},
	} {
		if got := noneRuns(c.found, c.err); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
