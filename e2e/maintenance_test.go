package e2e

import (
	"testing"

	"drydock/workflows"
)

func TestOneMaintenanceFromStartToEnd(t *testing.T) {
	s := newSite(t, "")
	before := s.imprint("worker-01")
	run := s.beginWith("worker-01", `"reason":"kernel"`)
	s.until(run, workflows.Ready)
	s.mustShow("worker-01", run.GetRunID(), workflows.Ready)
	s.done(run)
	s.back("worker-01", before)
}
