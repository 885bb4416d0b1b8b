package invocation

import (
	"fmt"
	"io"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/startertest"
)

func TestDifferentSettingsAreShown(t *testing.T) {
	c := &Connection{Program: "drydock"}
	err := c.errDifferent(&client.DifferentError{View: startertest.View(api.Draining), Differences: []client.Difference{
		{Field: "drain.mode", Running: "evict", Asked: "wait"}, {Field: "drain.force", Running: true}, {Field: "reason", Asked: "<b> & c"},
	}})
	startertest.Golden(t, "different", func(w io.Writer) { fmt.Fprintln(w, "Error: "+exit.Indent(err.Error())) })
}
