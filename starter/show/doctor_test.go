package show

import (
	"io"
	"testing"

	"drydock.dev/drydock/rules/doctor"
	"drydock.dev/drydock/starter/startertest"
)

func TestDoctorTables(t *testing.T) {
	startertest.Golden(t, "doctor", func(w io.Writer) { Doctor(w, startertest.SickReport(), false, startertest.Noon) })
	startertest.Golden(t, "doctor_all", func(w io.Writer) { Doctor(w, startertest.SickReport(), true, startertest.Noon) })
	startertest.Golden(t, "doctor_fine", func(w io.Writer) {
		Doctor(w, doctor.Report{Looked: doctor.Looked{Nodes: 1}}, true, startertest.Noon)
	})
	startertest.Golden(t, "doctor_healed", func(w io.Writer) {
		f := startertest.SickReport().Findings[0]
		f.Tried = "released the mark and uncordoned the node"
		Doctor(w, doctor.Report{Fix: true, Healed: []doctor.Healed{{Finding: f}}, MoreHealed: 1}, false, startertest.Noon)
	})
}
