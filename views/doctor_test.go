package views_test

import (
	"fmt"
	"io"
	"strings"
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

// TestTheCommandsOfANextStepAreWhole, in the Temporal UI too.
func TestTheCommandsOfANextStepAreWhole(t *testing.T) {
	const node = "ip-10-0-12-34.eu-central-1.compute.internal"
	report := doctor.Report{Findings: doctor.Examine(doctor.Facts{
		Nodes:     []doctor.Node{{Name: node, Labelled: true, Phase: "Ready", Tainted: true, Unschedulable: true}},
		Scheduler: doctor.Scheduler{Execution: doctor.Execution{Running: true}},
	}, nil).Findings}
	got := document.Details(views.Doctor(report, false, views.Brief()))
	if want := fmt.Sprintf("kubectl taint node %s drydock.dev/maintenance-", node); !strings.Contains(got, want) {
		t.Errorf("want %q in\n%s", want, got)
	}
}
