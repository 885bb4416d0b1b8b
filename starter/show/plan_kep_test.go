package show

import (
	"io"
	"testing"

	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
)

func TestPlansInTheShapeOfTheKEP(t *testing.T) {
	startertest.Golden(t, "plan_kep", func(w io.Writer) {
		output := terminal.Output{Format: terminal.FormatYAML}
		if err := output.Write(w, KEP(startertest.StagedPlan()), nil); err != nil {
			t.Error(err)
		}
	})
}
