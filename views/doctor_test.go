package views_test

import (
	"io"
	"testing"

	"drydock.dev/drydock/rules/doctor"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

func TestDoctorTables(t *testing.T) {
	startertest.Golden(t, "doctor", func(w io.Writer) { terminal.Show(w, views.Doctor(startertest.SickReport(), false, noon)) })
	startertest.Golden(t, "doctor_all", func(w io.Writer) { terminal.Show(w, views.Doctor(startertest.SickReport(), true, noon)) })
	startertest.Golden(t, "doctor_fine", func(w io.Writer) {
		terminal.Show(w, views.Doctor(doctor.Report{Looked: doctor.Looked{Nodes: 1}}, true, noon))
	})
	startertest.Golden(t, "doctor_healed", func(w io.Writer) {
		f := startertest.SickReport().Findings[0]
		f.Tried = "released the mark and uncordoned the node"
		terminal.Show(w, views.Doctor(doctor.Report{Fix: true, Healed: []doctor.Healed{{Finding: f}}, MoreHealed: 1}, false, noon))
	})
	startertest.Golden(t, "doctor_details", func(w io.Writer) {
		_, _ = io.WriteString(w, document.Details(views.Doctor(startertest.SickReport(), false, views.Brief())))
	})
}
