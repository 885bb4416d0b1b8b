package show

import (
	"io"
	"testing"

	"drydock/rules/preflight"
	"drydock/starter/startertest"
)

func TestPreflightTable(t *testing.T) {
	startertest.Golden(t, "preflight", func(w io.Writer) {
		Preflights(w, []preflight.Report{startertest.StoppedReport(), {Node: "worker-02"}})
	})
}
